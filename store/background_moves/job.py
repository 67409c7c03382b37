"""The steps of one journaled move, from where its record says that it is to its end.

A subtree is copied to its new place, where nobody sees it; then one transaction flips the move, so that it is seen
there and no longer at the old place, which is swept after that. A cascade has nothing to copy; its nodes are counted.
Between the steps it waits until all readers know what the stamps and the record tell (grace), and until the indexes
hold what was written (settle). Each step can be stopped anywhere and begun again.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, cast

from msgspec.structs import replace

from store.background_moves.lease import MoveLease
from store.background_moves.timing import MoveTiming
from store.concurrency import TreeLocks
from store.edits.reader import Reader
from store.edits.transaction import (
    ReadSet,
    TransactionBuilder,
    WriteContext,
    shape_of,
)
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Conflict, NotFound
from store.metadata.change_log import log_item
from store.metadata.history import id_item, revision_item, tombstone_item
from store.metadata.move_record import Move, MoveState
from store.metadata.redirects import redirect_key
from store.model.items import MAX_BATCH_BYTES, Change, Delete, Put, size_of
from store.model.key_rewrite import SubtreeRewrite
from store.model.keys import (
    Key,
    ancestor_keys,
    parent_sort_key,
    path_of,
)
from store.model.paths import format_path
from store.model.ranges import subtree
from store.model.records import Record
from store.text import rfc3339, shorten

PAGE_ITEMS = 1000
LONGEST_DELAY_SECONDS = 0.25

Changes = Callable[[Record], Sequence[Change]]


class MoveJob:
    """`has_flipped` is set when the move has flipped or come to nothing, for which `refusal` is then the reason."""

    def __init__(self, store: Store, hold: MoveLease, queue: TreeLocks, pace: MoveTiming) -> None:
        self.has_flipped = asyncio.Event()
        self.refusal: BadInput | None = None
        self.hold = hold
        self._store = store
        self._queue = queue
        self._pace = pace
        self._most = (store.most_changes or store.max_changes) - 1  # beside the record of the move

    @property
    def move(self) -> Move:
        return self.hold.move

    async def run(self) -> None:
        """Go on to the end. Raises Lost where somebody else has the move by now, Unavailable to be run again."""
        if self.move.state is MoveState.COPYING:
            try:
                await self._bring()
                await self._flip()
            except BadInput as error:
                self.refusal = error
                await self.hold.write(state=MoveState.UNDONE, cursor=None, reason=str(error))
        self.has_flipped.set()
        if self.move.state is MoveState.SWEEPING:
            await self._sweep()
        else:
            await self._undo()
        await self.hold.wait(self._pace.settle_seconds)
        await self._unregister()

    # -- before the flip -----------------------------------------------------------------------------------------------

    async def _bring(self) -> None:
        """Copy the subtree, and count its tiers on the way."""
        if self.move.target is None:
            async for page in self._pages(self.move.source, self.move.cursor):
                await self._note([], page)
            return
        if self.move.cursor is None:
            await self.hold.wait(self._pace.grace_seconds)
        way = await self._way()
        async for page in self._pages(self.move.source, self.move.cursor):
            for changes, records in self._batches(page, lambda one: [Put(way.moved(one).item())]):
                await self._note(changes, records)
        await self.hold.wait(self._pace.settle_seconds)

    async def _note(self, changes: Sequence[Change], records: Sequence[Record]) -> None:
        shape = dict(Counter(self.move.shape) + Counter(shape_of(records)))
        written = self.move.written + len(records)
        await self.hold.write(changes, cursor=records[-1].sk, written=written, shape=shape)

    async def _way(self) -> SubtreeRewrite:
        """How the nodes will lie; nothing of what tells it can change while the move runs."""
        source, target = self.move.source, cast(Key, self.move.target)
        parent = [] if target.sk == "#" else [Key(target.pk, parent_sort_key(target.sk))]
        seen = await self._seen([source, *parent])
        above = [one for key in parent for one in (*_there(seen, key).above, _there(seen, key).level)]
        return SubtreeRewrite.of(_there(seen, source), target, above)

    async def _flip(self) -> None:
        source, target = self.move.source, self.move.target
        way = None if target is None else await self._way()
        keys = [source, *ancestor_keys(source), redirect_key(source)]
        keys += [] if target is None else [*ancestor_keys(target), redirect_key(target)]

        async def drawn() -> list[Change]:
            seen = await self._seen(keys)
            top, now = _there(seen, source), time.time()
            draft = TransactionBuilder(seen, WriteContext(rfc3339(now), now, self.move.changed_by), top)
            if way is None:
                draft.count_removed(top, self.move.shape)
            else:
                draft.count_moved(top, way.moved(top), self.move.shape)
            return draft.changes()

        await self._conclude(drawn, state=MoveState.SWEEPING, cursor=None, written=0)

    # -- after it ------------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Remove what is left at the old place, and lead the ids to the new one."""
        if self.move.cursor is None:
            await self.hold.wait(self._pace.grace_seconds)
        async for page in self._pages(self.move.source, self.move.cursor):
            for changes, records in self._batches(page, self._swept):
                written = self.move.written + len(records)
                await self.hold.write(changes, cursor=records[-1].sk, written=written)

    def _swept(self, record: Record) -> list[Change]:
        move = self.move
        if move.target is not None:
            place = record.key.moved(move.source, move.target)
            return [Delete(record.key), Put(id_item(replace(record, pk=place.pk, sk=place.sk)))]
        tombstone = tombstone_item(record, move.started_at, move.changed_by)
        return [Delete(record.key), Put(revision_item(record)), Put(tombstone)]

    async def _undo(self) -> None:
        """Remove the copies."""
        if self.move.target is not None:
            async for page in self._pages(self.move.target):
                for changes, _ in self._batches(page, lambda one: [Delete(one.key)]):
                    await self.hold.write(changes)

    async def _unregister(self) -> None:
        """Let others write to both ends again."""
        state = MoveState.DONE if self.move.state is MoveState.SWEEPING else MoveState.UNDONE

        async def drawn() -> list[Change]:
            seen, now = await self._seen([]), time.time()
            changes: list[Change] = []
            for partition in self.move.running.partitions:
                stamp = seen.stamp(partition)
                moves = tuple(one for one in stamp.moves if one.id != self.move.id)
                changes.append(stamp.incremented({}, moves=moves, now=now))
                if "#" in partition:
                    changes.append(log_item(stamp, [], rfc3339(now), now))
            return changes

        await self._conclude(drawn, state=state, ended_at=rfc3339(time.time()))

    # -- reading and writing -------------------------------------------------------------------------------------------

    async def _seen(self, keys: Sequence[Key]) -> ReadSet:
        return await Reader(self._store, ReadUsage()).seen(self.move.running.partitions, keys)

    async def _pages(self, top: Key, cursor: str | None = None) -> AsyncIterator[list[Record]]:
        """The subtree at a key behind a cursor, page by page."""
        span = subtree(*top)
        span = span if cursor is None else span.after(cursor)
        while items := await self._store.range(span, ReadUsage(), limit=PAGE_ITEMS, strong=True):
            yield [Record.of(item) for item in items]
            await asyncio.sleep(0)
            span = span.after(cast(str, items[-1]["sk"]))

    def _batches(self, records: Sequence[Record], changes_of: Changes) -> Iterator[tuple[list[Change], list[Record]]]:
        """The changes that records call for, cut into transactions, each with its records."""
        changes: list[Change] = []
        batch: list[Record] = []
        size = 0
        for record in records:
            more = changes_of(record)
            # What a deletion removes is weighed as well: a sweep that were refused as too large could never end.
            weight = sum(size_of(change.item if isinstance(change, Put) else record.item()) for change in more)
            if batch and (len(changes) + len(more) > self._most or size + weight > MAX_BATCH_BYTES):
                yield changes, batch
                changes, batch, size = [], [], 0
            changes += more
            batch.append(record)
            size += weight
        if batch:
            yield changes, batch

    async def _conclude(self, drawn: Callable[[], Any], **progress: Any) -> None:
        """Commit what is drawn up with the move's progress, again where others write to the same trees first."""
        while True:
            async with self._queue.turn(self.move.running.partitions):
                try:
                    return await self.hold.write(await drawn(), **progress)
                except Conflict:
                    await self.hold.keep()
            await asyncio.sleep(random.uniform(0, LONGEST_DELAY_SECONDS))  # noqa: S311 - no secret


def _there(seen: ReadSet, key: Key) -> Record:
    record = seen.record(key)
    if record is None:
        raise NotFound(f"{shorten(format_path(path_of(*key)))} is no longer there.")
    return record
