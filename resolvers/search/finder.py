"""Finder: the common parts of all searches by items: their scope, the partitions of their items, and the reads of
hits."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, Generic, TypeVar

from resolvers.access.grants import grant_roots
from resolvers.outcomes import gather_all
from resolvers.planning.page import Page
from resolvers.search.hits import Hit, HitReader, Place, Pointer, Selected
from resolvers.search.index import read_index, read_tree_index
from resolvers.search.scope import Scope, Top, read_nodes, read_top
from resolvers.session.request import Request
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import Path, node_key
from store.model.ranges import KeyRange
from store.model.records import Record
from store.search.lineage import id_hash
from store.search.word_items import is_by_tree, partition
from store.text import quantity

MAX_HITS = 100
MAX_SEARCHED_NODES = 5_000
"""Nodes that are read themselves, where the items prove nothing or are not the caller's alone. They take about 200 read
units, a tenth of what a request has, and 0.1 seconds of a processor."""


class Reading(Enum):
    """The items that a search reads first: FIRST few, since more can follow, or ONLY as many as prove nearly all
    results.
    """

    FIRST = "first"
    ONLY = "only"


@dataclass(frozen=True)
class FoundPage(Page):
    """The hits of a search; `complete` is whether it is proven that no other node belongs among them.

    `kilometers` are the distances of nodes by their ids, where the search is for what is near a point.
    """

    complete: bool = True
    kilometers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments that all searches have. Raises BadInput."""

    under: Path | None = None
    levels: frozenset[str] | None = None
    first: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.first <= MAX_HITS:
            raise BadInput(f"first is {self.first}; a search returns 0 to {MAX_HITS} nodes.")


A = TypeVar("A", bound=Arguments)


class Finder(ABC, Generic[A]):
    """One kind of search, by items whose partition keys begin with the name of their `kind`.

    | round | reads |
    | --- | --- |
    | 1 | the node below which is searched; what is to be known of moves, and items |
    | 2 | more items, where the first prove nothing |
    | 3 | the hits |

    Where each tree is searched by itself, the items come in the second round alone, since their partition depends on a
    node. Nothing is read for a caller who may read a part but what she may read, so that no limit is shared with what
    is hidden from her: all nodes of a small part, or the items of a tree that is hers.
    """

    kind: ClassVar[str]

    def __init__(self, request: Request, hierarchy: Hierarchy, asked: A) -> None:
        self._request, self._hierarchy, self._asked = request, hierarchy, asked
        self._is_by_tree = is_by_tree(hierarchy)

    @abstractmethod
    def place(self, record: Record) -> Place | None:
        """The place of a node as it is now, None where it does not match."""

    @abstractmethod
    def ranges(self, base: str, reading: Reading) -> Sequence[tuple[KeyRange, int]]:
        """The ranges of items to read first, each with a limit; `base` is what the partition keys begin with."""

    @abstractmethod
    async def candidates(self, scope: Scope, read: Sequence[Sequence[Item]]) -> tuple[Sequence[Pointer], bool]:
        """The items of the nodes in a scope that match, in the order of the result, and whether none is missing there.

        `read` are the items of the last `ranges`. More are read only after those of `Reading.FIRST`.
        """

    async def find(self, selected: Selected) -> tuple[list[Hit], bool]:
        """The hits with what is selected of them, and whether it is proven that no other node belongs among them.

        Raises BadInput where the hierarchy is searched tree by tree and no tree is given, or where a part that the
        caller may read is too large, Unavailable where its search items are incomplete.
        """
        request, name, asked = self._request, self._hierarchy.name, self._asked
        if request.state.pages.token(None) is None:
            request.state.is_cacheable = False  # no tree's token says what other trees have
        request.state.is_tagged &= bool(asked.under)
        granted = grant_roots(request.grants, name)
        if self._is_by_tree and not asked.under and granted is None:
            raise BadInput(f"Each tree of {name} is searched separately; give the path of a node as under.")
        if asked.first == 0 or granted == []:
            return [], True
        find = self._find_in_all(selected) if granted is None else self._find_in_part(selected, granted)
        hits, complete = await find
        request.budget.spend_nodes(len(hits), "The nodes that are found")
        return hits, complete

    async def _find_in_all(self, selected: Selected) -> tuple[list[Hit], bool]:
        """The hits of a caller who may see the whole hierarchy."""
        asked = self._asked
        index = read_index(self._request, self._hierarchy, current=asked.under is not None)
        if self._is_by_tree:
            (tops, root_id), found = await gather_all([self._top_and_root(asked.under or ()), index])
            base = self._base(root_id)
            read = await self.items(self.ranges(base, Reading.ONLY)) if tops else []
            moves = found.moves and found.moves.in_tree(id_hash(root_id))
        else:
            base = self._base("")
            below = [read_top(self._request, self._hierarchy.name, asked.under)] if asked.under else []
            reads = self._reads(self.ranges(base, Reading.FIRST))
            found, *read = await gather_all([index, *below, *reads])
            tops, moves = read.pop(0) if below else None, found.moves
        if tops == []:
            return [], True
        return await self._find(selected, Scope(tops, moves), read, is_strong=found.is_moving)

    async def _find_in_part(self, selected: Selected, granted: Sequence[Path]) -> tuple[list[Hit], bool]:
        """The hits of a caller who may see a part."""
        request, name, under = self._request, self._hierarchy.name, self._asked.under
        paths, tree = granted if under is None else [under], (under or granted[0])[:1]
        trees = [tree] if self._is_by_tree and tree in granted else []
        found = await read_nodes(request, name, [*paths, *trees])
        tops = [Top(one, itself=under is None) for one in found[: len(paths)] if one is not None]
        if are_small(tops):
            return await self._reader(selected).all_below(Scope(tops, None), self._asked.first), True
        root = found[-1] if trees else None
        if self._is_by_tree and (actual := tops[0].record.path[:1]) != tree:  # at an old path
            root = (await read_nodes(request, name, [actual]))[0] if actual in granted else None
        if root is None or len(tops) > 1:
            raise self._too_large(tops)
        reads = self._reads(self.ranges(self._base(root.id), Reading.ONLY))
        index, *read = await gather_all([read_tree_index(request, self._hierarchy, id_hash(root.id)), *reads])
        return await self._find(selected, Scope(tops, index.moves), read, is_strong=index.is_moving)

    async def _find(
        self, selected: Selected, scope: Scope, read: Sequence[Sequence[Item]], *, is_strong: bool
    ) -> tuple[list[Hit], bool]:
        """The hits in a scope by these items, or if they prove nothing of a small one, by all of its nodes."""
        reader = self._reader(selected, is_strong=is_strong)
        pointers, complete = await self.candidates(scope, read)
        complete = complete and (scope.tops is None or scope.moves is not None)
        if not complete and are_small(scope.tops):
            return await reader.all_below(scope, self._asked.first), True
        hits, are_all = await reader.first_of(pointers, scope, self._asked.first)
        return hits, complete and are_all

    def _too_large(self, tops: Sequence[Top]) -> BadInput:
        nodes, name = quantity(sum([top.record.subtree_size for top in tops]), "node"), self._hierarchy.name
        one = "a node" if self._asked.under is None else "another node"
        way_out = "a tree that you may read whole, or " if self._is_by_tree else ""
        return BadInput(
            f"You may read a part of {name}, and this search would be in {nodes} of it; give the path of {one} as "
            f"under: {way_out}one with at most {MAX_SEARCHED_NODES:,} nodes."
        )

    async def _top_and_root(self, under: Path) -> tuple[list[Top], str]:
        """The node below which is searched, as the only top, and the id of its root; nothing if there is none."""
        tops, root_id = await gather_all(
            [read_top(self._request, self._hierarchy.name, under), self._id_of_root(under[:1])]
        )
        if tops and tops[0].record.path[:1] != under[:1]:  # at an old path
            root_id = await self._id_of_root(tops[0].record.path[:1])
        return tops if root_id else [], root_id

    async def _id_of_root(self, path: Path) -> str:
        """The id of a root; empty if there is none."""
        item = await self._request.state.item(node_key(self._hierarchy.name, path))
        return "" if item is None else str(item["id"])

    def _base(self, root_id: str) -> str:
        """What the partition keys of the items begin with."""
        return partition(self._hierarchy, id_hash(root_id) if self._is_by_tree else "", self.kind)

    def _reader(self, selected: Selected, *, is_strong: bool = False) -> HitReader:
        return HitReader(self._request, self._hierarchy, selected, self.place, is_strong=is_strong)

    async def items(self, ranges: Sequence[tuple[KeyRange, int]]) -> list[list[Item]]:
        """The items in these ranges, each up to a limit, eventually consistent."""
        return await gather_all(self._reads(ranges))

    def _reads(self, ranges: Sequence[tuple[KeyRange, int]]) -> list[Awaitable[list[Item]]]:
        state = self._request.state
        return [state.items_in(span, limit=limit, current=False) for span, limit in ranges]


def are_small(tops: Sequence[Top] | None) -> bool:
    """Whether all nodes of a scope may be read; None is the whole hierarchy."""
    return tops is not None and sum([top.record.subtree_size for top in tops]) <= MAX_SEARCHED_NODES
