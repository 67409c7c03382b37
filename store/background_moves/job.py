"""Move job: the steps of one background move, from the state in its record to its end.

1. Copy the subtree to its new place, where it is hidden. (A cascade has nothing to copy; its nodes are counted.)
2. Flip in one transaction: from then on readers see the new place and no longer the old one.
3. Sweep what is left at the old place, and unregister the move.

Between the steps the job waits until all readers know the tree version and the record (grace), and until the indexes
have caught up with the table (settle). Each step can be stopped anywhere and repeated.

A move is worked on by one process at a time (fencing).
Each write of the worker is one transaction with the move's record, on condition that the record is unchanged since this
worker's last write. So a worker that slept past its lease, or whose response came too late, writes nothing after
another worker has taken over.
"""

import asyncio
import dataclasses
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any, cast

from msgspec.structs import replace

from store.background_moves.timing import MoveTiming
from store.concurrency import TreeLocks, in_chunks
from store.edits.reader import Reader, ReadSet, WriteContext
from store.edits.transaction import Step, TransactionBuilder, in_transactions, shape_of
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Conflict, NotFound
from store.kinds.kinds import Kinds
from store.kinds.node_kind import Found, Located
from store.metadata.change_log import log_item
from store.metadata.move_record import Move, MoveState
from store.metadata.redirects import redirect_key
from store.model.hierarchy import Hierarchy
from store.model.items import Change, Delete, Item, Put, size_of
from store.model.key_rewrite import SubtreeRewrite, token_of
from store.model.keys import Key, ancestor_keys, depth_of, parent_sort_key, path_of
from store.model.paths import format_path
from store.model.ranges import subtree
from store.model.records import Record
from store.reading.pages import Pages
from store.retry import RetryPolicy
from store.search.lineage import STEP, Lineage, id_hash, lineage
from store.text import rfc3339, shorten

RETRIES = RetryPolicy(0.25, 0.25)
STEPS = 50  # nodes whose changes are made at a time, which takes some milliseconds with their search items


class LeaseLost(Exception):
    """Another worker has taken over the move, or it has ended."""


class MoveLease:
    """`move` is the record as last written; each write renews the lease to `lease_seconds` from now."""

    def __init__(self, store: Store, move: Move, lease_seconds: float) -> None:
        self.move = move
        self._store = store
        self._lease_seconds = lease_seconds

    async def write(self, changes: Sequence[Change] = (), **progress: Any) -> None:
        """Commit changes and the move's progress. Raises LeaseLost, or Conflict where a condition of a change fails."""
        values = {"lease": round(time.time() + self._lease_seconds, 3), **progress}
        new, old = dataclasses.replace(self.move, **values), self.move
        when = {"epoch": old.epoch, "state": old.state.value, "lease": old.lease, "ended_at": None}
        try:
            await self._store.commit([Put(new.item(), when), *changes])
        except Conflict as error:
            if 0 in error.failed:
                raise LeaseLost from error
            raise
        self.move = new

    async def acquire(self) -> None:
        """Take over a move whose lease has run out; raises LeaseLost where another worker was faster."""
        try:
            await self.write(epoch=self.move.epoch + 1)
        except Conflict as error:
            raise LeaseLost from error

    async def release(self) -> None:
        """Let the next worker take over at once."""
        await self.write(lease=0)

    async def refresh(self) -> None:
        """Read the record after a write without an answer; raises LeaseLost where another worker has the move."""
        (item,) = await self._store.get([self.move.key], ReadUsage(), strong=True)
        found = None if item is None else Move.of(item)
        if found is None or found.epoch != self.move.epoch or found.ended_at is not None:
            raise LeaseLost
        self.move = found

    async def renew(self) -> None:
        """Renew the lease if a third of it has passed."""
        if self.move.lease - time.time() < self._lease_seconds * 2 / 3:
            await self.write()

    async def wait(self, seconds: float) -> None:
        """Sleep, and renew the lease meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, self._lease_seconds / 3))
            await self.renew()


_Ends = tuple[Item, Located, Located | None]
_ChangesOf = Callable[[Located, Located | None, Found], list[Change]]


class MoveJob:
    """`has_flipped` is set when the move has flipped or was undone; `refusal` is then the reason for the latter."""

    def __init__(
        self, store: Store, lease: MoveLease, locks: TreeLocks, timing: MoveTiming, hierarchy: Hierarchy | None
    ) -> None:
        """`hierarchy` is that of the move, None where its class is not loaded."""
        self.has_flipped = asyncio.Event()
        self.refusal: BadInput | None = None
        self.lease = lease
        self._store = store
        self._locks = locks
        self._timing = timing
        self._hierarchy = hierarchy
        self._kinds = Kinds(hierarchy)
        nodes, move = self._kinds.nodes, lease.move
        self._moved = nodes if move.target is None else nodes.of_move(move.source, move.target)[0]
        self._max_changes = (store.max_commit_changes or store.max_changes) - 1  # besides the record of the move

    @property
    def move(self) -> Move:
        return self.lease.move

    async def run(self) -> None:
        """Run to the end. Raises LeaseLost where another worker has the move, Unavailable to be run again."""
        if self.move.state is MoveState.COPYING:
            try:
                await self._copy()
                await self._flip()
            except BadInput as error:
                self.refusal = error
                await self.lease.write(state=MoveState.UNDONE, cursor=None, reason=str(error))
        self.has_flipped.set()
        if self.move.state is MoveState.SWEEPING:
            await self._sweep()
        else:
            await self._remove_copies()
        await self.lease.wait(self._timing.settle_seconds)
        await self._unregister()

    # -- before the flip -----------------------------------------------------------------------------------------------

    async def _copy(self) -> None:
        """Copy the subtree to its new place, and count its nodes by level and depth.

        Where nodes are found by what is stored of them, such as their words, a deletion waits as well: a search that
        does not know of it takes nodes at their places, while a lookup of the same response would see the flip.
        """
        if self.move.cursor is None and (self.move.target is not None or self._kinds.nodes.markers()):
            await self.lease.wait(self._timing.grace_seconds)
        if self.move.target is None:
            async for page in self._pages(self.move.source, self.move.cursor):
                await self._write_copied([], [Record.of(item) for item in page])
            return
        top, rewrite = await self._rewrite()

        def copied(node: Located, copy: Located | None, found: Found) -> list[Change]:
            moved = rewrite.moved(top if node.record.key == top.key else node.record)
            return [Put(moved.item()), *self._moved.prepared(node, cast(Located, copy), found)]

        async for page in self._pages(self.move.source, self.move.cursor):
            for changes, records in await self._transactions(await self._ends(page, rewrite), copied):
                await self._write_copied(changes, records)
        await self.lease.wait(self._timing.settle_seconds)

    async def _write_copied(self, changes: Sequence[Change], records: Sequence[Record]) -> None:
        shape = dict(Counter(self.move.shape) + Counter(shape_of(records)))
        written = self.move.written + len(records)
        await self.lease.write(changes, cursor=records[-1].sk, written=written, shape=shape)

    async def _rewrite(self) -> tuple[Record, SubtreeRewrite]:
        """The top of the subtree, where that is visible, and the rewrite of keys; neither can change meanwhile."""
        source, target = self.move.source, cast(Key, self.move.target)
        place = target if self.move.has_flipped else source
        parent = [] if target.sk == "#" else [Key(target.pk, parent_sort_key(target.sk))]
        read_set = await self._read([place, *parent])
        top, *others = [_existing(read_set, key) for key in (place, *parent)]
        above = [level for record in others for level in (*record.above, record.level)]
        token, rank = token_of(self.move.id), top.rank if self.move.has_flipped else self.move.rank
        return top, dataclasses.replace(SubtreeRewrite.of(top, target, above, token, rank), source=source)

    async def _flip(self) -> None:
        source, target = self.move.source, self.move.target
        rewrite = None if target is None else (await self._rewrite())[1]
        keys = [source, *ancestor_keys(source), redirect_key(source)]
        keys += [] if target is None else ancestor_keys(target)

        async def changes() -> list[Change]:
            reader = Reader(self._store, ReadUsage())
            read_set = await reader.read(self.move.running.partitions, keys)
            top, now = _existing(read_set, source), time.time()
            context = WriteContext(rfc3339(now), now, self.move.changed_by)
            transaction = TransactionBuilder(self._hierarchy, reader, read_set, context, top)
            if rewrite is None:
                transaction.count_removed(top, self.move.shape)
            else:
                nodes = [*read_set.ancestors(source), top]
                await reader.read_into(read_set, [], self._kinds.events.keys_of_move(nodes))
                await transaction.count_moved(top, rewrite.moved(top), self.move.shape)
            return transaction.changes()

        await self._commit(changes, state=MoveState.SWEEPING, cursor=None, written=0)

    # -- after the flip ------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Remove the remaining items at the old place, and point the id records to the new one."""
        if self.move.cursor is None:
            await self.lease.wait(self._timing.grace_seconds)
        move, events = self.move, self._kinds.events
        rewrite = None if move.target is None else (await self._rewrite())[1]

        def swept(node: Located, moved: Located | None, found: Found) -> list[Change]:
            if move.target is None:
                happened = events.deleted(node, move.started_at, move.changed_by)
            else:
                happened = events.carried(node, move.source, move.target)
            return [Delete(node.record.key), *happened, *self._moved.swept(node, moved, found)]

        async for page in self._pages(move.source, move.cursor):
            for changes, records in await self._transactions(await self._ends(page, rewrite), swept):
                written = self.move.written + len(records)
                await self.lease.write(changes, cursor=records[-1].sk, written=written)

    async def _remove_copies(self) -> None:
        if self.move.target is None:
            return

        def removed(copy: Located, node: Located | None, found: Found) -> list[Change]:
            return [Delete(copy.record.key), *self._moved.undone(copy, cast(Located, node), found)]

        async for page in self._pages(self.move.target):
            for changes, _ in await self._transactions(await self._ends(page, None), removed):
                await self.lease.write(changes)

    async def _unregister(self) -> None:
        """Allow other writes to both subtrees again."""
        state = MoveState.DONE if self.move.state is MoveState.SWEEPING else MoveState.UNDONE

        async def changes() -> list[Change]:
            read_set, now = await self._read([]), time.time()
            changes = self._kinds.events.ended(self.move.id)
            for partition in self.move.running.partitions:
                version = read_set.version(partition)
                moves = tuple(ref for ref in version.moves if ref.id != self.move.id)
                changes.append(version.incremented({}, moves=moves, now=now))
                if "#" in partition:
                    changes.append(log_item(version, [], rfc3339(now), now))
            return changes

        await self._commit(changes, state=state, ended_at=rfc3339(time.time()))

    # -- reading and writing -------------------------------------------------------------------------------------------

    async def _read(self, keys: Sequence[Key]) -> ReadSet:
        return await Reader(self._store, ReadUsage()).read(self.move.running.partitions, keys)

    def _pages(self, top: Key, cursor: str | None = None) -> Pages:
        """The items of a subtree after a sort key."""
        key_range = subtree(*top)
        return Pages(self._store, key_range if cursor is None else key_range.after(cursor), ReadUsage())

    async def _ends(self, page: Sequence[Item], rewrite: SubtreeRewrite | None) -> list[_Ends]:
        """The nodes of a page of one end, each with itself at the other end: at the target by the `rewrite`, or back at
        the source; without a target with None.
        """
        move, records = self.move, list(map(Record.of, page))
        if move.target is None:
            line = id_hash(await self._root_id()) if self._moved.by_ancestors else ""
            return [(item, Located(record, line), None) for item, record in zip(page, records, strict=True)]
        here, there = (move.target, move.source) if rewrite is None else (move.source, move.target)
        moved = [
            replace(record, **record.key.moved(here, there)._asdict()) if rewrite is None else rewrite.moved(record)
            for record in records
        ]
        lines = await self._lines(records, here, there) if self._moved.by_ancestors else [("", "")] * len(records)
        return [
            (item, Located(record, line), Located(other, other_line))
            for item, record, other, (line, other_line) in zip(page, records, moved, lines, strict=True)
        ]

    async def _lines(self, records: Sequence[Record], here: Key, there: Key) -> list[tuple[Lineage, Lineage]]:
        """The lineages of nodes in key order of one end at both ends."""
        # Where none is removed yet.
        visible = cast(Key, self.move.target) if self.move.has_flipped else self.move.source
        inner = [key.moved(here, visible) for key in ancestor_keys(records[0].key) if here.holds(key)]
        groups = [ancestor_keys(here), ancestor_keys(there), inner]
        found = await self._store.get([key for keys in groups for key in keys], ReadUsage(), strong=True)
        ids = iter([str(item["id"]) for item in found if item is not None])
        above, other_above, line = [lineage(islice(ids, len(keys))) for keys in groups]
        lines = []
        for record in records:
            line = line[: (depth_of(record.sk) - depth_of(here.sk)) * STEP] + id_hash(record.id)
            lines.append((above + line, other_above + line))
        return lines

    async def _root_id(self) -> str:
        """The id of the root above the source."""
        if self.move.source.sk == "#":
            return self.move.top_id
        (root,) = await self._store.get([Key(self.move.source.pk, "#")], ReadUsage(), strong=True)
        return str(cast(Item, root)["id"])

    async def _transactions(
        self, page: Sequence[_Ends], changes_of: _ChangesOf
    ) -> list[tuple[list[Change], list[Record]]]:
        """The changes of each transaction for the nodes of a page, with their records."""
        keys = [key for _, node, other in page for key in self._moved.keys_to_read(node, other)]
        found = dict(zip(keys, await self._store.get(keys, ReadUsage(), strong=True), strict=True)) if keys else {}

        def step(ends: _Ends) -> Step[Record]:
            item, node, other = ends
            changes, record = changes_of(node, other, found), node.record
            # DynamoDB counts the bytes of what is deleted, too: a sweep refused as too large could never end.
            return Step(record, changes, sum(size_of(one.item if isinstance(one, Put) else item) for one in changes))

        steps: list[Step[Record]] = []
        async for some in in_chunks(page, STEPS):
            steps += map(step, some)
        return list(in_transactions(steps, self._max_changes))

    async def _commit(self, changes: Callable[[], Awaitable[list[Change]]], **progress: Any) -> None:
        """Commit changes and the move's progress; built again where another write to the same trees was first."""
        for delay in RETRIES.delays():
            await asyncio.sleep(delay)
            async with self._locks.turn(self.move.running.partitions):
                try:
                    return await self.lease.write(await changes(), **progress)
                except Conflict:
                    await self.lease.renew()


def _existing(read_set: ReadSet, key: Key) -> Record:
    record = read_set.record(key)
    if record is None:
        raise NotFound(f"{shorten(format_path(path_of(*key)))} no longer exists.")
    return record
