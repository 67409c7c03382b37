"""Lists over all trees of a hierarchy: the nodes of levels that no root can have, in the order of their paths.

| field | index | key condition | requests |
| --- | --- | --- | --- |
| `locations(level: CITY)` | `by_parent` | the roots | as in `roots.py` |
| – | table | the versions of their trees | one for up to 100 trees |
| – | `by_level` | in each tree as for `descendants(level: CITY)` of its root | one a tree and depth |

The counts of the versions show which trees have such nodes. A page reads the versions of 25 trees at a time, until it
is full, and of these only the trees that it lies in. A list that is sorted or filtered, and `totalCount`, take the
versions of all trees, but for those that a condition on paths leaves out. For a caller who may read a part, the
subtrees at her grant roots are the trees.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Self

from msgspec.structs import replace as replace_list

from resolvers.descendants import DescendantsRequest, levels_between
from resolvers.lists.arguments import (
    NOTHING,
    ConnectionArguments,
    CursorKind,
    KeyBounds,
    ListCursors,
    Page,
    Relation,
    RelationKind,
    encode_cursor,
    page_of,
)
from resolvers.lists.list_request import ListRequest
from resolvers.lists.sorted_list import read_sorted
from resolvers.pages import read_all_pages, readers
from resolvers.roots import HierarchyList, roots_list, virtual_owner, with_counts
from resolvers.session.budget import TooManyNodes, raise_first_error
from resolvers.session.cache import Partition
from resolvers.session.request import Request
from resolvers.sorting.conditions import path_position
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import prefix_end
from store.model.records import Counts, Record

_ROOTS = Relation(RelationKind.ROOTS, ConnectionArguments(compared=True), NOTHING)
TREES_AT_ONCE = 25  # of a page: each version takes a read unit, and each further batch a round


async def read_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    """A page of a hierarchy's roots, or of the caller's grant roots, in any order; of levels that no root can have, of
    all trees.

    Raises BadInput for a condition that no node in the list can meet, BadCursor, BudgetExceeded and the error of a
    failed read.
    """
    (found,) = await read_sorted(request, [await _list(request, hierarchy, relation)], readers(_read_own))
    if isinstance(found, Exception):
        raise found
    return found


async def _list(request: Request, hierarchy: str, relation: Relation) -> HierarchyList:
    """The list of a hierarchy that a relation leads to."""
    arguments, levels = relation.arguments, request.hierarchies[hierarchy].levels
    if all(levels[name].may_be_root for name in arguments.levels):
        return roots_list(request, hierarchy, relation)
    bounds = None if arguments.where is None else KeyBounds.of(arguments.where, are_children=False)
    below = replace(relation, kind=RelationKind.DESCENDANTS, counts=relation.counts and not relation.is_cacheable)
    deep = tuple([name for name in arguments.levels if not levels[name].may_be_root])
    requested = TreesList(virtual_owner(hierarchy), below, deep, bounds)
    requested.check_conditions(request.hierarchies[hierarchy])  # before the roots are read
    needs_tops = relation.is_cacheable or below.is_by_position
    return await requested.with_tops(request) if needs_tops else requested


async def _read_own(request: Request, lists: Sequence[ListRequest]) -> list[Page | Exception]:
    """The pages of such lists, or their errors."""
    return await request.scheduler.gather_outcomes(
        [one.page(request) for one in lists if isinstance(one, HierarchyList)]
    )


class TreesList(HierarchyList, frozen=True, eq=False, dict=True):
    """The nodes of some levels in the trees of these tops, in their order and that of paths; its owner is virtual.

    `deep` are those of the levels that no root can have. Without `tops` they are read where the list is read.
    """

    deep: tuple[str, ...]
    bounds: KeyBounds | None
    tops: Sequence[Record] | None = None
    cursor_kind: ClassVar[CursorKind] = CursorKind.DESCENDANTS

    @property
    def has_size(self) -> bool:
        return self.tops is not None

    async def with_tops(self, request: Request) -> Self:
        """The same list with its tops, and with their counts where all of them are needed."""
        relation, arguments, bounds = self.relation, self.relation.arguments, self.bounds
        tops = (await roots_list(request, self.hierarchy, _ROOTS).page(request)).records
        if not relation.is_by_position:
            tops = sorted(tops, key=path_position)
        tops = [top for top in tops if bounds is None or arguments.has_level(top.level) or bounds.spans(top)]
        if relation.takes_whole_list or relation.facets or relation.total or arguments.size is None:
            tops = await with_counts(request.state, tops)
        return replace_list(self, tops=tops)

    async def read_size(self, request: Request) -> int:
        return (self if self.tops is not None else await self.with_tops(request)).max_size

    @property
    def counts(self) -> Counts:
        counts = Counter([top.level for top in self.tops or ()])
        for top in self.tops or ():  # of levels that roots can have, only the tops are listed
            counts.update({level: count for level, count in top.descendant_counts.items() if level in self.deep})
        return counts

    @property
    def partition(self) -> Partition:
        return self.partitions(())

    def partitions(self, records: Iterable[Record]) -> frozenset[str]:
        return frozenset([self.hierarchy, *[top.pk for top in self.tops or ()]])

    @property
    def is_deep(self) -> bool:
        return True

    @property
    def description(self) -> str:
        return f"The nodes of {self.hierarchy} in all trees"

    @property
    def starts(self) -> Sequence[Record]:
        return self.tops or ()

    def between(self, hierarchy: Hierarchy) -> Self | None:
        above = levels_between(hierarchy, self.deep, self.relation.arguments)
        if above is None:
            return None
        return replace_list(self, relation=above, deep=above.arguments.levels, bounds=None)

    def holds(self, record: Record) -> bool:
        return record.level in self.deep or (record.is_root and self.relation.arguments.has_level(record.level))

    @property
    def cursors(self) -> ListCursors:
        return ListCursors(CursorKind.DESCENDANTS, self.hierarchy, path_position)

    def possible_levels(self, hierarchy: Hierarchy) -> list[Level]:
        return [hierarchy.levels[name] for name in self.relation.arguments.levels]

    async def level_counts(self, request: Request) -> Counts:
        return {level: self.counts[level] for level in self.levels}

    async def page(self, request: Request) -> Page:
        if self.tops is None:
            return await (await self.with_tops(request)).page(request)
        relation, arguments, budget = self.relation, self.relation.arguments, request.budget
        lo, hi = arguments.positions(self.cursors.decode)
        total = None
        if relation.total or arguments.size is None:
            total = self.max_size
            left = budget.left(compared=arguments.compared)
            least = total if arguments.size is None else min(total, arguments.size)
            if relation.nodes and not arguments.is_paged and least > left and self.bounds is None:
                raise TooManyNodes(self.description, least, left, compared=arguments.compared)
            if not relation.nodes:
                return Page([], total=total)
        records, limit = list[Record](), arguments.limit
        ahead = [root for root in self.tops if limit is None or _may_hold(root, lo, hi)]
        ahead = ahead[::-1] if arguments.descending else ahead
        step = len(ahead) if limit is None else TREES_AT_ONCE
        while ahead and (limit is None or len(records) < limit):
            some, ahead = await with_counts(request.state, ahead[:step]), ahead[step:]
            within = (None, None, None) if limit is None else (lo, hi, limit - len(records))
            records += await self._read(request, some, *within)
        shown = [one for one in records if (lo is None or lo < path_position(one)) and _is_before(one, hi)]
        page = page_of(shown[:limit], arguments, total if relation.total else None, self.cursors)
        if not arguments.compared:
            budget.spend_nodes(len(page.records), self.description)
        return page

    def _size(self, root: Record) -> int:
        """The number of nodes of the list that are in a tree."""
        arguments = self.relation.arguments
        listed = DescendantsRequest(root, _part(self.deep, None, arguments))
        return listed.max_size + arguments.has_level(root.level)

    async def _read(
        self, request: Request, roots: Sequence[Record], lo: str | None, hi: str | None, limit: int | None
    ) -> list[Record]:
        """The first nodes in the trees of these roots, both in reading order: all, or so many or more between two
        positions.
        """
        arguments = self.relation.arguments
        step, expected = -1 if arguments.descending else 1, 0
        parts: list[Record | DescendantsRequest] = []
        for root in roots:
            if limit is not None and expected >= limit:
                break
            part = _part(self.deep, self.bounds, arguments, limit, *_cursors(root, lo, hi))
            listed: list[Record | DescendantsRequest] = [root] if arguments.has_level(root.level) else []
            listed += [DescendantsRequest(root, part)] if self.bounds is None or self.bounds.spans(root) else []
            parts += listed[::step]
            start = path_position(root)
            if limit is not None and (lo is None or lo < start) and (hi is None or prefix_end(start) <= hi):
                expected += self._size(root)
        lists = [part for part in parts if isinstance(part, DescendantsRequest)]
        outcomes = await read_all_pages(request, lists)
        raise_first_error(outcomes)
        pages = dict(zip(lists, outcomes, strict=True))
        records: list[Record] = []
        for one in parts:
            found = [one] if isinstance(one, Record) else pages[one].records  # type: ignore[union-attr]  # no error
            records += found[::step]
        return records


def _may_hold(root: Record, lo: str | None, hi: str | None) -> bool:
    """Whether nodes of a tree may lie between two positions."""
    start = path_position(root)
    return (hi is None or start < hi) and (lo is None or lo < prefix_end(start))


def _is_before(record: Record, hi: str | None) -> bool:
    return hi is None or path_position(record) < hi


def _cursors(root: Record, lo: str | None, hi: str | None) -> list[str | None]:
    """The cursors, in the list below a root, of two positions; None for one that is not below it."""
    start = path_position(root)
    inside = [one if one is not None and one != start and one.startswith(start) else None for one in (lo, hi)]
    return [one and encode_cursor(CursorKind.DESCENDANTS, root.id, one[len(start) :]) for one in inside]


def _part(
    levels: tuple[str, ...],
    bounds: KeyBounds | None,
    arguments: ConnectionArguments,
    limit: int | None = None,
    after: str | None = None,
    before: str | None = None,
) -> Relation:
    """The nodes of some levels below a root: all, or a page from the end at which reading begins."""
    first, last = (None, limit) if arguments.descending else (limit, None)
    own = ConnectionArguments(first, after, last, before, levels, bounds=bounds, compared=True)
    return Relation(RelationKind.DESCENDANTS, own, NOTHING)
