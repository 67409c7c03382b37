"""Large restores: how a move job copies the nodes of a deletion to where they come back, and undoes that.

1. Copy the nodes in the order of their tombstones, parents first, each with its id record: lookups by id then find a
   node that is hidden until the commit, as before. A node that was brought back by its id meanwhile is left out, and
   with it all below it.
2. Count: the nodes are there, so their counts follow from one pass over them. It finds where the index lacked a node.

An undone restore removes the copies, and writes the tombstones again that the id records have in `was`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from msgspec.structs import replace

from store.engine import ReadUsage, Store
from store.errors import IndexBehind, NotFound
from store.kinds.kind import Located
from store.metadata.history import Gone, former_key, gone_of, redirect_key, was_gone, with_children
from store.metadata.moves import MoveTiming
from store.model.attributes import Value
from store.model.keys import Key, id_key, subtree
from store.model.records import Change, Item, Put, Record, SubtreeRewrite, key_of, size_of
from store.reading import PAGE_ITEMS, Pages, gone_items
from store.writing.derived import MoveItems, shape_of
from store.writing.move_lease import MoveLease
from store.writing.reads import Reader
from store.writing.restore import may_lack, restored
from store.writing.transaction import Step, in_transactions


class RestoreCopies:
    """The copies of one large restore."""

    def __init__(self, store: Store, lease: MoveLease, items: MoveItems, timing: MoveTiming, max_changes: int) -> None:
        self._store = store
        self._lease = lease
        self._items = items
        self._timing = timing
        self._max_changes = max_changes
        self._gone = cast(Gone, lease.move.gone)
        self._target = cast(Key, lease.move.target)

    async def copy(self, above: list[str]) -> None:
        """Copy all nodes below a new parent, to which the levels `above` lead, and count them.

        Raises NotFound where the top is not deleted any more, Taken for a value that another node has, BadPath,
        DamagedItem, and IndexBehind.
        """
        rewrite, page = SubtreeRewrite(self._gone.former, self._target, above, self._lease.move.top_rank), list[Key]()
        if self._lease.move.cursor is None:
            await self._lease.wait(self._timing.grace_seconds)
            await self._copy([id_key(self._gone.id)], rewrite)
            if self._lease.move.cursor is None:
                text = f"{self._gone.id} was brought back by its id meanwhile, so there is nothing to restore."
                raise NotFound(text).at("id")
        after = self._lease.move.cursor
        async for item in gone_items(self._store, self._gone.parent or "", self._gone.key, ReadUsage(), after=after):
            page.append(key_of(item))
            if len(page) >= PAGE_ITEMS:
                await self._copy(page, rewrite)
                page = []
        await self._copy(page, rewrite)
        await self._count()
        await self._lease.wait(self._timing.settle_seconds)

    async def put_back(self, page: Sequence[Item]) -> dict[str, list[Change]]:
        """The changes that put back the tombstones of the copies of a page, by id; the parent of the top has one child
        more again.
        """
        found = await self._tombstones([str(item["id"]) for item in page])
        changes: dict[str, list[Change]] = {one: [Put(was, {"was": cast(Value, was)})] for one, was in found.items()}
        if self._gone.id in changes:
            changes[self._gone.id] += await self._with_children(1)
        return changes

    async def _tombstones(self, ids: Sequence[str]) -> dict[str, Item]:
        """The tombstones that come back for copies with these ids, by id."""
        deletion, found = self._gone.deletion, await self._read(map(id_key, ids))
        return {
            node_id: was for node_id, item in zip(ids, found, strict=True)
            if item is not None and (was := was_gone(item, deletion)) and self._target.holds(former_key(item))
        }  # fmt: skip

    async def _with_children(self, more: int) -> list[Change]:
        """The change of the id record of the former parent of the top."""
        (parent,) = await self._read([id_key(self._gone.under or "")])
        return with_children(parent, self._gone, more)

    async def _copy(self, page: Sequence[Key], rewrite: SubtreeRewrite) -> None:
        """Copy the nodes with tombstones at these keys."""
        reader, move = Reader(self._store, ReadUsage()), self._lease.move
        parents = {self._gone.under} if move.cursor is None else await self._parents(reader, page)
        nodes = await restored(reader, page, self._gone.deletion, parents, {move.cursor})
        if not nodes:
            return
        copies = [
            replace(rewrite.moved(one.record), updated_at=move.started_at, changed_by=move.changed_by) for one in nodes
        ]
        redirects = [redirect_key(one.gone.former) for one in nodes] if move.redirects else []
        read_set = await reader.read([], [*page, *redirects])
        lineages = await self._items.lineages(copies)
        await self._items.read([Located(one, lineages[one.key]) for one in copies if lineages])
        more = await self._with_children(-1) if move.cursor is None else []

        def steps() -> Iterator[Step[str]]:
            for copy, (_, gone) in zip(copies, nodes, strict=True):
                was, redirect = cast(Item, read_set[id_key(gone.id)]), read_set.get(redirect_key(gone.former))
                yield _step(gone.key, [*self._items.restored(copy, was, redirect, lineages.get(copy.key)), *more])

        for changes, some in in_transactions(steps(), self._max_changes):
            await self._lease.write(changes, cursor=some[-1], written=self._lease.move.written + len(some))

    async def _parents(self, reader: Reader, page: Sequence[Key]) -> set[str | None]:
        """The parents of deleted nodes that have copies at the target: another restore may copy a part of the same
        deletion elsewhere.
        """
        found = [gone_of(item) for item in (await reader.read([], page)).values()]
        return {*await self._tombstones([*{one.under for one in found if one is not None and one.under is not None}])}

    async def _count(self) -> None:
        """Write the counts of all copies. Raises IndexBehind where one has fewer children than were deleted with it."""
        shape, opened = Counter[str](), list[_Open]()
        may_lack_some = may_lack(self._store, self._gone, self._store.now())
        async for page in Pages(self._store, subtree(*self._target), ReadUsage()):
            records, changed = list(map(Record.of, page)), list[Record]()
            tombstones = await self._tombstones([one.id for one in records]) if may_lack_some else {}
            for record in records:
                while opened and not opened[-1].record.key.holds(record.key):
                    changed += self._closed(opened)
                was = gone_of(tombstones.get(record.id))
                opened.append(_Open(record, 0 if was is None else was.kids))
            shape.update(shape_of(records))
            await self._write_counts(changed)
        changed = []
        while opened:
            changed += self._closed(opened)
        await self._write_counts(changed)
        await self._lease.write(shape=shape, nodes=shape.total(), written=shape.total())

    def _closed(self, opened: list["_Open"]) -> list[Record]:
        """The last node with its counts, which are added to those of its parent; none where it has them already."""
        one = opened.pop()
        if one.kids.total() < one.least:
            raise IndexBehind(self._gone.id)
        if opened:
            opened[-1].kids[one.record.level] += 1
            opened[-1].below.update(one.below)
            opened[-1].below[one.record.level] += 1
        counted = replace(one.record, kids=dict(one.kids), below=dict(one.below))
        return [] if counted == one.record else [counted]

    async def _write_counts(self, records: Sequence[Record]) -> None:
        steps = [_step(one.sk, [Put(one.item())]) for one in records]
        for changes, _ in in_transactions(steps, self._max_changes):
            await self._lease.write(changes)

    async def _read(self, keys: Iterable[Key]) -> list[Item | None]:
        wanted = [*keys]
        return await self._store.get(wanted, ReadUsage(), strong=True) if wanted else []


class _Open:
    """A copy whose descendants are being counted; it needs at `least` so many children."""

    def __init__(self, record: Record, least: int) -> None:
        self.record, self.least = record, least
        self.kids, self.below = Counter[str](), Counter[str]()


def _step(key: str, changes: Sequence[Change]) -> Step[str]:
    return Step(key, changes, sum([size_of(one.item) for one in changes if isinstance(one, Put)]))
