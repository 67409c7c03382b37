"""Large restores: how a move job copies the nodes of a deletion to where they come back, and undoes that.

1. Copy the nodes in the order of their tombstones, parents first, each with its id record: lookups by id then find a
   node that is hidden until the commit, as before. A node that was brought back by its id meanwhile is left out, and
   with it all below it.
2. Count: the nodes are there, so their counts follow from one pass over them. It finds where the index lacked a node.

An undone restore removes the copies, and writes the tombstones again that the id records have in `was`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

from msgspec.structs import replace

from store.engine import ReadUsage, Store
from store.errors import IndexBehind, NotFound
from store.kinds.kind import Located
from store.kinds.lineage import Lineage
from store.metadata.history import (
    Gone,
    deletion_of,
    former_key,
    gone_of,
    redirect_key,
    was_gone,
    with_child,
    without_child,
)
from store.metadata.moves import Deleted, MoveTiming
from store.metadata.tree_version import level_at_depth
from store.model.attributes import Value
from store.model.decoding import decoded
from store.model.keys import Key, id_key, parent_sort_key, revision_key, subtree
from store.model.records import Change, Item, Put, Record, SubtreeRewrite, key_of, size_of
from store.reading import PAGE_ITEMS, Pages, gone_items
from store.writing.derived import MoveItems
from store.writing.move_lease import MoveLease
from store.writing.restore import Restored, may_lack
from store.writing.transaction import Step, in_transactions

T = TypeVar("T")


class RestoreCopies:
    """The copies of one large restore."""

    def __init__(self, store: Store, lease: MoveLease, items: MoveItems, timing: MoveTiming, max_changes: int) -> None:
        self._store = store
        self._lease = lease
        self._items = items
        self._timing = timing
        self._max_changes = max_changes
        self._gone = cast(Deleted, lease.move.gone)
        self._target = cast(Key, lease.move.target)
        self._deletion = deletion_of({"parent": self._gone.parent})

    async def copy(self) -> None:
        """Copy all nodes, and count them. Raises NotFound where the top is not deleted any more, Taken for a value that
        another node has, BadPath, and IndexBehind.
        """
        rewrite, page = await self._rewrite(), list[Key]()
        if self._lease.move.cursor is None:
            await self._lease.wait(self._timing.grace_seconds)
            page = [id_key(self._lease.move.top_id)]
        after = self._lease.move.cursor
        async for item in gone_items(self._store, self._gone.parent, self._gone.sk, ReadUsage(), after=after):
            if key_of(item) not in page[:1]:
                page.append(key_of(item))
            if len(page) >= PAGE_ITEMS:
                await self._copy(page, rewrite)
                page = []
        await self._copy(page, rewrite)
        await self._count()
        await self._lease.wait(self._timing.settle_seconds)

    async def _tombstones(self, page: Sequence[Item]) -> dict[str, Item]:
        """The tombstones that come back for the copies of a page, by id."""
        ids = [str(item["id"]) for item in page]
        found = zip(ids, await self._read(map(id_key, ids)), strict=True)
        return {one: was for one, item in found if (was := was_gone(item, self._deletion)) is not None}

    async def put_back(self, page: Sequence[Item]) -> dict[str, list[Change]]:
        """The changes that put these back, by id; the parent of the top has one child more again."""
        found = await self._tombstones(page)
        changes: dict[str, list[Change]] = {one: [Put(was, {"was": cast(Value, was)})] for one, was in found.items()}
        if (top := gone_of(found.get(self._lease.move.top_id))) is not None:
            changes[top.id] += with_child(await self._above(top), top)
        return changes

    async def _above(self, gone: Gone) -> Item | None:
        """The id record of the parent of a deleted node."""
        return None if gone.under is None else (await self._read([id_key(gone.under)]))[0]

    async def _rewrite(self) -> SubtreeRewrite:
        """The way from the last keys to the new ones; the parent there cannot change while the move runs."""
        above, target = list[str](), self._target
        if target.sk != "#":
            (item,) = await self._read([Key(target.pk, parent_sort_key(target.sk))])
            if item is None:
                raise NotFound("The new parent no longer exists.").at("to")
            parent = Record.of(item)
            above = [*parent.above, parent.level]
        return SubtreeRewrite(self._gone.key, target, above, self._gone.rank)

    async def _copy(self, page: Sequence[Key], rewrite: SubtreeRewrite) -> None:
        kept = await self._kept(page)
        above = [without_child(await self._above(one), one) for one, _ in kept if one.id == self._lease.move.top_id]
        move, keys = self._lease.move, [revision_key(one.id, one.revision) for one, _ in kept]
        found = dict(zip(keys, await self._read(keys), strict=True))
        copies = {
            one.id: replace(
                rewrite.moved(Restored.of(one, found[revision_key(one.id, one.revision)]).record),
                updated_at=move.started_at, changed_by=move.changed_by,
            ) for one, _ in kept
        }  # fmt: skip
        formers = [redirect_key(one.former) for one, _ in kept] if move.redirects else []
        redirects = dict(zip(formers, await self._read(formers), strict=True))
        lineages: Mapping[Key, Lineage] = await self._items.lineages([*copies.values()]) if copies else {}
        await self._items.read([Located(one, lineages[one.key]) for one in copies.values() if lineages])

        def steps() -> Iterator[Step[Gone]]:
            for one, was in kept:
                copy, redirect = copies[one.id], redirects.get(redirect_key(one.former))
                more = above[0] if one.id == move.top_id else []
                yield _step(one, [*self._items.restored(copy, was, redirect, lineages.get(copy.key)), *more])

        for changes, some in in_transactions(steps(), self._max_changes):
            await self._lease.write(changes, cursor=some[-1].key, written=self._lease.move.written + len(some))

    async def _kept(self, page: Sequence[Key]) -> list[tuple[Gone, Item]]:
        """The tombstones at these keys that still are of the deletion, and whose parents have copies at the target:
        another restore may copy a part of the same deletion elsewhere. One of each place: an import may prune several.
        """
        kept, top_id, places = dict[str, tuple[Gone, Item]](), self._lease.move.top_id, {self._lease.move.cursor}
        items = [item for item in await self._read(page) if item is not None and deletion_of(item) == self._deletion]
        unders = [*dict.fromkeys([str(item.get("under")) for item in items])]
        above = zip(unders, await self._read(map(id_key, unders)), strict=True)
        copied = {
            one for one, item in above
            if item is not None and was_gone(item, self._deletion) and self._target.holds(former_key(item))
        }  # fmt: skip
        for item in items:
            one = decoded(item, Gone)
            if (one.id == top_id or one.under in copied or one.under in kept) and one.key not in places:
                places.add(one.key)
                kept[one.id] = one, item
        if self._lease.move.cursor is None and top_id not in kept:
            raise NotFound(f"{top_id} was brought back by its id meanwhile, so there is nothing to restore.").at("id")
        return [*kept.values()]

    async def _count(self) -> None:
        """Write the counts of all copies. Raises IndexBehind where one has fewer children than were deleted with it."""
        shape, nodes, opened = Counter[str](), 0, list[_Open]()
        may_lack_some: bool | None = None
        pages = Pages(self._store, subtree(*self._target), ReadUsage())
        async for page in pages:
            tombstones = {} if may_lack_some is False else await self._tombstones(page)
            changed = list[Record]()
            for item in page:
                record = Record.of(item)
                was = gone_of(tombstones.get(record.id))
                if may_lack_some is None:
                    may_lack_some = was is not None and may_lack(self._store, was, self._store.now())
                while opened and not opened[-1].record.key.holds(record.key):
                    changed += self._closed(opened)
                shape[level_at_depth(record.level, record.depth)] += 1
                opened.append(_Open(record, was.kids if was is not None and may_lack_some else 0))
            nodes += len(page)
            await self._write_counts(changed)
        changed = []
        while opened:
            changed += self._closed(opened)
        await self._write_counts(changed)
        await self._lease.write(shape=shape, nodes=nodes, written=nodes)

    def _closed(self, opened: list["_Open"]) -> list[Record]:
        """The last node with its counts, which are added to those of its parent; none where it has them already."""
        one = opened.pop()
        if one.kids.total() < one.least:
            raise IndexBehind.of(self._lease.move.top_id)
        record = one.record
        if opened:
            opened[-1].kids[record.level] += 1
            opened[-1].below.update(one.below)
            opened[-1].below[record.level] += 1
        below = record.below if record.is_root else dict(one.below)
        counted = replace(record, kids=dict(one.kids), below=below)
        return [] if (counted.kids, counted.below) == (record.kids, record.below) else [counted]

    async def _write_counts(self, records: Sequence[Record]) -> None:
        steps = [_step(one, [Put(one.item())]) for one in records]
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


def _step(subject: T, changes: Sequence[Change]) -> Step[T]:
    return Step(subject, changes, sum([size_of(one.item) for one in changes if isinstance(one, Put)]))
