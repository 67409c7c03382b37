"""Large move: a move or deletion of more than one transaction, from the state in its record to its end.

1. Copy the subtree to its new place, where it is hidden, and write the redirects from its old one: they count only
   where there is no node. (A cascade has nothing to copy; its nodes are counted, and the redirects of their paths go.)
2. Commit in one transaction: from then on readers see the new place and no longer the old one.
3. Sweep what is left at the old place, and unregister the move.

Between the steps the job waits until all readers know the tree version and the record (grace), and until the indexes
have caught up with the table (settle). Each step can be stopped anywhere and repeated.

One process works on a move at a time (lease): each write is one transaction with the move's record, on condition
that the record is unchanged since this worker's last write. So a worker that slept past its lease, or whose response
came too late, writes nothing after another worker has taken over (fencing).

A cascade removes the search items of its nodes. A move writes them only if their partitions change: to another tree,
with `search="tree"`. Those at the new place are written with the copies, those at the old one are removed with the
old nodes.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import msgspec.structs

from store.concurrency import RetryPolicy, TreeLocks
from store.engine import ReadUsage, Store
from store.errors import BadInput, Conflict, NotFound, rfc3339, shorten
from store.metadata.history import id_item, redirect_item, revision_item, tombstone_item, without_redirect
from store.metadata.moves import Move, MoveState, MoveTiming
from store.metadata.tree_version import log_item
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, ancestor_keys, depth_of, parent_sort_key, path_of, subtree
from store.model.paths import format_path
from store.model.records import Change, Delete, Item, Put, Record, SubtreeRewrite, size_of
from store.reading import Pages
from store.search.items import Located, is_indexed, item_keys, removals, search_items, takes_items
from store.search.lineage import STEP, Lineage, id_hash, lineage, running_key
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.search_changes import moved_keys
from store.writing.transaction import Step, TransactionBuilder, in_transactions, shape_of

RETRIES = RetryPolicy(0.25, 0.25)
ChangesOf = Callable[[Record], Sequence[Change]]


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
        new, old = replace(self.move, **values), self.move
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


class MovedItems:
    """The changes of search items for the nodes of one move; `hierarchy` is None where its class is not loaded."""

    def __init__(self, store: Store, move: Move, hierarchy: Hierarchy | None) -> None:
        self._store = store
        self._move = move
        self._hierarchy: Hierarchy | None = None  # where items are written
        if hierarchy is not None and is_indexed(hierarchy):
            is_written = move.target is None or takes_items(hierarchy, move.source, move.target)
            self._hierarchy = hierarchy if is_written else None

    async def lineages(self, records: Sequence[Record]) -> Mapping[Key, Lineage]:
        """The lineages that nodes of the source, in key order, have at the target; none where no items are written."""
        source, target = self._move.source, self._move.target
        if self._hierarchy is None or target is None:
            return {}
        inner = [key for key in ancestor_keys(records[0].key) if source.holds(key)]
        line = lineage([str(item["id"]) for item in await self._read([*ancestor_keys(target), *inner])])
        found, deeper = {}, depth_of(target.sk) - depth_of(source.sk)
        for record in records:
            line = line[: (depth_of(record.sk) + deeper) * STEP] + id_hash(record.id)
            found[record.key] = line
        return found

    def copied(self, record: Record, line: Lineage | None) -> list[Change]:
        """The changes for a node at the target with this lineage."""
        if self._hierarchy is None or line is None:
            return []
        return [Put(item) for item in search_items(self._hierarchy, Located(record, line))]

    async def root_id(self, top: Key) -> str:
        """The id of the root above the source or the target; empty where no items are written."""
        if self._hierarchy is None or top.sk == "#":
            return self._move.top_id
        return str((await self._read([Key(top.pk, "#")]))[0]["id"])

    def swept(self, record: Record, root_id: str) -> list[Change]:
        """The changes for a node at the source, below this root."""
        return [] if self._hierarchy is None else removals(self._hierarchy, record, root_id)

    def undone(self, record: Record, root_id: str) -> list[Change]:
        """The changes for the copy of a node at the target, below this root, which is removed."""
        return [] if self._hierarchy is None else list(map(Delete, item_keys(self._hierarchy, record, root_id)))

    async def _read(self, keys: Sequence[Key]) -> list[Item]:
        """The items of nodes that cannot be removed while the move runs."""
        found = await self._store.get(keys, ReadUsage(), strong=True)
        return [item for item in found if item is not None]


class MoveJob:
    """`has_committed` is set when the move has committed or was undone; `refusal` is then the reason for the latter."""

    def __init__(
        self, store: Store, lease: MoveLease, locks: TreeLocks, timing: MoveTiming, hierarchy: Hierarchy | None
    ) -> None:
        """`hierarchy` is that of the move, None where its class is not loaded."""
        self.has_committed = asyncio.Event()
        self.refusal: BadInput | None = None
        self.lease = lease
        self._store = store
        self._locks = locks
        self._timing = timing
        self._indexed = hierarchy if hierarchy is not None and is_indexed(hierarchy) else None
        self._items = MovedItems(store, lease.move, hierarchy)
        self._max_changes = (store.max_commit_changes or store.max_changes) - 1  # besides the record of the move

    @property
    def move(self) -> Move:
        return self.lease.move

    async def run(self) -> None:
        """Run to the end. Raises LeaseLost where another worker has the move, Unavailable to be run again."""
        if self.move.state is MoveState.COPYING:
            try:
                await self._copy()
                await self._commit_move()
            except BadInput as error:
                self.refusal = error
                await self.lease.write(state=MoveState.UNDONE, cursor=None, reason=str(error))
        self.has_committed.set()
        if self.move.state is MoveState.SWEEPING:
            await self._sweep()
        else:
            await self._remove_copies()
        await self.lease.wait(self._timing.settle_seconds)
        await self._unregister()

    # -- before the commit ---------------------------------------------------------------------------------------------

    async def _copy(self) -> None:
        """Copy the subtree to its new place, and count its nodes by level and depth.

        Where its nodes have search items, a deletion waits as well: a search that does not know of it takes nodes at
        their places, while a lookup of the same response would see the commit.
        """
        if self.move.cursor is None and (self.move.target is not None or self._indexed is not None):
            await self.lease.wait(self._timing.grace_seconds)
        if self.move.target is None:
            has_redirects = (await self._read([])).version(self.move.source.pk).has_redirects
            async for page in self._pages(self.move.source, self.move.cursor):
                if not has_redirects:
                    await self._write_copied([], [Record.of(item) for item in page])
                    continue
                for changes, records in self._transactions(page, partial(without_redirect, has_redirects=True)):
                    await self._write_copied(changes, records)
            return
        top, rewrite = await self._rewrite()
        lineages: Mapping[Key, Lineage] = {}

        def copied(record: Record) -> list[Change]:
            moved = rewrite.moved(top if record.key == top.key else record)
            return [Put(moved.item()), Put(redirect_item(record)), *self._items.copied(moved, lineages.get(record.key))]

        async for page in self._pages(self.move.source, self.move.cursor):
            lineages = await self._items.lineages(list(map(Record.of, page)))
            for changes, records in self._transactions(page, copied):
                await self._write_copied(changes, records)
        await self.lease.wait(self._timing.settle_seconds)

    async def _write_copied(self, changes: Sequence[Change], records: Sequence[Record]) -> None:
        shape = dict(Counter(self.move.shape) + Counter(shape_of(records)))
        written = self.move.written + len(records)
        await self.lease.write(changes, cursor=records[-1].sk, written=written, shape=shape)

    async def _rewrite(self) -> tuple[Record, SubtreeRewrite]:
        """The top of the subtree and the rewrite of keys; neither can change while the move runs."""
        source, target = self.move.source, cast(Key, self.move.target)
        parent = [] if target.sk == "#" else [Key(target.pk, parent_sort_key(target.sk))]
        read_set = await self._read([source, *parent])
        records = [_existing(read_set, key) for key in (source, *parent)]
        above = [level for record in records[1:] for level in (*record.above, record.level)]
        return records[0], SubtreeRewrite.of(records[0], target, above)

    async def _commit_move(self) -> None:
        source, target = self.move.source, self.move.target
        rewrite = None if target is None else (await self._rewrite())[1]
        keys = [source, *ancestor_keys(source), *([] if target is None else ancestor_keys(target))]

        async def changes() -> list[Change]:
            reader = Reader(self._store, ReadUsage())
            read_set = await reader.read(self.move.running.partitions, keys)
            top, now = _existing(read_set, source), time.time()
            if self._indexed is not None:
                await reader.read_into(read_set, [], moved_keys(self._indexed, read_set, top))
            context = WriteContext(rfc3339(now), now, self.move.changed_by)
            transaction = TransactionBuilder(self._indexed, read_set, context, top)
            if rewrite is None:
                transaction.record_removal(top, self.move.shape)
            else:
                transaction.record_move(top, rewrite.moved(top), self.move.shape)
            return transaction.changes()

        await self._commit(changes, state=MoveState.SWEEPING, cursor=None, written=0)

    # -- after the commit ----------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Remove the remaining items at the old place, and point the id records to the new one."""
        if self.move.cursor is None:
            await self.lease.wait(self._timing.grace_seconds)
        root_id = await self._items.root_id(self.move.source)
        async for page in self._pages(self.move.source, self.move.cursor):
            for changes, records in self._transactions(page, lambda record: self._swept(record, root_id)):
                written = self.move.written + len(records)
                await self.lease.write(changes, cursor=records[-1].sk, written=written)

    def _swept(self, record: Record, root_id: str) -> list[Change]:
        move, items = self.move, self._items.swept(record, root_id)
        if move.target is not None:
            key = record.key.moved(move.source, move.target)
            return [Delete(record.key), Put(id_item(msgspec.structs.replace(record, pk=key.pk, sk=key.sk))), *items]
        tombstone = tombstone_item(record, move.started_at, move.changed_by)
        return [Delete(record.key), Put(revision_item(record)), Put(tombstone), *items]

    async def _remove_copies(self) -> None:
        if self.move.target is None:
            return
        root_id = await self._items.root_id(self.move.target)

        def removed(record: Record) -> list[Change]:
            return [Delete(record.key), *self._items.undone(record, root_id)]

        async for page in self._pages(self.move.target):
            for changes, _ in self._transactions(page, removed):
                await self.lease.write(changes)

    async def _unregister(self) -> None:
        """Allow other writes to both subtrees again."""
        state = MoveState.DONE if self.move.state is MoveState.SWEEPING else MoveState.UNDONE

        async def changes() -> list[Change]:
            read_set, now = await self._read([]), time.time()
            changes: list[Change] = []
            if self._indexed is not None:
                changes.append(Delete(running_key(self._indexed.name, self.move.id)))
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

    def _transactions(self, page: Sequence[Item], changes_of: ChangesOf) -> Iterator[tuple[list[Change], list[Record]]]:
        """The changes of each transaction for the nodes of a page, with their records."""

        def step(item: Item) -> Step[Record]:
            record = Record.of(item)
            changes = changes_of(record)
            # DynamoDB counts the bytes of what is deleted, too: a sweep refused as too large could never end.
            return Step(record, changes, sum(size_of(one.item if isinstance(one, Put) else item) for one in changes))

        return in_transactions(map(step, page), self._max_changes)

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
