"""Large move: a move or deletion of more than one transaction, from the state in its record to its end.

1. Copy the subtree to its new place, where it is hidden, and write the redirects from its old one: they count only
   where there is no node. (A cascade has nothing to copy; its nodes are counted, and the redirects of their paths end.)
   (A restore copies what tombstones and revisions have: `store/writing/large_restores.py`.)
2. Commit in one transaction: from then on readers see the new place and no longer the old one.
3. Sweep what is left at the old place, and unregister the move.

Between the steps the job waits until all readers know the tree version and the record (grace), and until the indexes
have caught up with the table (settle). Each step can be stopped anywhere and repeated.

A move is worked on by one process at a time, which has its lease (fencing). Each write of the worker is one transaction
with the move's record, on condition that the record is unchanged since this worker's last write. So a worker that slept
past its lease, or whose response came too late, writes nothing after another worker has taken over.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, cast

from store.concurrency import RetryPolicy, TreeLocks
from store.engine import ReadUsage, Store
from store.errors import (
    CHECK_HINT,
    BadInput,
    CladeError,
    Conflict,
    DamagedItem,
    IndexBehind,
    NotFound,
    rfc3339,
    shorten,
)
from store.kinds.items import removed
from store.kinds.kind import Located
from store.kinds.lineage import Lineage, running_key
from store.kinds.marker import Recipes, marker_key
from store.metadata.history import line_to, redirect_of_deleted
from store.metadata.moves import Move, MoveState, MoveTiming
from store.metadata.tree_version import log_item
from store.model.keys import Key, ancestor_keys, parent_sort_key, path_of, subtree
from store.model.paths import format_path
from store.model.records import Change, Delete, Item, Put, Record, SubtreeRewrite, size_of
from store.reading import Pages, read_marker
from store.writing.derived import MoveItems, keys_of_moves, shape_of
from store.writing.large_restores import RestoreCopies
from store.writing.move_lease import MoveLease
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.transaction import Step, TransactionBuilder, in_transactions

RETRIES = RetryPolicy(0.25, 0.25)  # of a transaction on whole trees while others write to them


class MoveJob:
    """The steps of one move; `is_decided` is set when it is committed or undone, `refusal` says why it is undone."""

    def __init__(self, store: Store, lease: MoveLease, locks: TreeLocks, timing: MoveTiming) -> None:
        self.is_decided = asyncio.Event()
        self.refusal: CladeError | None = None
        self.lease = lease
        self._store = store
        self._locks = locks
        self._timing = timing
        self._recipes: Recipes = {}  # as of the last beginning of the run
        self._items = MoveItems(store, lease.move, {})
        self._max_changes = (store.max_commit_changes or store.max_changes) - 1  # besides the record of the move

    @property
    def move(self) -> Move:
        return self.lease.move

    async def run(self) -> None:
        """Run to the end. Raises LeaseLost where another worker has the move, Unavailable to be run again.

        A repair that has items of kinds made of more does not end before a move that was registered before it.
        """
        marker = await read_marker(self._store, self.move.hierarchy)
        self._recipes = {} if marker is None else marker.recipes
        self._items = MoveItems(self._store, self.move, self._recipes)
        if self.move.state is MoveState.COPYING:
            try:
                await self._copy()
                await self._commit()
            except (BadInput, IndexBehind, DamagedItem) as error:
                if isinstance(error, DamagedItem) and self.move.gone is None:
                    raise  # a repair mends it, and the move goes on
                self.refusal, reason = error, str(error)
                if isinstance(error, DamagedItem):  # whose message names the item
                    reason = f"What is stored of a deleted node is damaged. {CHECK_HINT}"
                await self.lease.write(state=MoveState.UNDONE, cursor=None, reason=reason)
        self.is_decided.set()
        if self.move.state is MoveState.SWEEPING:
            await self._sweep()
        else:
            await self._remove_copies()
        await self.lease.wait(self._timing.settle_seconds)
        await self._unregister()

    # -- before the commit ---------------------------------------------------------------------------------------------

    async def _copy(self) -> None:
        """Copy the subtree to its new place, and count its nodes by level and depth.

        Where its nodes have items of kinds, a deletion waits as well: a search that does not know of it takes nodes at
        their places, while a lookup of the same response would see the commit.
        """
        if self.move.gone is not None:
            return await self._restored().copy(await self._levels_above(cast(Key, self.move.target)))
        if self.move.cursor is None and (self.move.target is not None or self._recipes):
            await self.lease.wait(self._timing.grace_seconds)
        if self.move.target is None:
            version = (await self._read([])).version(self.move.source.pk)
            has_redirects = version.has_redirects and self.move.redirects
            async for page in self._pages(self.move.source, self.move.cursor):
                if not has_redirects:
                    await self._write_copied([], [Record.of(item) for item in page])
                    continue
                for changes, records in self._transactions(page, partial(redirect_of_deleted, has_redirects=True)):
                    await self._write_copied(changes, records)
            return
        top, rewrite = await self._rewrite()
        lineages: Mapping[Key, Lineage] = {}

        def copied(record: Record) -> list[Change]:
            copy = rewrite.moved(top if record.key == top.key else record)
            return self._items.copied(record, copy, lineages.get(record.key))

        async for page in self._pages(self.move.source, self.move.cursor):
            records = list(map(Record.of, page))
            lineages = await self._items.lineages(records)
            await self._items.read([Located(rewrite.moved(one), lineages[one.key]) for one in records if lineages])
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
        top = _existing(await self._read([source]), source)
        return top, SubtreeRewrite.of(top, target, await self._levels_above(target))

    async def _levels_above(self, target: Key) -> list[str]:
        if target.sk == "#":
            return []
        key = Key(target.pk, parent_sort_key(target.sk))
        parent = _existing(await self._read([key]), key)
        return [*parent.above, parent.level]

    async def _commit(self) -> None:
        """Commit the move: readers see the counts, logs and items of kinds of both ends change with its state."""
        source, target = self.move.source, self.move.target
        rewrite = None if target is None or self.move.gone else (await self._rewrite())[1]
        above = [*ancestor_keys(source), *([] if target is None else ancestor_keys(target))]
        keys = [source, *above, marker_key(self.move.hierarchy)]

        async def changes() -> list[Change]:
            reader = Reader(self._store, ReadUsage())
            read_set = await reader.read(self.move.partitions, keys)
            top, now = _existing(read_set, source), self._store.now()
            context = WriteContext(rfc3339(now), now, self.move.changed_by)
            transaction = TransactionBuilder(None, read_set, context, top)
            await reader.read_into(read_set, [], keys_of_moves(transaction.recipes, read_set, top))
            transaction.commit(self.move, rewrite)
            await transaction.settle(reader)
            return transaction.changes()

        await self._write(changes, state=MoveState.SWEEPING, cursor=None, written=0)

    # -- after the commit ----------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Remove the remaining items at the old place, and point the id records to the new one; after a restore, take
        the tombstones out of these.
        """
        if self.move.cursor is None and self.move.gone is None:
            await self.lease.wait(self._timing.grace_seconds)
        root_id, line = await self._items.root_id(self.move.source), self.move.line

        def swept(record: Record) -> list[Change]:
            nonlocal line
            line = line_to(record, line, self.move.source)
            return self._items.swept(record, root_id, line)

        async for page in self._pages(self.move.source, self.move.cursor):
            await self._items.read([removed(Record.of(item), root_id) for item in page])
            for changes, records in self._transactions(page, swept):  # which is ahead of what is written
                written, led = self.move.written + len(records), list[str]()
                if self.move.target is None:
                    led = reduce(lambda led, one: line_to(one, led, self.move.source), records, self.move.line)
                await self.lease.write(changes, cursor=records[-1].sk, written=written, line=led)

    async def _remove_copies(self) -> None:
        if self.move.target is None:
            return
        root_id = await self._items.root_id(self.move.target)
        async for page in self._pages(self.move.target):
            await self._items.read([removed(Record.of(item), root_id) for item in page])
            back = {} if self.move.gone is None else await self._restored().put_back(page)
            undone = partial(self._items.undone, root_id=root_id, back=back)
            for changes, _ in self._transactions(page, undone):
                await self.lease.write(changes)

    def _restored(self) -> RestoreCopies:
        return RestoreCopies(self._store, self.lease, self._items, self._timing, self._max_changes)

    async def _unregister(self) -> None:
        """Allow other writes to both subtrees again."""
        state = MoveState.DONE if self.move.state is MoveState.SWEEPING else MoveState.UNDONE

        async def changes() -> list[Change]:
            read_set, now = await self._read([]), self._store.now()
            changes: list[Change] = []
            if self._recipes:
                changes.append(Delete(running_key(self.move.hierarchy, self.move.id)))
            for partition in self.move.running.partitions:
                version = read_set.version(partition)
                moves = tuple(ref for ref in version.moves if ref.id != self.move.id)
                changes += [version.incremented({}, moves=moves, now=now), log_item(version, [], rfc3339(now), now)]
            return changes

        await self._write(changes, state=state, ended_at=rfc3339(self._store.now()))

    # -- reading and writing -------------------------------------------------------------------------------------------

    async def _read(self, keys: Sequence[Key]) -> ReadSet:
        return await Reader(self._store, ReadUsage()).read(self.move.running.partitions, keys)

    def _pages(self, top: Key, cursor: str | None = None) -> Pages:
        """The items of a subtree after a sort key."""
        key_range = subtree(*top)
        return Pages(self._store, key_range if cursor is None else key_range.after(cursor), ReadUsage())

    def _transactions(
        self, page: Sequence[Item], changes_of: Callable[[Record], Sequence[Change]]
    ) -> Iterator[tuple[list[Change], list[Record]]]:
        """The changes of each transaction for the nodes of a page, with their records."""

        def step(item: Item) -> Step[Record]:
            record = Record.of(item)
            changes = changes_of(record)
            # DynamoDB counts the bytes of what is deleted, too: a sweep refused as too large could never end.
            return Step(record, changes, sum(size_of(one.item if isinstance(one, Put) else item) for one in changes))

        return in_transactions(map(step, page), self._max_changes)

    async def _write(self, changes: Callable[[], Awaitable[list[Change]]], **progress: Any) -> None:
        """Commit changes and the move's progress; built again where another write to the same trees was first."""
        for delay in RETRIES.delays():
            await asyncio.sleep(delay)
            async with self._locks.turn(self.move.partitions):
                try:
                    return await self.lease.write(await changes(), **progress)
                except Conflict:
                    await self.lease.renew()


def _existing(read_set: ReadSet, key: Key) -> Record:
    record = read_set.record(key)
    if record is None:
        raise NotFound(f"{shorten(format_path(path_of(*key)))} no longer exists.")
    return record
