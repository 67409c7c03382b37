"""Item lists: the nodes of a list that search items lead to, instead of the whole list.

| round | read | index | key condition | limit |
| --- | --- | --- | --- | --- |
| 1 | items of a kind | table | `near_list.py`, `search_list.py` | 6,000 of a range |
| 1 | what is known of moves | table | `pk = "kinds/location"`, where it was not read a second ago | 1,002 |
| 2 | nodes | table | keys of the nodes | 100 a request |
| 3, 4 | those that are elsewhere | table | keys of their ids, then of the nodes | 100 a request |

A list is read whole instead where that is cheaper or nothing else is exact: where it is short, where items are missing
or lead to many nodes, and for a caller who may read a part, since all share the limits of these ranges.

The items are eventually consistent, and so are the nodes unless a large move is running, as in a search.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar

from resolvers.access.grants import grant_roots
from resolvers.lists.list_request import ListRequest
from resolvers.roots import with_counts
from resolvers.search.finder import Scope, SearchIndex, Subtree, read_index
from resolvers.search.pointers import Pointer, pointed_nodes
from resolvers.session.request import Request
from store.engine import LEAST_UNITS
from store.errors import BudgetExceeded
from store.kinds.lineage import id_hash
from store.kinds.words import is_by_tree, partition
from store.model.keys import Key, KeyRange
from store.model.records import Item, Record

MIN_NODES = 1_000  # of a list; a shorter one is cached whole
MAX_ITEMS = 6_000  # of a range; so those of places are mostly one page of at most 1 MB
STEP = 1_000  # items, so that lists of nearly one length share them
NODE_PRICE = 10  # of a node read by its key, in nodes read in a range

P = TypeVar("P", bound=Pointer)


class ItemList(ABC, Generic[P]):
    """One list by the items of one `kind`, with whose name their partition keys begin.

    `identity` is equal for conditions that the same items belong to; `fact` and `way_out` are what messages say where
    these are too many.
    """

    kind: ClassVar[str]
    way_out: ClassVar[str]

    def __init__(self, request: Request, requested: ListRequest) -> None:
        self.request, self.requested = request, requested
        self.hierarchy = request.hierarchies[requested.hierarchy]

    @property
    @abstractmethod
    def identity(self) -> Hashable: ...

    @property
    @abstractmethod
    def fact(self) -> str: ...

    @abstractmethod
    def ranges(self, base: str) -> Sequence[KeyRange]:
        """The ranges of items; `base` is what their partition keys begin with."""

    @abstractmethod
    async def matching(self, read: Sequence[Sequence[Item]]) -> list[P]:
        """The items of these ranges that may be of nodes of any such list, each node's once."""

    @abstractmethod
    async def hits(self, items: Sequence[P], scope: Scope, *, is_strong: bool) -> list[P] | None:
        """Those of these items that may be of nodes of the list; None where this is not known."""

    async def records(self, tree: str, size: int | None) -> list[Record] | None:
        """The nodes, None where the list is to be read whole, if it may be; `size` is its length, if that is known."""
        request, requested, is_below = self.request, self.requested, not self.requested.is_virtual
        arguments = requested.relation.arguments
        limit = MAX_ITEMS if size is None else min(MAX_ITEMS, -(-size // STEP) * STEP)
        index, items = await request.state.once(
            (self.kind, self.hierarchy.name, tree, self.identity, is_below, limit),
            partial(self._read, tree, limit, is_below=is_below),
        )
        moves = None if index.moves is None else index.moves.in_tree(tree)
        if index.lacks[self.kind] or (moves is None and is_below):
            return None
        scope, hits = Scope([Subtree(requested.owner, itself=False)] if is_below else None, moves), None
        if items is not None:
            hits = await self.hits(items, scope, is_strong=index.is_moving)
        if size is None and (hits is None or len(hits) > MIN_NODES):
            size = await requested.read_size(request)
        left = request.budget.left(compared=True)
        may_be_whole = arguments.bounds is not None or (size is not None and size <= left)
        if may_be_whole and (hits is None or (size is not None and len(hits) * NODE_PRICE > size)):
            return None
        if items is None or hits is None or len(items) > left or len(hits) * LEAST_UNITS > request.reads.units_left:
            fact = f"{requested.description} {self.fact} are more than this request may read"
            raise BudgetExceeded(f"{fact}; {self.way_out}.")
        request.budget.spend_nodes(len(items), compared=True)
        request.state.is_of_trees = False
        found = await pointed_nodes(request, self.hierarchy.name, hits, set(), is_strong=index.is_moving)
        records = [record for record in found if record is not None and requested.holds(record)]
        return await with_counts(request.state, records) if requested.relation.counts else records

    async def _read(self, tree: str, limit: int, *, is_below: bool) -> tuple[SearchIndex, list[P] | None]:
        """What is known of the items of a hierarchy, and those that match; None where a range has more than `limit`."""
        state, base = self.request.state, partition(self.hierarchy.name, tree, self.kind)
        reads = [state.items_in(span, limit=limit, current=False) for span in self.ranges(base)]
        index = read_index(self.request, self.hierarchy, current=is_below)
        known, *read = await self.request.scheduler.gather_all([index, *reads])
        return known, None if any(len(items) == limit for items in read) else await self.matching(read)


async def found_by_items(request: Request, requested: ListRequest, ways: Sequence[ItemList[P]]) -> list[Record] | None:
    """The nodes of a list that items of one of these ways lead to, in any order; None where it is to be read whole.

    Raises BudgetExceeded where neither is within the budgets, and the error of a failed read.
    """
    hierarchy = request.hierarchies[requested.hierarchy]
    if not ways or grant_roots(request.grants, hierarchy.name) is not None:
        return None
    size = await requested.read_size(request) if requested.has_size else None
    if (size is not None and size <= MIN_NODES) or (is_by_tree(hierarchy) and requested.is_virtual):
        return None
    tree = await _tree(request, requested.owner) if is_by_tree(hierarchy) else ""
    for number, way in enumerate(ways, start=1):
        try:
            if (found := await way.records(tree, size)) is not None:
                return found
        except BudgetExceeded:
            if number == len(ways):
                raise
    return None


async def _tree(request: Request, owner: Record) -> str:
    """The hash of the id of the root above a node."""
    root = owner if owner.is_root else await request.state.node(Key(owner.pk, "#"))
    return "" if root is None else id_hash(root.id)
