"""Lists: the pages of all lists of a response, with the roots of a hierarchy, in any order and under any conditions.

| list | index | key condition | requests |
| --- | --- | --- | --- |
| children, descendants, siblings | | see `children.py`, `descendants.py`, `siblings.py` | as `planner.py` decides |
| roots | `by_parent` | see `roots.py` | one |
| nodes of some levels in all trees | | the roots, then the descendants of each | as for these lists |
| roots of a caller who may read a part | table | keys of her grant roots | one BatchGetItem |

The grant roots of a caller are her roots: they are read by key, so nothing depends on what is above or beside them, and
are in the order of levels and keys. Everything below them is read as for everybody. A grant root has no siblings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import cast

from resolvers import pages, roots
from resolvers.access.grants import grant_roots, is_grant_root
from resolvers.descendants import DescendantsRequest
from resolvers.outcomes import Outcome, raise_first_error
from resolvers.planning.cursors import CursorKind, encode_cursor
from resolvers.planning.list_request import ListRequest
from resolvers.planning.page import Page, page_of
from resolvers.planning.relations import ConnectionArguments, NoSelection, Relation, RelationKind
from resolvers.planning.sorted_list import TreeCursors, read_sorted, read_sorted_roots
from resolvers.session.request import Request
from resolvers.siblings import SiblingsRequest
from resolvers.sorting.conditions import path_position
from resolvers.sorting.ordering import PlaceOrder
from store.errors import BadInput, CladeError
from store.model.keys import Path, first_rank, last_segment, node_key
from store.model.records import Record


def may_have_children(request: Request, owners: Sequence[Record]) -> Sequence[object]:
    """For each node a true value unless its counts show that nothing lies below it."""
    if not request.state.is_remote:
        return list(map(attrgetter("kids"), owners))
    # The counts of a root from an index may be older than a move's flip.
    return [owner.is_root or owner.kids for owner in owners]


async def read_pages(request: Request, lists: Sequence[ListRequest]) -> list[Outcome[Page]]:
    """The pages of lists, in order, as the grants allow; the error of a failed read is in place of its page."""
    read = pages.read_all_pages if request.grants is None else _read_granted
    for one in lists:
        if one.relation.is_sorted:
            return await read_sorted(request, lists, read)
    return await read(request, lists)


async def read_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    """A page of a hierarchy's roots, or of grant roots; of a level that no root has, the nodes in all trees."""
    tops, levels = grant_roots(request.grants, hierarchy), request.hierarchies[hierarchy].levels
    if any(not levels[name].may_be_root for name in relation.window.levels):
        if relation.window.ordering.place is PlaceOrder.POSITION:
            raise BadInput("POSITION is among siblings, and these levels have many parents; use PATH or KEY.")
        return await read_sorted_roots(request, hierarchy, relation, _read_trees, always=True)
    if tops is None:
        return await read_sorted_roots(request, hierarchy, relation, roots.read_roots)
    return await read_sorted_roots(request, hierarchy, relation, _read_grant_roots, always=True)


async def _read_granted(request: Request, lists: Sequence[ListRequest]) -> list[Outcome[Page]]:
    alone = {one: _without_siblings(one) for one in lists if _is_of_grant_root(request, one)}
    found = iter(await pages.read_all_pages(request, [one for one in lists if one not in alone]))
    return [alone[one] if one in alone else next(found) for one in lists]


def _is_of_grant_root(request: Request, requested: ListRequest) -> bool:
    return isinstance(requested, SiblingsRequest) and is_grant_root(request.grants, requested.owner.key)


def _without_siblings(requested: ListRequest) -> Outcome[Page]:
    try:
        requested.check()
    except CladeError as error:
        return requested.relation.shared_error(error)
    return page_of([], requested.window, 0 if requested.relation.total else None, requested.cursors)


async def _read_trees(request: Request, hierarchy: str, relation: Relation) -> Page:
    """The roots of some levels, and of those that no root has the nodes in all trees, ordered by path.

    One read for the roots, and then as for the lists of a response level.
    """
    window, tests, known = relation.window, relation.tests, request.hierarchies[hierarchy].levels
    every = Relation(RelationKind.ROOTS, ConnectionArguments(), NoSelection(), counts=True, tests=tests)
    read = roots.read_roots if grant_roots(request.grants, hierarchy) is None else _read_grant_roots
    found = (await read(request, hierarchy, every)).records
    deep = tuple(name for name in window.levels if not known[name].may_be_root)
    below = Relation(RelationKind.DESCENDANTS, ConnectionArguments(levels=deep), NoSelection(), tests=tests)
    trees = await pages.read_all_pages(request, [DescendantsRequest(root, below) for root in found])
    raise_first_error(trees)
    records = [root for root in found if window.has_level(root.level)]
    records += [record for tree in trees for record in cast(Page, tree).records]
    return Page(sorted(records, key=path_position), cursors=TreeCursors(hierarchy))


# -- grant roots -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GrantRootCursors:
    """The cursors of grant roots in the order of levels, keys and parents."""

    hierarchy: str

    def cursor(self, record: Record) -> str:
        return encode_cursor(CursorKind.ROOTS, self.hierarchy, self.position(record))

    def position(self, record: Record) -> str:
        key = last_segment(record.pk, record.sk)
        return first_rank(record.level, key) + path_position(record)[: -len(key) - 1]


async def _read_grant_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    """All grant roots of some levels, in the order of the list."""
    window = relation.window
    records = await _existing(request, hierarchy, grant_roots(request.grants, hierarchy) or [])
    records = [record for record in records if window.has_level(record.level)]
    request.budget.share(relation.tests).spend(len(records), f"The roots of {hierarchy}")
    if window.ordering.place in (PlaceOrder.KEY, PlaceOrder.PATH):
        return Page(sorted(records, key=path_position), cursors=TreeCursors(hierarchy))
    cursors = GrantRootCursors(hierarchy)
    return Page(sorted(records, key=cursors.position), cursors=cursors)


async def _existing(request: Request, hierarchy: str, paths: Sequence[Path]) -> list[Record]:
    """The nodes at these paths, as far as there are any; raises the error of a failed read."""
    found = await request.state.nodes([node_key(hierarchy, path) for path in paths])
    raise_first_error(found.values())
    return [record for record in found.values() if isinstance(record, Record)]
