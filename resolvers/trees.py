"""Lists over all trees of a hierarchy: the nodes of levels that no root can have, in the order of their paths.

| field | index | key condition | requests |
| --- | --- | --- | --- |
| `locations(level: CITY)` | `by_parent` | the roots, with the versions of all their trees | as in `roots.py` |
| – | `by_level` | in each tree as for `descendants(level: CITY)` of its root | one a tree and depth |

The counts of the versions show which trees have such nodes, so a page reads only those trees that it lies in, in one
round. A list that is sorted or filtered reads all of them. A redacted root has no counts, so all below it is read.
"""

from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter

from resolvers.access.grants import RedactedNode
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
from resolvers.lists.list_request import ListRequest
from resolvers.lists.sorted_list import Outcome, read_sorted_roots
from resolvers.session.budget import TooManyNodes, raise_first_error
from resolvers.session.request import Request
from resolvers.sorting.conditions import path_position
from store.model.keys import prefix_end
from store.model.records import Record

_ROOTS = Relation(RelationKind.ROOTS, ConnectionArguments(compared=True), NOTHING, counts=True)

ReadPages = Callable[[Request, Sequence[ListRequest]], Awaitable[list[Outcome]]]


async def read_trees(
    request: Request,
    hierarchy: str,
    relation: Relation,
    read_roots: Callable[[Request, str, Relation], Awaitable[Page]],
    read_pages: ReadPages,
) -> Page:
    """A page of the nodes of some levels in all trees; of levels that a root can have, of the roots alone.

    `read_roots` and `read_pages` read what the caller may see. Raises their errors, and BadCursor.
    """
    roots = sorted((await read_roots(request, hierarchy, _ROOTS)).records, key=attrgetter("pk"))
    below = Relation(
        RelationKind.DESCENDANTS, relation.arguments, relation.selection, relation.nodes, relation.total
    )  # fmt: skip

    async def read(request: Request, hierarchy: str, part: Relation) -> Page:
        return await _read(request, hierarchy, part, roots, read_pages)

    partitions = frozenset([hierarchy, *[root.pk for root in roots]])
    return await read_sorted_roots(request, hierarchy, below, read, partitions)


async def _read(
    request: Request, hierarchy: str, relation: Relation, roots: Sequence[Record], read_pages: ReadPages
) -> Page:
    """A page in the order of paths, or all nodes; the trees that it lies in are read in one round."""
    arguments, levels = relation.arguments, request.hierarchies[hierarchy].levels
    cursors = ListCursors(CursorKind.DESCENDANTS, hierarchy, path_position)
    lo, hi = arguments.positions(cursors.decode)
    deep = tuple([name for name in arguments.levels if not levels[name].may_be_root])
    whole = Relation(RelationKind.DESCENDANTS, ConnectionArguments(levels=deep, compared=True), NOTHING)
    is_counted = not any(isinstance(root, RedactedNode) for root in roots)
    total, limit, step = None, arguments.limit, -1 if arguments.descending else 1
    if is_counted:
        sizes = [DescendantsRequest(root, whole).max_size + arguments.has_level(root.level) for root in roots]
        total = sum(sizes)
        least = min(total, total if arguments.size is None else arguments.size)
        if relation.nodes and not arguments.compared and not arguments.is_paged and least > request.budget.nodes_left:
            raise TooManyNodes(_what(hierarchy), least, request.budget.nodes_left)
        if not relation.nodes:
            return Page([], total=total)
    else:
        sizes, limit = [0] * len(roots), None
    parts: list[Record | DescendantsRequest] = []  # in reading order
    expected = 0
    for root, size in list(zip(roots, sizes, strict=True))[::step]:
        start = path_position(root)
        end = prefix_end(start)
        if is_counted and ((hi is not None and hi <= start) or (lo is not None and end <= lo)):
            continue  # else all are read, to be counted
        if limit is not None and limit <= expected:
            break
        part = DescendantsRequest(root, whole if limit is None else _part(whole, root, lo, hi, arguments))
        both: list[Record | DescendantsRequest] = [root, part] if arguments.has_level(root.level) else [part]
        parts += both[::step]
        if (lo is None or lo < start) and (hi is None or end <= hi):
            expected += size
    lists = [part for part in parts if isinstance(part, DescendantsRequest)]
    outcomes = await read_pages(request, lists)
    raise_first_error(outcomes)
    pages = dict(zip(lists, outcomes, strict=True))
    records: list[Record] = []
    for one in parts:
        found = [one] if isinstance(one, Record) else pages[one].records  # type: ignore[union-attr]  # no error
        records += found[::step]
    total = len(records) if total is None else total
    if not relation.nodes:
        return Page([], total=total)
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
