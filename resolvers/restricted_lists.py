"""Restricted lists: children, descendants and roots for callers with grants.

Below a granted node everything is granted, so its lists are read like any (`pages.py`). Above the grants a list has
redacted nodes and the tops of granted subtrees. Their keys follow from the grants, so they are read by key, and no
Query reads their siblings. Cursors and order disclose nothing of hidden siblings either: the order is by level and key,
not the order that an editor has given them.

| list | index | key condition | requests |
| --- | --- | --- | --- |
| roots, children outside grants | table | keys of the granted paths, cut to their depth | one BatchGetItem |
| descendants of a redacted node | table | the same, and `begins_with(sk, :top)` of each granted top | one a top |
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from resolvers import pages, roots
from resolvers.access.grants import Grants, RedactedNode, highest, total_withheld
from resolvers.descendants import DescendantsRequest
from resolvers.lists.arguments import (
    ConnectionArguments,
    CursorKind,
    ListCursors,
    Page,
    Relation,
    RelationKind,
    by_key_from,
    encode_cursor,
    page_of,
)
from resolvers.lists.list_request import ListRequest
from resolvers.lists.sorted_list import read_sorted, read_sorted_roots
from resolvers.session.budget import gather_outcomes, raise_first_error
from resolvers.session.request import Request
from resolvers.sorting.conditions import check_levels
from resolvers.sorting.ordering import PlaceOrder
from resolvers.trees import read_trees
from store.errors import BadInput
from store.model.keys import KeyRange, Path, below, first_rank, last_segment, node_key, subtree
from store.model.paths import format_path
from store.model.records import Record


def may_have_children(request: Request, owners: Sequence[Record]) -> Sequence[object]:
    """For each node a true value unless its counts show that nothing lies below it."""
    if request.state.store_version is not None and request.grants is None:
        return [owner.kids for owner in owners]
    # A redacted node has no counts, and those of a root from an index may be older than a move's commit.
    return [isinstance(owner, RedactedNode) or owner.is_root or owner.kids for owner in owners]


async def read_pages(request: Request, lists: Sequence[ListRequest]) -> list[Page | Exception]:
    """The pages of lists, in order, as the grants allow; the error of a failed read is in place of its page."""
    return await read_sorted(request, lists, _read_pages)


async def read_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    """A page of a hierarchy's roots, of what the grants allow; of levels that no root can have, of all trees.

    Raises BadInput for a condition that no node in the list can meet.
    """
    arguments, levels = relation.arguments, request.hierarchies[hierarchy].levels
    listed = arguments.levels or [name for name, level in levels.items() if level.may_be_root]
    if arguments.where is not None:
        check_levels(arguments.where, [levels[name] for name in listed])
    if all(levels[name].may_be_root for name in listed):
        return await read_sorted_roots(request, hierarchy, relation, _read_roots)
    if arguments.ordering.place is PlaceOrder.POSITION:
        raise BadInput("POSITION is among siblings, and nodes of all trees have many parents; use PATH or KEY.")
    return await read_trees(request, hierarchy, relation, _read_roots, _read_pages)


async def _read_pages(request: Request, lists: Sequence[ListRequest]) -> list[Page | Exception]:
    grants = request.grants
    restricted = [] if grants is None else [one for one in lists if isinstance(one.owner, RedactedNode)]
    if not restricted or grants is None:
        return await pages.read_all_pages(request, lists)
    families = _Families(request, grants)
    outcomes = await gather_outcomes([_read_page(families, requested) for requested in restricted])
    found = dict(zip(restricted, outcomes, strict=True))
    rest = [requested for requested in lists if requested not in found]
    found.update(zip(rest, await pages.read_all_pages(request, rest), strict=True))
    return [found[requested] for requested in lists]


async def _read_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    if request.grants is None or () in request.grants.roots(hierarchy):
        return await roots.read_roots(request, hierarchy, relation)
    family = await _Families(request, request.grants).of(hierarchy, ())
    return _family_page(request, family, relation.arguments, ListCursors(CursorKind.ROOTS, hierarchy, _first_rank))


async def _read_page(families: "_Families", requested: ListRequest) -> Page:
    owner = requested.owner
    if requested.relation.total:
        raise total_withheld(owner)
    if isinstance(requested, DescendantsRequest):
        return await _descendants(families.request, families.grants, requested)
    family = await families.of(owner.hierarchy, owner.path)
    kind = requested.cursor_kind
    position = by_key_from(len(owner.sk)) if kind is CursorKind.CHILDREN_BY_KEY else _first_rank
    cursors = ListCursors(kind, format_path(owner.path), position)
    return _family_page(families.request, family, requested.relation.arguments, cursors)


# -- the children of one node, or the roots ----------------------------------------------------------------------------


def _contains(arguments: ConnectionArguments, record: Record) -> bool:
    """Whether a node is of the list's levels and between its bounds; what these leave besides is tested later."""
    bounds = arguments.bounds
    return arguments.has_level(record.level) and (bounds is None or not bounds.is_exact or bounds.where.test(record))


def _first_rank(record: Record) -> str:
    """The rank of a node before any reordering."""
    return first_rank(record.level, last_segment(record.pk, record.sk))


@dataclass
class _Families:
    """The visible children of nodes that are not granted themselves, and visible roots; each family is read once."""

    request: Request
    grants: Grants
    _reads: dict[tuple[str, Path], asyncio.Future[list[Record]]] = field(default_factory=dict)

    async def of(self, hierarchy: str, parent: Path) -> list[Record]:
        """A node's children, or a hierarchy's roots for the empty path, in the order of levels and keys."""
        place = hierarchy, parent
        if place not in self._reads:
            self._reads[place] = asyncio.ensure_future(self._read(*place))
        return await self._reads[place]

    async def _read(self, hierarchy: str, parent: Path) -> list[Record]:
        depth, tops = len(parent), self.grants.roots(hierarchy)
        paths = {top[: depth + 1] for top in tops if len(top) > depth and top[:depth] == parent}
        return sorted(await _existing(self.request, hierarchy, paths), key=_first_rank)


async def _existing(request: Request, hierarchy: str, paths: Iterable[Path]) -> list[Record]:
    """The nodes at these paths, as far as there are any; raises the error of a failed read."""
    found = await request.state.nodes([node_key(hierarchy, path) for path in sorted(paths)])
    raise_first_error(found.values())
    return [record for record in found.values() if isinstance(record, Record)]


def _family_page(
    request: Request, family: Iterable[Record], arguments: ConnectionArguments, cursors: ListCursors
) -> Page:
    """A page of siblings; the position in a cursor is by level and key, or by key alone. Raises BadCursor."""
    found, position = [record for record in family if _contains(arguments, record)], cursors.position
    if cursors.order is CursorKind.CHILDREN_BY_KEY:
        found.sort(key=position)
    lo, hi = arguments.positions(cursors.decode)
    page = [
        record
        for record in (reversed(found) if arguments.descending else found)
        if (lo is None or lo < position(record)) and (hi is None or position(record) < hi)
    ][: arguments.limit]
    request.budget.spend_nodes(len(page[: arguments.size]), compared=arguments.compared)
    return page_of(page, arguments, len(found), cursors)


# -- the descendants of a redacted node --------------------------------------------------------------------------------


async def _descendants(request: Request, grants: Grants, requested: DescendantsRequest) -> Page:
    """The redacted nodes below a redacted node, and the granted subtrees, in path order."""
    owner, arguments = requested.owner, requested.relation.arguments
    cursors = ListCursors(CursorKind.DESCENDANTS, format_path(owner.path), by_key_from(len(owner.sk)))
    span = arguments.between_cursors(below(owner.pk, owner.sk), lambda cursor: owner.sk + cursors.decode(cursor))
    depth = len(owner.path)
    tops = [top for top in highest(grants.roots(owner.hierarchy)) if top[:depth] == owner.path]
    paths = {top[:length] for top in tops for length in range(depth + 1, len(top) + 1)}
    visible = sorted(await _existing(request, owner.hierarchy, paths), key=lambda record: record.sk)
    parts = [part for record in visible for part in _parts(requested, span, record)]
    records = await _read_parts(request, parts[::-1] if arguments.descending else parts, arguments)
    return page_of(records, arguments, None, cursors)


async def _read_parts(
    request: Request, parts: Sequence[Record | DescendantsRequest], arguments: ConnectionArguments
) -> list[Record]:
    """Nodes, and the lists between them, in reading order: all, or one after the other up to the limit."""
    records: list[Record] = []
    if arguments.limit is None:
        lists = [part for part in parts if isinstance(part, DescendantsRequest)]
        found = dict(zip(lists, await pages.read_all_pages(request, lists), strict=True))
        for part in parts:
            records += [part] if isinstance(part, Record) else _records(found[part], arguments)
        request.budget.spend_nodes(len(parts) - len(lists), compared=arguments.compared)
        return records
    for part in parts:
        if (rest := arguments.limit - len(records)) <= 0:
            break
        if isinstance(part, Record):
            request.budget.spend_nodes(1)
            records.append(part)
        else:
            (page,) = await pages.read_all_pages(request, [_first_of(part, rest, arguments)])
            records += _records(page, arguments)
    return records


def _first_of(requested: DescendantsRequest, size: int, arguments: ConnectionArguments) -> DescendantsRequest:
    """The first nodes of a list, or the last ones where the page is read from its end."""
    own = requested.relation.arguments
    first, last = (None, size) if arguments.descending else (size, None)
    cut = replace(own, first=first, last=last)
    relation = Relation(RelationKind.DESCENDANTS, cut, requested.relation.selection)
    return DescendantsRequest(requested.owner, relation)


def _records(page: Page | Exception, arguments: ConnectionArguments) -> list[Record]:
    """A page's records in reading order; raises the error in its place."""
    if isinstance(page, Exception):
        raise page
    return page.records[::-1] if arguments.descending else page.records


def _parts(requested: DescendantsRequest, span: KeyRange, record: Record) -> list[Record | DescendantsRequest]:
    """The parts of a list in a range at a node below its owner: the node itself, and all below it if it is granted."""
    arguments, depth = requested.relation.arguments, record.depth - requested.owner.depth
    parts: list[Record | DescendantsRequest] = []
    is_in_range = span.lo <= record.sk < span.hi and _contains(arguments, record)
    if is_in_range and (arguments.max_depth is None or depth <= arguments.max_depth):
        parts.append(record)
    deeper = None if arguments.max_depth is None else arguments.max_depth - depth
    whole = subtree(record.pk, record.sk)
    if (
        not isinstance(record, RedactedNode)
        and (deeper is None or deeper > 0)
        and span.lo < whole.hi
        and whole.lo < span.hi
    ):
        parts.append(DescendantsRequest(record, _relation(requested, span, record, deeper)))
    return parts


def _relation(requested: DescendantsRequest, span: KeyRange, top: Record, max_depth: int | None) -> Relation:
    """The part of a list below a granted node, as a list of its own; a bound inside its subtree is a cursor."""
    lo, hi, size = span.lo, span.hi, len(top.sk)
    after = lo[size:-1] if lo.startswith(top.sk) else ""
    before = hi[size:] if hi.startswith(top.sk) else ""
    arguments = ConnectionArguments(
        after=encode_cursor(CursorKind.DESCENDANTS, top.id, after) if after else None,
        before=encode_cursor(CursorKind.DESCENDANTS, top.id, before) if before else None,
        levels=requested.relation.arguments.levels,
        max_depth=max_depth,
        bounds=requested.relation.arguments.bounds,
        compared=requested.relation.arguments.compared,
    )
    return Relation(RelationKind.DESCENDANTS, arguments, requested.relation.selection)
