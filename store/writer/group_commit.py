"""Group commit: edit requests for the same trees, built one after another and committed in few transactions.

Each is built over the changes of those before it, so all results are as if the edits were made one by one, in the order
in which they came. A result or error that depends on changes which are not committed yet is sent after the commit.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from store.edits.overlay import NotCombinable, WriteOverlay
from store.edits.read_set import WriteContext
from store.edits.reader import Reader
from store.engine.protocol import Store
from store.errors import BadInput, CladeError, Conflict, Unavailable, Uncertain
from store.metadata.idempotency import stored_result
from store.metadata.move_record import Move
from store.model.keys import tree_version_key
from store.reading.recent_changes import RecentChanges
from store.retry import RetryPolicy
from store.text import rfc3339
from store.writer.request import EditRequest, EditResult, dry_run

RETRIES = RetryPolicy(0.01, 0.1, attempts=20)  # of one transaction while others write to the same tree


class _Built(NamedTuple):
    """The result of a request if the pending changes are committed, and whether some of those are its own."""

    request: EditRequest
    result: EditResult | Exception
    has_changes: bool = False


class GroupCommit:
    """`begin` is called with each background move whose registration is committed; `recent` is shared by all groups.

    Keys that several requests need are read once, and counted among the reads of the first.
    """

    def __init__(
        self, store: Store, requests: Sequence[EditRequest], begin: Callable[[Move], object], recent: RecentChanges
    ) -> None:
        self._store = store
        self._begin = begin
        self._recent = recent
        self._overlay = WriteOverlay(store)
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
        return [request for request in self._readers if not request.is_settled]

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
        while any(built.request.is_settled for built in group):
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
            if request.is_settled:
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
        """Read the keys of several requests in three batches: stored results, tree versions, and then the rest."""
        if len(requests) < 2:
            return
        reads = requests[0].reads
        await self._overlay.read([request.result_key for request in requests if request.result_key], reads)
        edits = [
            request.edit
            for request in requests
            if not request.result_key or self._overlay.item(request.result_key) is None
        ]
        await self._overlay.read([tree_version_key(one) for edit in edits for one in sorted(edit.partitions())], reads)
        await self._overlay.read([key for edit in edits for key in edit.keys_to_read()], reads)

    async def _build(self, request: EditRequest) -> _Built:
        """Raises NotCombinable where a request cannot be combined with the pending changes."""
        reader, options = self._readers[request], request.options
        try:
            if (stored := await self._stored(request, reader)) is not None:
                return _Built(request, stored)
            now = time.time()
            transaction = await request.edit.build(reader, WriteContext(rfc3339(now), now, options.by, options.dry_run))
            if options.dry_run:
                return _Built(request, EditResult(transaction.record, await dry_run(transaction, self._store)))
            changes = request.changes(transaction, self._store.max_commit_changes)
            await self._overlay.add(changes)
            return _Built(request, EditResult(transaction.record, move=transaction.move), bool(changes))
        except NotCombinable:
            raise
        except Exception as error:
            return _Built(request, await self._result_after(error, request))

    async def _stored(self, request: EditRequest, reader: Reader) -> EditResult | None:
        """The result that is stored under the idempotency key, if any."""
        key = request.result_key
        item = None if key is None else (await reader.read([], [key])).item(key)
        if item is None:
            return None
        record, move_key = stored_result(item, request.fingerprint)
        move = None if move_key is None else (await reader.read([], [move_key])).item(move_key)
        return EditResult(await reader.content_of(record), move=None if move is None else Move.of(move))

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
