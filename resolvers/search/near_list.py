"""Near list: the nodes of a list that lie in a circle, by the items of its cells instead of the whole list.

The items are those with `pk = "cells/location#05" AND sk BETWEEN :first AND :end`, of up to 7 runs of cells. They cover
the circle and some of what is around it, also at the poles and at the date line.
"""

from collections.abc import Hashable, Sequence

from resolvers.lists.list_request import ListRequest
from resolvers.search.finder import Scope
from resolvers.search.item_lists import ItemList
from resolvers.session.request import Request
from resolvers.sorting.near import NearComparison
from store.concurrency import in_chunks
from store.kinds.cells import CellItem, CellKind, cover, run_range
from store.model.keys import KeyRange
from store.model.records import Item

MAX_KILOMETERS = 200  # of a circle; the cells of a wider one hold much of most lists, but not of those over all trees
MAX_RUNS = 7  # Queries of one list


class NearList(ItemList[CellItem]):
    """One list, whose nodes lie in a circle of at most MAX_KILOMETERS."""

    kind = CellKind.name
    way_out = "give fewer kilometers"

    def __init__(self, request: Request, requested: ListRequest, near: NearComparison) -> None:
        super().__init__(request, requested)
        self._near = near

    @property
    def identity(self) -> Hashable:
        return self._near.identity

    @property
    def fact(self) -> str:
        return f"within {self._near.kilometers:g} kilometers"

    def ranges(self, base: str) -> Sequence[KeyRange]:
        return [run_range(base, run) for run in cover(self._near.point, self._near.kilometers, MAX_RUNS)]

    async def matching(self, read: Sequence[Sequence[Item]]) -> list[CellItem]:
        found: dict[str, CellItem] = {}
        for items in read:
            async for chunk in in_chunks(items):
                for one in [CellItem.of(self.hierarchy.name, item) for item in chunk]:
                    if self._near.point.kilometers(one.point) <= self._near.kilometers:
                        found[one.id] = one
        return list(found.values())

    async def hits(self, items: Sequence[CellItem], scope: Scope, *, is_strong: bool) -> list[CellItem]:
        has_level, hits = self.requested.relation.arguments.has_level, list[CellItem]()
        async for chunk in in_chunks(items):
            hits += [one for one in chunk if has_level(one.level) and scope.may_hold(one.line)]
        return hits
