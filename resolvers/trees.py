"""Lists over all trees of a hierarchy: the nodes of levels that no root can have, in the order of their paths.

| field | index | key condition | requests |
| --- | --- | --- | --- |
| `locations(level: CITY)` | `by_parent` | the roots, with the versions of all their trees | as in `roots.py` |
| – | `by_level` | in each tree as for `descendants(level: CITY)` of its root | one a tree and depth |

The counts of the versions show which trees have such nodes, so a page reads only those trees that it lies in, in one
round. A list that is sorted or filtered reads all of them. For a caller who may read a part, the subtrees at her grant
roots are the trees.
"""

from collections.abc import Sequence

from resolvers import roots
from resolvers.access.grants import grant_roots
from resolvers.descendants import DescendantsRequest
from resolvers.lists.arguments import (
    NOTHING,
    ConnectionArguments,
    CursorKind,
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

_ROOTS = Relation(RelationKind.ROOTS, ConnectionArguments(compared=True), NOTHING, counts=True)


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
    """A page of the nodes of some levels in all trees; of levels that a root can have, of the roots alone."""
    tops = sorted((await roots.read_roots(request, hierarchy, _ROOTS)).records, key=path_position)
    below = Relation(
        RelationKind.DESCENDANTS, relation.arguments, relation.selection, relation.nodes, relation.total
    )  # fmt: skip

    async def read(request: Request, hierarchy: str, part: Relation) -> Page:
        return await _read(request, hierarchy, part, tops)

    partitions = frozenset([hierarchy, *[top.pk for top in tops]])
    return await read_sorted_roots(request, hierarchy, below, read, partitions)


async def _read(request: Request, hierarchy: str, relation: Relation, tops: Sequence[Record]) -> Page:
    """A page in the order of paths, or all nodes; the trees that it lies in are read in one round."""
    arguments, levels = relation.arguments, request.hierarchies[hierarchy].levels
    cursors = ListCursors(CursorKind.DESCENDANTS, hierarchy, path_position)
    lo, hi = arguments.positions(cursors.decode)
    deep = tuple([name for name in arguments.levels if not levels[name].may_be_root])
    whole = Relation(RelationKind.DESCENDANTS, ConnectionArguments(levels=deep, compared=True), NOTHING)
    limit, step = arguments.limit, -1 if arguments.descending else 1
    sizes = [DescendantsRequest(top, whole).max_size + arguments.has_level(top.level) for top in tops]
    total = sum(sizes)
    least = min(total, total if arguments.size is None else arguments.size)
    if relation.nodes and not arguments.compared and not arguments.is_paged and least > request.budget.nodes_left:
        raise TooManyNodes(_what(hierarchy), least, request.budget.nodes_left)
    if not relation.nodes:
        return Page([], total=total)
    parts: list[Record | DescendantsRequest] = []  # in reading order
    expected = 0
    for top, size in list(zip(tops, sizes, strict=True))[::step]:
        start = path_position(top)
        end = prefix_end(start)
        if (hi is not None and hi <= start) or (lo is not None and end <= lo):
            continue
        if limit is not None and limit <= expected:
            break
        part = DescendantsRequest(top, whole if limit is None else _part(whole, top, lo, hi, arguments))
        both: list[Record | DescendantsRequest] = [top, part] if arguments.has_level(top.level) else [part]
        parts += both[::step]
        if (lo is None or lo < start) and (hi is None or end <= hi):
            expected += size
    lists = [part for part in parts if isinstance(part, DescendantsRequest)]
    outcomes = await read_all_pages(request, lists)
    raise_first_error(outcomes)
    pages = dict(zip(lists, outcomes, strict=True))
    records: list[Record] = []
    for one in parts:
        found = [one] if isinstance(one, Record) else pages[one].records  # type: ignore[union-attr]  # no error
        records += found[::step]
    records = [
        one for one in records if (lo is None or lo < path_position(one)) and (hi is None or path_position(one) < hi)
    ]
    page = page_of(records[: arguments.limit], arguments, total if relation.total else None, cursors)
    if not arguments.compared:
        request.budget.spend_nodes(len(page.records), _what(hierarchy))
    return page


def _part(whole: Relation, root: Record, lo: str | None, hi: str | None, arguments: ConnectionArguments) -> Relation:
    """A page of the nodes below a root that lie between two positions, from the end at which reading begins."""
    start = path_position(root)
    after, before = [
        encode_cursor(CursorKind.DESCENDANTS, root.id, one[len(start) :])
        if one is not None and one != start and one.startswith(start)
        else None
        for one in (lo, hi)
    ]
    first, last = (None, arguments.limit) if arguments.descending else (arguments.limit, None)
    page = ConnectionArguments(
        first=first, after=after, last=last, before=before, levels=whole.arguments.levels, compared=True
    )
    return Relation(RelationKind.DESCENDANTS, page, NOTHING)


def _what(hierarchy: str) -> str:
    return f"The nodes of {hierarchy} in all trees"
