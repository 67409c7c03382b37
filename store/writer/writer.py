"""Writer: commits the edits of one tree one after another; requests that wait for the same trees are combined."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from itertools import islice

from store.background_moves.timing import MoveTiming
from store.background_moves.worker import MoveWorker
from store.concurrency import TreeLocks
from store.edits.create_update import Edit
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import UNCERTAIN, Uncertain
from store.model.hierarchy import Hierarchy
from store.reading.recent_changes import RecentChanges
from store.writer.group_commit import GroupCommit
from store.writer.request import EditOptions, EditRequest, EditResult

MAX_COMBINED = 30  # requests; a transaction of DynamoDB holds some 30 creations
STOP_SECONDS = 5.0  # for running edits when the process ends

_STOPPED = f"The server stops. {UNCERTAIN}"

Queue = dict[EditRequest, None]  # the requests that wait for the same trees; a mapping, since any may leave


class Writer:
    """Commits edits; a process needs one for a store. Its `move_worker` runs edits that take several transactions.

    Clients only wait for results: the work is done by tasks of the writer, so a client that leaves stops no other.
    """

    def __init__(
        self, store: Store, timing: MoveTiming = MoveTiming(), hierarchies: Mapping[str, Hierarchy] | None = None
    ) -> None:
        """`hierarchies` are those whose large moves it runs; of others a move leaves the search items behind."""
        self._store = store
        self._locks = TreeLocks()
        self._recent = RecentChanges(store)
        self._timing = timing
        self._queues: dict[frozenset[str], Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.move_worker = MoveWorker(store, timing, self._locks, hierarchies)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for those before them."""
        return sum(map(len, self._queues.values()))

    async def write(self, edit: Edit, reads: ReadUsage, options: EditOptions = EditOptions()) -> EditResult:
        """Commit an edit. Raises a CladeError where it is not possible, Conflict after too many attempts."""
        result = await self._write(EditRequest(edit, reads, options))
        job = self.move_worker.job(result.move.id) if result.move else None
        if job is None:
            return result
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timing.wait_seconds):
                await job.has_flipped.wait()
        if job.refusal is not None:
            raise job.refusal
        return replace(result, move=job.move)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Takes over interrupted moves while the block runs; at its end nothing of this process is running any more."""
        async with self.move_worker.watching():
            try:
                yield
            finally:
                await self._stop()

    async def _write(self, request: EditRequest) -> EditResult:
        partitions = frozenset(request.edit.partitions())
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
            result = Uncertain(_STOPPED) if isinstance(error, asyncio.CancelledError) else error
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
