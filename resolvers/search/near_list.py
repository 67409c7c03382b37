"""Near list: the nodes of a list that lie in a circle, by the items of its cells instead of the whole list.

| round | read | index | key condition | limit |
| --- | --- | --- | --- | --- |
| 1 | cells | table | `pk = "cells/location#05" AND sk BETWEEN :first AND :end`, of up to 7 runs of cells | 6,000 |
| 1 | what is known of moves | table | `pk = "search/location"`, where it was not read a second ago | 1,002 |
| 2 | nodes | table | keys of the nodes | 100 a request |
| 3, 4 | those that are elsewhere | table | keys of their ids, then of the nodes | 100 a request |

The runs cover the circle and some of what is around it, also at the poles and at the date line. A list is read whole
instead where that is cheaper or nothing else is exact: where it is short, where the circle is wide or holds many nodes,
where items are missing, and for a caller who may read a part, since all share the limits of these ranges.

The items are eventually consistent, and so are the nodes unless a large move is running, as in a search.
"""

from functools import partial

from resolvers.access.grants import grant_roots
from resolvers.lists.list_request import ListRequest
from resolvers.roots import with_counts
from resolvers.search.finder import Scope, SearchIndex, Subtree, read_index
from resolvers.search.pointers import pointed_nodes
from resolvers.session.request import Request
from resolvers.sorting.near import NearComparison
from store.concurrency import in_chunks
from store.engine import LEAST_UNITS
from store.errors import BudgetExceeded
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.records import Record
from store.search.cells import CellItem, cover, run_range
from store.search.lineage import id_hash
from store.search.marker import Kind, is_by_tree
from store.search.words import partition

MAX_KILOMETERS = 200  # of a circle; the cells of a wider one hold much of most lists, but not of those over all trees
MIN_NODES = 1_000  # of a list; a shorter one is cached whole
MAX_RUNS = 7  # Queries of one list
MAX_ITEMS = 6_000  # of one run; of some 110 bytes, so that they are mostly one page of at most 1 MB
NODE_PRICE = 10  # of a node read by its key, in nodes read in a range


async def read_near(request: Request, requested: ListRequest) -> list[Record] | None:
    """The nodes of a list that lie in the circle of its `near`, in any order; None where it has none, or is to be read
    whole.

    Raises BudgetExceeded where neither is within the budgets, and the error of a failed read.
    """
    relation, near, hierarchy = requested.relation, requested.relation.near, request.hierarchies[requested.hierarchy]
    if near is None or grant_roots(request.grants, hierarchy.name) is not None:
        return None
    if near.kilometers > MAX_KILOMETERS and requested.has_size:
        return None
    size = await requested.read_size(request) if requested.has_size else None
    if (size is not None and size <= MIN_NODES) or (is_by_tree(hierarchy) and requested.is_virtual):
        return None
    tree = await _tree(request, requested.owner) if is_by_tree(hierarchy) else ""
    is_below = not requested.is_virtual
    index, items = await request.state.once(
        ("near", tree, near.identity, is_below), partial(_circle, request, hierarchy, near, tree, is_below=is_below)
    )
    moves = None if index.moves is None else index.moves.in_tree(tree)
    if index.lacks[Kind.PLACES] or (moves is None and is_below):
        return None
    scope, hits = Scope([Subtree(requested.owner, itself=False)] if is_below else None, moves), list[CellItem]()
    async for chunk in in_chunks(items or ()):
        hits += [one for one in chunk if relation.arguments.has_level(one.level) and scope.may_hold(one.line)]
    if size is None and (items is None or len(hits) > MIN_NODES):
        size = await requested.read_size(request)
    left = request.budget.left(compared=True)
    if size is not None and size <= left and (items is None or len(hits) * NODE_PRICE > size):
        return None
    if items is None or len(items) > left or len(hits) * LEAST_UNITS > request.reads.units_left:
        fact = f"{requested.description} within {near.kilometers:g} kilometers are more than this request may read"
        raise BudgetExceeded(f"{fact}; give fewer kilometers.")
    request.budget.spend_nodes(len(items), compared=True)
    request.state.is_of_trees = False
    found = await pointed_nodes(request, hierarchy.name, hits, set(), is_strong=index.is_moving)
    records = [record for record in found if record is not None and requested.holds(record)]
    return await with_counts(request.state, records) if relation.counts else records


async def _tree(request: Request, owner: Record) -> str:
    """The hash of the id of the root above a node."""
    root = owner if owner.is_root else await request.state.node(Key(owner.pk, "#"))
    return "" if root is None else id_hash(root.id)


async def _circle(
    request: Request, hierarchy: Hierarchy, near: NearComparison, tree: str, *, is_below: bool
) -> tuple[SearchIndex, list[CellItem] | None]:
    """What is known of the items of a hierarchy, and those in a circle, each node's once; None where a run has more
    than are read.
    """
    base = partition(hierarchy.name, tree, "cells")
    ranges = [run_range(base, run) for run in cover(near.point, near.kilometers, MAX_RUNS)]
    reads = [request.state.items_in(span, limit=MAX_ITEMS, current=False) for span in ranges]
    index, *read = await request.scheduler.gather_all([read_index(request, hierarchy, current=is_below), *reads])
    if any(len(items) == MAX_ITEMS for items in read):
        return index, None
    found: dict[str, CellItem] = {}
    for items in read:
        async for chunk in in_chunks(items):
            for one in [CellItem.of(hierarchy.name, item) for item in chunk]:
                if near.point.kilometers(one.point) <= near.kilometers:
                    found[one.id] = one
    return index, list(found.values())
