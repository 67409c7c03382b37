"""Writer: the queues of edit requests by the trees that they write to, committed in groups.

The edits of one tree are committed one after another. Requests that wait for the same trees are combined: each is built
over the changes of those before it, and they are committed in few transactions, so all results are as if the edits were
made one by one, in the order in which they came. A result or error that depends on changes which are not committed yet
is sent after the commit.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from store.concurrency import RetryPolicy, TreeLocks
from store.engine import ReadUsage, Store
from store.errors import UNCERTAIN, BadInput, CladeError, Conflict, Unavailable, Uncertain
from store.metadata.moves import Move, MoveState, MoveTiming
from store.model.keys import tree_version_key
from store.reading import RecentChanges
from store.writing.edit import Edit
from store.writing.edit_many import EditMany
from store.writing.edit_request import EditOptions, EditRequest, EditResult, dry_run
from store.writing.move_worker import MoveWorker
from store.writing.reads import NotCombinable, Reader, WriteOverlay

MAX_COMBINED = 30  # requests; a transaction of DynamoDB holds some 30 creations
RETRIES = RetryPolicy(0.01, 0.1, attempts=20)  # of one transaction while others write to the same tree
STOP_SECONDS = 5.0  # for running edits when the process ends

Queue = dict[EditRequest, None]  # the requests that wait for the same trees; a mapping, since any may leave


class Writer:
    """Commits edits; a process needs one for a store. Its `move_worker` runs edits that take several transactions.

    Clients only wait for results: the work is done by tasks of the writer, so a client that leaves stops no other.
    """

    def __init__(self, store: Store, timing: MoveTiming = MoveTiming()) -> None:
        self._store = store
        self._locks = TreeLocks()
        self._recent = RecentChanges(store)
        self._timing = timing
        self._queues: dict[frozenset[str], Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.move_worker = MoveWorker(store, timing, self._locks)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for those before them."""
        return sum(map(len, self._queues.values()))

    async def write(self, edit: Edit | EditMany, reads: ReadUsage, options: EditOptions = EditOptions()) -> EditResult:
        """Commit one edit, or several or none. Raises a CladeError where that is not possible, Conflict after too many
        attempts.
        """
        request = EditRequest(edit, reads, options)
        await request.look_ahead(self._store)
        result = await self._write(request)
        job = self.move_worker.job(result.move.id) if result.move else None
        if job is None:
            return result
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timing.wait_seconds):
                await job.is_decided.wait()
        if job.refusal is not None:
            raise job.refusal
        return _with_move(result, job.move)

    async def write_in_order(
        self, edits: Sequence[tuple[Edit | EditMany, EditOptions]], reads: ReadUsage
    ) -> list[EditResult | BaseException]:
        """The results or errors of edits that are made in this order, whatever their trees, and committed in groups.

        After an outage or a defect no more are begun; they are CancelledErrors. A large move is only registered, so an
        edit after it may meet it.
        """
        requests = [EditRequest(edit, reads, options) for edit, options in edits]

        def stop(result: asyncio.Future[EditResult]) -> None:
            error = None if result.cancelled() else result.exception()
            if isinstance(error, Unavailable) or not isinstance(error, CladeError | None):
                for request in requests:
                    request.result.cancel()

        for request in requests:
            request.result.add_done_callback(stop)
        await asyncio.gather(*[request.look_ahead(self._store) for request in requests])
        async with self._locks.turn({name for request in requests for name in request.partitions}):
            await GroupCommit(self._store, requests, self.move_worker.start, self._recent).run()
        return await asyncio.gather(*[request.result for request in requests], return_exceptions=True)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Takes over interrupted moves while the block runs; at its end nothing of this process is running any more."""
        async with self.move_worker.watching():
            try:
                yield
            finally:
                await self._stop()

    async def _write(self, request: EditRequest) -> EditResult:
        partitions = frozenset(request.partitions)
        if partitions in self._queues:
            self._queues[partitions][request] = None
        else:
            self._enqueue(partitions, {request: None})
        try:
            return await request.result
        finally:
            request.result.cancel()
            self._queues.get(partitions, {}).pop(request, None)  # else it would keep its place, and memory

    def _enqueue(self, partitions: frozenset[str], queue: Queue) -> None:
        """Have requests wait for the trees; until they are served, others for the same trees join the queue."""
        self._queues[partitions] = queue
        task = asyncio.create_task(self._serve(partitions, queue))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _serve(self, partitions: frozenset[str], queue: Queue) -> None:
        """Run the first requests of a queue; the others wait again, behind those who came for one of the trees."""
        first: list[EditRequest] = []
        try:
            async with self._locks.turn(partitions):
                del self._queues[partitions]
                first = list(islice(queue, MAX_COMBINED))
                if rest := dict.fromkeys(islice(queue, MAX_COMBINED, None)):
                    self._enqueue(partitions, rest)
                queue = {}
                await GroupCommit(self._store, first, self.move_worker.start, self._recent).run()
        except BaseException as error:  # the process ends
            result = Uncertain(f"The server stops. {UNCERTAIN}") if isinstance(error, asyncio.CancelledError) else error
            for request in (*first, *queue):
                request.settle(result)
            if self._queues.get(partitions) is queue:
                del self._queues[partitions]
            raise

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # the clients have got it

    async def _stop(self) -> None:
        """Wait for running edits for a while, then cancel them."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class _Built(NamedTuple):
    """The result of a request if the pending changes are committed, and whether some of those are its own."""

    request: EditRequest
    result: EditResult | Exception
    has_changes: bool = False


def _with_move(result: EditResult, move: Move) -> EditResult:
    """A result with its move as that is now."""
    nodes = [one._replace(record=move.counted(one.record)) for one in result.nodes]
    return replace(result, move=move, nodes=nodes)


class GroupCommit:
    """Commits requests for the same trees; `begin` is called with each large move whose registration is committed.

    `recent` is shared by all groups. Keys that several requests need are read once, and counted among the reads of the
    first.
    """

    def __init__(
        self, store: Store, requests: Sequence[EditRequest], begin: Callable[[Move], object], recent: RecentChanges
    ) -> None:
        self._store = store
        self._begin = begin
        self._recent = recent
        self._overlay = WriteOverlay(store)
        for request in requests:
            self._overlay.add_read(request.found)
        self._readers = {request: Reader(store, request.reads, self._overlay, recent) for request in requests}

    async def run(self) -> None:
        """Settle all requests; those for which nobody waits any more are skipped until their commit has begun."""
        try:
            while self._open():
                await self._advance()
        except Exception as error:
            for request in self._open():
                request.settle(error)

    def _open(self) -> list[EditRequest]:
        return [request for request in self._readers if not request.result.done()]

    async def _advance(self) -> None:
        """Settle the first requests, as many as fit into one transaction; retried where another writer was first."""
        group: list[_Built] = []
        for delay in RETRIES.delays():
            await asyncio.sleep(delay)
            group = await self._build_group()
            if await self._commit(group):
                return
            self._overlay.reset()
        refusal = Conflict("Other writes to the same tree prevented the change; nothing was changed. Retry later.")
        for built in group:
            built.request.settle(refusal)

    # -- building ------------------------------------------------------------------------------------------------------

    async def _build_group(self) -> list[_Built]:
        """Build as many requests as can be committed together; built again if a client has gone meanwhile."""
        group = await self._build_in_order()
        while any(built.request.result.done() for built in group):
            group = await self._build_in_order()
        return group

    async def _build_in_order(self) -> list[_Built]:
        """Build requests until one cannot be combined with those before; settle those that depend on no change."""
        self._overlay.discard()
        await self._read_ahead(self._open())
        group: list[_Built] = []
        for request in self._open():
            if group:
                await asyncio.sleep(0)  # requests that only read are served in between
            if request.result.done():
                continue
            try:
                built = await self._build(request)
            except NotCombinable:
                break
            if self._overlay.is_pending:
                group.append(built)
            else:
                request.settle(built.result)
        return group

    async def _read_ahead(self, requests: Sequence[EditRequest]) -> None:
        """Read the keys of several edits in three batches: stored results, tree versions, and then the rest."""
        if not requests or (len(requests) == 1 and isinstance(requests[0].edit, Edit)):
            return
        reads = requests[0].reads
        await self._overlay.read([request.result_key for request in requests if request.result_key], reads)
        new = [one for one in requests if not one.result_key or self._overlay.item(one.result_key) is None]
        edits = [edit for request in new for edit in request.ahead]
        await self._overlay.read([tree_version_key(one) for edit in edits for one in sorted(edit.partitions())], reads)
        leading = [key for request in new for key in request.leading]
        await self._overlay.read([*leading, *[key for edit in edits for key in edit.all_keys()]], reads)

    async def _build(self, request: EditRequest) -> _Built:
        """Raises NotCombinable where a request cannot be combined with the pending changes."""
        reader, options = self._readers[request], request.options
        try:
            if (stored := await self._stored(request, reader)) is not None:
                return _Built(request, stored)
            transaction = await request.edit.build(reader, request.context(self._store.now()))
            changes = request.changes(transaction, self._store.max_commit_changes)
            if options.dry_run:
                plan = await dry_run(transaction, changes, self._store)
                return _Built(request, EditResult(transaction.edited, plan))
            await self._overlay.add(changes)
            result = EditResult(transaction.edited, move=transaction.move, written=transaction.written)
            return _Built(request, result, bool(changes))
        except NotCombinable:
            raise
        except Exception as error:
            return _Built(request, await self._result_after(error, request))

    async def _stored(self, request: EditRequest, reader: Reader) -> EditResult | None:
        """The result that is stored under the idempotency key, if any; a dry run tells what would be without it.

        Raises Conflict for a change whose move was undone, of which no node is left as it was written.
        """
        key = request.result_key
        item = None if key is None or request.options.dry_run else (await reader.read([], [key]))[key]
        if item is None:
            return None
        found, move_key = request.stored(item)
        if found.refusal is not None:
            return found
        item = None if move_key is None else (await reader.read([], [move_key]))[move_key]
        move = None if item is None else Move.of(item)
        if move and move.state is MoveState.UNDONE:
            said = f"The move {move.id} of this change was undone. {move.reason or ''}".strip()
            raise Conflict(f"{said} Send the change again with another idempotencyKey.")
        records = await reader.contents_of([one.record for one in found.nodes])
        nodes = [one._replace(record=record) for one, record in zip(found.nodes, records, strict=True)]
        found = replace(found, nodes=nodes)
        return found if move is None else _with_move(found, move)

    async def _result_after(self, error: Exception, request: EditRequest) -> EditResult | Exception:
        """The result of a request that failed: the stored one where the same request was committed by another process,
        or by a commit whose answer was lost; else the error.
        """
        if not isinstance(error, CladeError):
            return error
        try:
            return await self._stored(request, Reader(self._store, request.reads)) or error
        except Unavailable as worse:
            return error if isinstance(error, Unavailable) else Uncertain.after(worse)
        except CladeError as worse:
            return worse

    # -- committing ----------------------------------------------------------------------------------------------------

    async def _commit(self, group: Sequence[_Built]) -> bool:
        """Commit the pending changes and settle the requests; False where all have to be built again."""
        try:
            if group:
                await self._store.commit(self._overlay.changes)
        except Conflict:
            return False
        except Exception as error:
            await self._fail([built for built in group if built.has_changes], error)
            return True
        self._overlay.mark_committed()
        for built in group:
            self._begin_move(built)
            built.request.settle(built.result)
        return True

    def _begin_move(self, built: _Built) -> None:
        if built.has_changes and isinstance(built.result, EditResult) and built.result.move is not None:
            self._begin(built.result.move)

    async def _fail(self, group: Sequence[_Built], error: Exception) -> None:
        """Settle the requests whose changes failed; those that depend on them are built again."""
        self._overlay.reset()
        if isinstance(error, BadInput) and len(group) > 1:  # one of them cannot be stored, and only that one fails
            for built in group:
                await GroupCommit(self._store, [built.request], self._begin, self._recent).run()
            return
        if isinstance(error, Unavailable):  # may be committed; a move that is not finds no record of its own
            for built in group:
                self._begin_move(built)
        results = await asyncio.gather(*[self._result_after(error, built.request) for built in group])
        for built, result in zip(group, results, strict=True):
            built.request.settle(result)
