"""Finder: what all searches by items have in common: their scope, where their items are, and reading the hits."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, cast

from resolvers.planning.page import Page
from resolvers.search.hits import Hit, HitReader, Place, Pointer, Selected
from resolvers.search.index import SearchIndex, read_index
from resolvers.search.scope import Scope, Top, paths_of, read_tops
from resolvers.session.outcomes import gather_outcomes, raise_first_error
from resolvers.session.request import Request
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import Key, Path
from store.model.ranges import KeyRange
from store.model.records import Record
from store.search.lineage import STEP, id_hash
from store.search.word_items import is_by_tree, partition

MAX_HITS = 100
MAX_SEARCHED_NODES = 2_000  # below a node that are read themselves where the items prove nothing
MAX_TREES = 4  # whose items are read for one tree, since nodes were moved from them


@dataclass(frozen=True)
class FoundPage(Page):
    """The hits of a search; `complete` is whether it is proven that no other node belongs among them.

    `kilometers` are the distances of nodes by their ids, where the search is for what is near a point.
    """

    complete: bool = True
    kilometers: dict[str, float] = field(default_factory=dict)


class Arguments(Protocol):
    """The arguments that all searches have."""

    @property
    def under(self) -> Path | None: ...

    @property
    def levels(self) -> frozenset[str] | None: ...

    @property
    def first(self) -> int: ...


def check_first(first: int) -> None:
    """Raise BadInput for a number of hits that no search returns."""
    if not 0 <= first <= MAX_HITS:
        raise BadInput(f"first is {first}; a search returns 0 to {MAX_HITS} nodes.")


class Finder(ABC):
    """One kind of search, by items whose partition keys begin with the name of their `kind`."""

    kind: ClassVar[str]

    def __init__(self, request: Request, hierarchy: Hierarchy) -> None:
        self._request, self._hierarchy = request, hierarchy

    @abstractmethod
    def place(self, record: Record) -> Place | None:
        """The place of a node as it is now, None where it does not match."""

    @abstractmethod
    async def candidates(self, scope: Scope, bases: Sequence[str]) -> tuple[Sequence[Pointer], bool]:
        """The items of the nodes in a scope that match, in the order of the result, and whether none is missing there.

        `bases` are what the partition keys of the items begin with, one for each tree whose items are by themselves.
        """

    async def find(self, asked: Arguments, selected: Selected) -> tuple[list[Hit], bool]:
        """The hits with what is selected of them, and whether it is proven that no other node belongs among them.

        Raises BadInput where the hierarchy is searched tree by tree and no tree is given, Unavailable where its search
        items are incomplete.
        """
        request, hierarchy = self._request, self._hierarchy
        if request.state.store_version is None:
            request.state.is_cacheable = False  # no tree version proves what other trees have
        paths = paths_of(request, hierarchy.name, asked.under)
        is_one_tree = asked.under is not None or (paths is not None and len({path[0] for path, _ in paths}) <= 1)
        if is_by_tree(hierarchy) and not is_one_tree:
            raise BadInput(f"Each tree of {hierarchy.name} is searched by itself; give the path of a node as under.")
        if asked.first == 0 or paths == []:
            return [], True
        if paths is None:
            tops, index = None, await read_index(request, hierarchy, current=False)
        elif request.grants is None:
            calls = [read_tops(request, hierarchy.name, paths), read_index(request, hierarchy, current=True)]
            outcomes = await gather_outcomes(calls)
            raise_first_error(outcomes)
            tops, index = cast(tuple[list[Top], SearchIndex], outcomes)
        else:
            tops = await read_tops(request, hierarchy.name, paths)
            if are_small(tops):
                # Nothing but what the caller may see is read, so neither reads nor time depend on anything else.
                reader = HitReader(request, hierarchy, selected, self.place)
                return self._spent(await reader.all_below(Scope.of(tops, None), asked.first)), True
            index = await read_index(request, hierarchy, current=True)
        if tops == []:
            return [], True
        reader = HitReader(request, hierarchy, selected, self.place, is_strong=index.is_moving)
        hits, complete = await self._hits(asked.first, Scope.of(tops, index.moves), reader)
        return self._spent(hits), complete

    def _spent(self, hits: list[Hit]) -> list[Hit]:
        self._request.budget.spend_nodes(len(hits), "The nodes that are found")
        return hits

    async def _hits(self, first: int, scope: Scope, reader: HitReader) -> tuple[list[Hit], bool]:
        bases = await self._bases(scope)
        found, complete = ([], False) if bases is None else await self.candidates(scope, bases)
        complete = complete and (scope.tops is None or scope.moves is not None)
        if not complete and are_small(scope.tops):
            return await reader.all_below(scope, first), True
        hits, are_all = await reader.first_of(found, scope, first)
        return hits, complete and are_all

    async def _bases(self, scope: Scope) -> list[str] | None:
        """What the partition keys of the items begin with; None where the items are in too many trees."""
        if not is_by_tree(self._hierarchy):
            return [partition(self._hierarchy, "", self.kind)]
        tops: Sequence[Top] = scope.tops or ()
        ids = {top.record.pk: top.record.id for top in tops if top.record.is_root}
        keys = {Key(top.record.pk, "#") for top in tops if top.record.pk not in ids}
        # As items, since grants may hide the ids of roots, which the caller does not see here.
        items = await self._request.state.items(keys, current=True) if keys else {}
        raise_first_error(items.values())
        ids |= {key.pk: cast(str, item["id"]) for key, item in cast(dict[Key, Item | None], items).items() if item}
        roots = [id_hash(ids[pk]) for pk in dict.fromkeys([top.record.pk for top in tops]) if pk in ids]
        left = scope.moves.trees(scope.reached or ()) if scope.moves is not None else []
        roots = list(dict.fromkeys([*roots, *left]))
        bases = [partition(self._hierarchy, root[:STEP], self.kind) for root in roots]
        return bases if len(bases) <= MAX_TREES else None

    async def items(self, ranges: Sequence[tuple[KeyRange, int]]) -> list[list[Item]]:
        """The items in these ranges, each up to a limit, eventually consistent."""
        calls = [self._request.state.items_in(span, limit=limit, current=False) for span, limit in ranges]
        outcomes = await gather_outcomes(calls)
        raise_first_error(outcomes)
        return cast(list[list[Item]], outcomes)


def are_small(tops: Sequence[Top] | None) -> bool:
    """Whether all nodes of a scope may be read; None is the whole hierarchy."""
    return tops is not None and sum([top.record.subtree_size for top in tops]) <= MAX_SEARCHED_NODES
