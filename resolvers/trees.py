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

from collections.abc import Sequence
from dataclasses import dataclass

from resolvers import roots
from resolvers.access.grants import grant_roots
from resolvers.descendants import DescendantsRequest
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
from resolvers.lists.sorted_list import read_sorted_roots
from resolvers.pages import read_all_pages
from resolvers.session.budget import TooManyNodes, raise_first_error
from resolvers.session.request import Request
from resolvers.sorting.conditions import check_levels, path_position
from resolvers.sorting.ordering import PlaceOrder
from store.errors import BadInput
from store.model.keys import prefix_end
from store.model.records import Record

_ROOTS = Relation(RelationKind.ROOTS, ConnectionArguments(compared=True), NOTHING)
TREES_AT_ONCE = 25  # of a page: each version takes a read unit, and each further batch a round


async def read_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    """A page of a hierarchy's roots, or of the caller's grant roots, in any order; of levels that no root can have, of
    all trees.

    Raises BadInput for a condition that no node in the list can meet, BadCursor, BudgetExceeded and the error of a
    failed read.
    """
    arguments, levels = relation.arguments, request.hierarchies[hierarchy].levels
    is_whole = grant_roots(request.grants, hierarchy) is None
    listed = arguments.levels or [name for name, level in levels.items() if level.may_be_root or not is_whole]
    if arguments.where is not None:
        check_levels(arguments.where, [levels[name] for name in listed])
    if not arguments.levels or all(levels[name].may_be_root for name in listed):
        return await read_sorted_roots(request, hierarchy, relation, roots.read_roots)
    if arguments.ordering.place is PlaceOrder.POSITION:
        raise BadInput("POSITION is among siblings, and nodes of all trees have many parents; use PATH or KEY.")
    return await _read_trees(request, hierarchy, relation)


async def _read_trees(request: Request, hierarchy: str, relation: Relation) -> Page:
    """A page of the nodes of some levels in all trees."""
    arguments = relation.arguments
    bounds = None if arguments.where is None else KeyBounds.of(arguments.where, are_children=False)
    tops = sorted((await roots.read_roots(request, hierarchy, _ROOTS)).records, key=path_position)
    tops = [top for top in tops if bounds is None or arguments.has_level(top.level) or bounds.spans(top)]
    if relation.takes_whole_list or relation.total or arguments.size is None:
        tops = await roots.with_counts(request.state, tops)
    below = Relation(RelationKind.DESCENDANTS, arguments, relation.selection, relation.nodes, relation.total)
    levels = request.hierarchies[hierarchy].levels
    deep = tuple([name for name in arguments.levels if not levels[name].may_be_root])
    trees = _Trees(request, hierarchy, tops, deep, bounds)
    partitions = frozenset([hierarchy, *[top.pk for top in tops]])
    return await read_sorted_roots(request, hierarchy, below, trees.page, partitions)


@dataclass(frozen=True)
class _Trees:
    """The lists of the levels `deep` in the trees of these tops, in the order of paths."""

    request: Request
    hierarchy: str
    tops: Sequence[Record]
    deep: tuple[str, ...]
    bounds: KeyBounds | None

    async def page(self, request: Request, hierarchy: str, relation: Relation) -> Page:
        """A page, or all nodes of a list that is sorted or filtered."""
        arguments, budget = relation.arguments, request.budget
        cursors = ListCursors(CursorKind.DESCENDANTS, hierarchy, path_position)
        lo, hi = arguments.positions(cursors.decode)
        total, what = None, f"The nodes of {hierarchy} in all trees"
        if relation.total or arguments.size is None:
            total = sum([self._size(root, arguments) for root in self.tops])
            left = budget.left(compared=arguments.compared)
            least = total if arguments.size is None else min(total, arguments.size)
            if relation.nodes and not arguments.is_paged and least > left and self.bounds is None:
                raise TooManyNodes(what, least, left, compared=arguments.compared)
            if not relation.nodes:
                return Page([], total=total)
        records, limit = list[Record](), arguments.limit
        ahead = [root for root in self.tops if limit is None or _may_hold(root, lo, hi)]
        ahead = ahead[::-1] if arguments.descending else ahead
        step = len(ahead) if limit is None else TREES_AT_ONCE
        while ahead and (limit is None or len(records) < limit):
            some, ahead = await roots.with_counts(request.state, ahead[:step]), ahead[step:]
            within = (None, None, None) if limit is None else (lo, hi, limit - len(records))
            records += await self._read(some, arguments, *within)
        shown = [one for one in records if (lo is None or lo < path_position(one)) and _is_before(one, hi)]
        page = page_of(shown[:limit], arguments, total if relation.total else None, cursors)
        if not arguments.compared:
            budget.spend_nodes(len(page.records), what)
        return page

    def _size(self, root: Record, arguments: ConnectionArguments) -> int:
        """The number of nodes of the list that are in a tree."""
        listed = DescendantsRequest(root, _part(self.deep, None, arguments))
        return listed.max_size + arguments.has_level(root.level)

    async def _read(
        self, roots: Sequence[Record], arguments: ConnectionArguments, lo: str | None, hi: str | None, limit: int | None
    ) -> list[Record]:
        """The first nodes in the trees of these roots, both in reading order: all, or so many or more between two
        positions.
        """
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
                expected += self._size(root, arguments)
        lists = [part for part in parts if isinstance(part, DescendantsRequest)]
        outcomes = await read_all_pages(self.request, lists)
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
