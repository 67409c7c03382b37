"""Deletions: what the tombstones of one deletion tell of each other.

A tombstone counts the children and descendants that were deleted with it. Fewer tombstones are right, since a node may
have come back by its id, and an index may be behind; more are not. They are counted in the index, once for each part of
a deletion: from a top on, which is a tombstone whose parent is not of the same deletion.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from store.checking.findings import Finding, Fix, mismatch, path_text, value_text
from store.engine import ReadUsage, Store
from store.metadata.history import DELETION, Tombstone, deletion_of
from store.model.attributes import Value
from store.model.decoding import problem_of
from store.model.hierarchy import Hierarchy
from store.model.keys import id_key, parent_sort_key
from store.model.ranks import is_manual, is_valid
from store.model.records import Item, condition_holds, is_id, key_of
from store.reading import gone_items


@dataclass
class _Counted:
    """A tombstone with the numbers of those that were found below it so far."""

    item: Item
    kids: int = 0
    below: int = 0

    @property
    def wrong(self) -> dict[str, Value]:
        """The counts that are no numbers or too low, with the right ones."""
        found = {"kids": self.kids, "below": self.below}
        least = {name: max(_number(self.item.get(name)), count) for name, count in found.items()}
        return {name: count for name, count in least.items() if self.item.get(name) != count}


class DeletionCheck:
    """Checks the tombstones of one hierarchy, a page of the table at a time."""

    def __init__(self, store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> None:
        self._store = store
        self._hierarchy = hierarchy
        self._reads = reads

    async def check(self, page: Sequence[Item]) -> list[Finding]:
        """The findings on the deletions of which a tombstone is on a page, without those that others have mended."""
        gone = [item for item in page if self._is_of_deletion(item)]
        found = [
            self._finding(item, wrong) for item in gone if (wrong := _wrong(item) | await self._wrong_parent(item))
        ]
        for top in await self._tops([item for item in gone if deletion_of(item)]):
            found += [self._finding(one.item, one.wrong) async for one in self._counted(top) if one.wrong]
        fixes = [cast(Fix, one.fix) for one in found]
        now = await self._store.get([fix.key for fix in fixes], self._reads, strong=True)
        return [one for one, fix, item in zip(found, fixes, now, strict=True) if condition_holds(fix.when, item)]

    def _is_of_deletion(self, item: Item) -> bool:
        """Whether an item is a tombstone, without damage beside its deletion, if it has one."""
        is_own = item["sk"] == "v0" and str(item["pk"]).startswith(f"id#{self._hierarchy.name}:")
        return is_own and any(name in item for name in DELETION) and problem_of(item, Tombstone) is None

    def _finding(self, item: Item, right: Mapping[str, Value]) -> Finding:
        wrong = [mismatch(name, value_text(item.get(name)), value_text(value)) for name, value in right.items()]
        problem = f"the deleted node {_id(item)}: {'; '.join(wrong)}"
        fix = Fix.of(key_of(item), item, {"parent": item.get("parent"), **right})
        return Finding(self._hierarchy.name, path_text(item["tree"], item["key"]), problem, fix)

    async def _wrong_parent(self, item: Item) -> dict[str, Value]:
        """The right `under` of a tombstone that has no id there: that of the one above it, or empty for a top."""
        under, key = item.get("under"), cast(str, item["key"])
        if deletion_of(item) is None or key == "#" or under == "" or is_id(self._hierarchy, under):
            return {}
        above = parent_sort_key(key)
        async for one in gone_items(self._store, str(item["parent"]), above, self._reads):
            return {"under": _id(one) if one["rank"] == above else ""}
        return {"under": ""}

    async def _tops(self, gone: Sequence[Item]) -> list[Item]:
        """The tops on a page that were deleted with others, and those that do not say so and have children there."""
        above, alone = await self._above(gone), dict[str, Item]()
        tops = [item for item in gone if _was_with_others(item) and not _is_below(item, above)]
        for item in gone:
            parent = above.get(str(item.get("under")))
            if parent is not None and _is_below(item, above) and not _was_with_others(parent):
                alone[_id(parent)] = parent
        higher = await self._above(alone.values())
        return [*tops, *[item for item in alone.values() if not _is_below(item, higher)]]

    async def _above(self, gone: Iterable[Item]) -> dict[str, Item]:
        """The id records of the parents of tombstones, by id."""
        ids = {cast(str, one) for item in gone if is_id(self._hierarchy, one := item.get("under"))}
        found = await self._store.get([id_key(one) for one in ids], self._reads, strong=True)
        return {_id(item): item for item in found if item is not None}

    async def _counted(self, top: Item) -> AsyncIterator[_Counted]:
        """The tombstones of a deletion from one of them on, each after all that are below it."""
        stack = [_Counted(top)]

        def closed() -> _Counted:
            one = stack.pop()
            if stack:
                stack[-1].kids, stack[-1].below = stack[-1].kids + 1, stack[-1].below + 1 + one.below
            return one

        async for item in gone_items(self._store, str(top["parent"]), str(top["key"]), self._reads):
            ids = [_id(one.item) for one in stack]
            if item.get("under") in ids and _id(item) not in ids:  # of the others a parent has come back
                while ids.pop() != item["under"]:
                    yield closed()
                stack.append(_Counted(item))
        while stack:
            yield closed()


def _id(item: Item) -> str:
    return cast(str, item["pk"]).removeprefix("id#")


def _number(value: Value) -> int:
    return value if type(value) is int and value > 0 else 0


def _wrong(item: Item) -> dict[str, Value]:
    """The attributes of a tombstone's deletion that are wrong by themselves, with the right values."""
    if deletion_of(item) is None:
        return {name: None for name in DELETION if name in item}
    place = item.get("place")
    is_place = place is None or (isinstance(place, str) and is_manual(place) and is_valid(place))
    return ({} if is_place else {"place": None}) | ({} if item.get("rank") == item["key"] else {"rank": item["key"]})


def _was_with_others(item: Item) -> bool:
    """Whether a tombstone says that its node was deleted with others, or says it wrongly."""
    return (item.get("kids"), item.get("below")) != (0, 0)


def _is_below(item: Item, above: Mapping[str, Item]) -> bool:
    """Whether the parent of a deleted node was deleted with it."""
    parent = above.get(str(item.get("under")))
    return parent is not None and deletion_of(parent) is not None and deletion_of(parent) == deletion_of(item)
