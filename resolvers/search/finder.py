"""Finder: the common parts of all searches by items: what is known of the items of a hierarchy, the scope of a search,
the partitions of its items, and the reads of hits.

| what is known of the items | index | key condition |
| --- | --- | --- |
| marker, moved nodes, running moves | table | `pk = "kinds/location"` |
| of one tree: marker | table | key `("kinds/drive", "-")` |
| of one tree: moved nodes | table | `pk = "kinds/drive" AND begins_with(sk, "Xy12aBdrive:")` |

A caller who may read a part is served from what is hers alone, so that no limit is shared with what she may not see,
and nothing of it can be told: by all nodes of a small part, or by the items of a tree that is hers.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from resolvers.access.grants import grant_roots
from resolvers.ancestors import kinds_for_all_levels
from resolvers.lists.arguments import NOTHING, Page, Selection
from resolvers.lookup import ByPath, find_nodes
from resolvers.roots import with_counts
from resolvers.search.pointers import Pointer, pointed_nodes
from resolvers.session.budget import raise_first_error
from resolvers.session.request import Request
from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import BadInput, NotIndexed
from store.kinds.items import index_range
from store.kinds.lineage import RUNNING, Lineage, MovedNode, Moves, id_hash, moved_nodes, steps
from store.kinds.marker import Marker, all_lacking, lacking, marker_key, missing_text
from store.kinds.registry import KINDS, is_asked
from store.kinds.words import is_by_tree, partition
from store.metadata.moves import MARGIN_SECONDS
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, KeyRange, Path, node_key, tree_version_key
from store.model.records import Item, Record

MAX_MOVED = 1_000  # nodes; where more were moved, repair makes their items unnecessary
MAX_HITS = 100
MAX_COUNTED = 200  # candidates that are all read where `totalCount` is selected: one BatchGetItem more than the hits
MAX_SEARCHED_NODES = 2_000  # that are read themselves where the items prove nothing, or are not all the caller's
ATTEMPTS = 3  # to read candidates, since some do not match any more


class SearchIndex(NamedTuple):
    """What is known of the search items of a hierarchy: `moves` are the nodes that were moved, None where they are too
    many; `is_moving` is whether a large move is running. `lacks` is what is missing of each kind, in words.
    """

    moves: Moves | None
    is_moving: bool
    lacks: Mapping[str, Sequence[str]]

    def check(self, hierarchy: Hierarchy, kind: str) -> None:
        """Raise NotIndexed where items of a kind are missing."""
        if found := self.lacks[kind]:
            raise NotIndexed(missing_text(hierarchy.name, found, KINDS[kind].word))


async def read_index(request: Request, hierarchy: Hierarchy, *, current: bool) -> SearchIndex:
    """What a search has to know of a hierarchy; `current` as of now, else as of a second ago at most.

    One Query, at most once a second on DynamoDB. That is often enough: a large move waits between its steps until
    all requests have ended that may not know of it (`store/metadata/moves.py`). A search below a node reads it anew,
    since there it decides which nodes are found.
    """
    state, key = request.state, ("search", hierarchy.name)
    found: SearchIndex | None = state.pages.get(None, key)
    if found is not None:
        return found
    if not current and state.validators.need_versions and (hint := state.pages.cache.peek(key)) is not None:
        read_at, found = hint[0]
        if state.pages.versions.clock() - read_at <= MARGIN_SECONDS:
            return found
    began = state.pages.versions.clock()
    found = await _read(request, hierarchy)
    if state.validators.need_versions:
        state.pages.cache.put_hint(key, (began, found))
    else:
        state.pages.put(None, key, found, 0)
    return found


async def _read_tree_index(request: Request, hierarchy: Hierarchy, tree: str) -> SearchIndex:
    """The same of one tree alone, as of now; `tree` is the hash of the id of its root."""
    state, key = request.state, marker_key(hierarchy.name)
    moved = state.items_once(moved_nodes(hierarchy.name, tree), MAX_MOVED + 1)
    marker, items = await request.scheduler.gather_all([state.item(key), moved])
    lacks = await _lacks(request, hierarchy, marker)
    return SearchIndex(None if len(items) > MAX_MOVED else Moves(map(MovedNode.of, items)), True, lacks)


async def _read(request: Request, hierarchy: Hierarchy) -> SearchIndex:
    items = await request.state.items_once(index_range(hierarchy.name), MAX_MOVED + 2)
    marker = items[0] if items and items[0]["sk"] == marker_key(hierarchy.name).sk else None
    lacks = await _lacks(request, hierarchy, marker)
    if len(items) > MAX_MOVED + 1:
        return SearchIndex(None, True, lacks)
    others = [item for item in items if item is not marker]
    is_moving = any(str(item["sk"]).startswith(RUNNING) for item in others)
    moved = [MovedNode.of(item) for item in others if not str(item["sk"]).startswith(RUNNING)]
    return SearchIndex(Moves(moved), is_moving, lacks)


async def _lacks(request: Request, hierarchy: Hierarchy, item: Item | None) -> dict[str, Sequence[str]]:
    """What search items are missing of each kind, by the marker or, where there is none, if there were ever nodes."""
    if item is None:
        key = tree_version_key(hierarchy.name)
        (version,) = (await request.state.strong_items([key])).values()
        if not TreeVersion.of(hierarchy.name, version).number:
            return {name: [] for name in KINDS}
    marker = Marker.of(hierarchy.name, item)
    return {name: lacking(hierarchy, marker, kind) for name, kind in KINDS.items()}


async def missing_items(store: Store, hierarchies: Iterable[Hierarchy]) -> list[str]:
    """The sentences on hierarchies of which items of kinds are missing. Raises DamagedItem."""
    searched = [one for one in hierarchies if is_asked(one)]
    keys = [key for one in searched for key in (marker_key(one.name), tree_version_key(one.name))]
    items = await store.get(keys, ReadUsage(), strong=True) if keys else []
    found = []
    for one, marker, version in zip(searched, items[::2], items[1::2], strict=True):
        if marker is not None or TreeVersion.of(one.name, version).number:
            lacks = all_lacking(one, Marker.of(one.name, marker))
            found += [missing_text(one.name, texts, word) for word, texts in lacks.items()]
    return found


@dataclass(frozen=True)
class Subtree:
    """A subtree that is searched, by its first node; `itself` is whether that may be found, too."""

    record: Record
    itself: bool

    def holds(self, record: Record) -> bool:
        return self.record.key.holds(record.key) and (self.itself or record.key != self.record.key)


@dataclass(frozen=True)
class Scope:
    """The nodes that a search may return, by `under` and by the caller's grants: of these subtrees, None for the whole
    hierarchy.

    Search items have the ids of the ancestors of their nodes. So nodes of other subtrees are left out before anything
    of them is read.

    `moves` is None where the moved nodes are too many to be read; then nodes below them may be missing.
    """

    subtrees: Sequence[Subtree] | None
    moves: Moves | None

    def may_hold(self, line: Lineage) -> bool:
        """Whether a node with such a lineage is in the scope; what is found has to be checked by `holds`."""
        if self.subtrees is None:
            return True
        found = steps(line if self.moves is None else self.moves.present(line))
        return not (self._above.isdisjoint(found[:-1]) and self._own.isdisjoint(found[-1:]))

    def holds(self, record: Record) -> bool:
        """Whether a node is in the scope."""
        return self.subtrees is None or any(one.holds(record) for one in self.subtrees)

    @cached_property
    def _above(self) -> frozenset[str]:
        return frozenset([id_hash(one.record.id) for one in self.subtrees or ()])

    @cached_property
    def _own(self) -> frozenset[str]:
        return frozenset([id_hash(one.record.id) for one in self.subtrees or () if one.itself])


async def read_subtree(request: Request, hierarchy: str, under: Path) -> list[Subtree]:
    """The subtree below the node at a path, which itself is not searched; none if there is no such node."""
    return [Subtree(one, itself=False) for one in await _nodes(request, hierarchy, [under]) if one is not None]


async def _nodes(request: Request, hierarchy: str, paths: Sequence[Path]) -> list[Record | None]:
    """The nodes at these paths, None where there is none: one round. Former paths lead to their nodes."""
    found = await find_nodes(request, [(ByPath(hierarchy, path), NOTHING) for path in paths]) if paths else []
    raise_first_error(found)
    return cast(list[Record | None], found)


Place = tuple[Any, ...]
"""The place of a node in the result, by which nodes are sorted; its last part is the id of the node."""


class Hit(NamedTuple):
    place: Place
    record: Record


class Selected(NamedTuple):
    """What is selected of the hits: `below` are their relations, None if that is not known; `counts` is whether
    `descendantCount` is, which roots have in the versions of their trees; `total` whether `totalCount` is.
    """

    below: Selection | None = None
    counts: bool = True
    total: bool = False


Nodes = Mapping[Key, Record | Exception | None]


class Reading(Enum):
    """The items that a search reads first: FIRST few, since more can follow, or ONLY as many as prove nearly all
    results.
    """

    FIRST = "first"
    ONLY = "only"


@dataclass
class FoundPage(Page):
    """The hits of a search; `complete` is whether it is proven that no other node belongs among them."""

    complete: bool = True


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
    """One kind of search, by the items of a `kind`, with whose name their partition keys begin.

    A class may search less than the items hold, which another version of it searches: then a search leaves out what
    only that one finds before it counts or limits anything, so that it finds what it would with items of its own.

    | round | reads |
    | --- | --- |
    | 1 | the node below which is searched; what is to be known of moves, and items |
    | 2 | more items, where the first prove nothing |
    | 3 | the hits |
    | 4, 5, 6 | what `further` reads, and its hits |

    Where each tree is searched by itself, the items come in the second round alone, since their partition depends on a
    node. So they do for a caller who may read a part, if they are all hers; all nodes of a small part are read instead.
    """

    kind: ClassVar[str]

    def __init__(self, request: Request, hierarchy: Hierarchy, asked: A, selected: Selected) -> None:
        self._request, self._hierarchy, self._asked, self._selected = request, hierarchy, asked, selected
        self._is_by_tree = is_by_tree(hierarchy)
        self.total: int | None = 0
        """The number of all nodes that match, None where that is not known."""
        self.are_known = False
        """Whether the candidates are all nodes that match, wherever they are in the result; `candidates` sets it."""

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

    async def settled(self, hits: Sequence[Hit], own: Nodes, *, is_strong: bool) -> list[Hit]:
        """Those of some hits that match, where that depends on further nodes; `own` are nodes that were read."""
        return list(hits)

    async def further(self, scope: Scope, *, is_strong: bool) -> tuple[Sequence[Pointer], bool]:
        """More items, of nodes that come after all other hits, and whether none is missing there."""
        return [], True

    async def find(self) -> tuple[list[Hit], bool]:
        """The hits with what is selected of them, and whether it is proven that no other node belongs among them.

        Raises BadInput where the hierarchy is searched tree by tree and no tree is given, or where a part that the
        caller may read is too large, NotIndexed where search items are missing.
        """
        request, name, asked = self._request, self._hierarchy.name, self._asked
        request.state.is_of_trees = False
        granted = grant_roots(request.grants, name)
        if self._is_by_tree and not asked.under and granted is None:
            raise BadInput(f"Each tree of {name} is searched separately; give the path of a node as under.")
        if (asked.first == 0 and not self._selected.total) or granted == []:
            return [], True
        hits, complete = await (self._find_in_all() if granted is None else self._find_in_part(granted))
        request.budget.spend_nodes(len(hits), "The nodes that are found")
        return hits, complete

    async def _find_in_all(self) -> tuple[list[Hit], bool]:
        """The hits of a caller who may see the whole hierarchy."""
        asked = self._asked
        index = read_index(self._request, self._hierarchy, current=asked.under is not None)
        if self._is_by_tree:
            (subtrees, base), found = await self._request.scheduler.gather_all(
                [self._subtrees_and_base(asked.under or ()), index]
            )
            read = await self.items(self.ranges(base, Reading.ONLY)) if subtrees else []
        else:
            base = partition(self._hierarchy.name, "", self.kind)
            below = [read_subtree(self._request, self._hierarchy.name, asked.under)] if asked.under else []
            reads = self._reads(self.ranges(base, Reading.FIRST))
            found, *read = await self._request.scheduler.gather_all([index, *below, *reads])
            subtrees = read.pop(0) if below else None
        found.check(self._hierarchy, self.kind)
        if subtrees == []:
            return [], True
        moves = found.moves.in_tree(base.split("#")[1]) if self._is_by_tree and found.moves is not None else found.moves
        return await self._find(Scope(subtrees, moves), read, is_strong=found.is_moving)

    async def _find_in_part(self, granted: Sequence[Path]) -> tuple[list[Hit], bool]:
        """The hits of a caller who may read a part, by what is hers alone. Raises BadInput where that is not enough."""
        request, name, under = self._request, self._hierarchy.name, self._asked.under
        paths, tree = granted if under is None else [under], (under or granted[0])[:1]
        trees = [tree] if self._is_by_tree and tree in granted else []
        found = await _nodes(request, name, [*paths, *trees])
        subtrees = [Subtree(one, itself=under is None) for one in found[: len(paths)] if one is not None]
        if are_small(subtrees):
            return await self._all_below(Scope(subtrees, None)), True
        root = found[-1] if trees else None
        if self._is_by_tree and (actual := subtrees[0].record.path[:1]) != tree:  # at a former path
            (root,) = await _nodes(request, name, [actual]) if actual in granted else [None]
        if root is None or len(subtrees) > 1:
            raise self._too_large(subtrees)
        root_hash = id_hash(root.id)
        reads = self._reads(self.ranges(partition(self._hierarchy.name, root_hash, self.kind), Reading.ONLY))
        index, *read = await self._request.scheduler.gather_all(
            [_read_tree_index(request, self._hierarchy, root_hash), *reads]
        )
        index.check(self._hierarchy, self.kind)
        return await self._find(Scope(subtrees, index.moves), read, is_strong=index.is_moving)

    async def _find(self, scope: Scope, read: Sequence[Sequence[Item]], *, is_strong: bool) -> tuple[list[Hit], bool]:
        """The hits in a scope by these items, or if they prove nothing of a small one, by all of its nodes."""
        first = self._asked.first
        pointers, complete = await self.candidates(scope, read)
        complete = complete and (scope.subtrees is None or scope.moves is not None)
        if not complete and are_small(scope.subtrees):
            return await self._all_below(scope), True
        size, is_counted = self._size(pointers, 0, are_known=complete and self.are_known)
        hits, are_all = await self._first_of(pointers, size, scope, is_strong=is_strong)
        complete = complete and are_all
        if is_counted or len(hits) < first:
            pointers, are_known = await self.further(scope, is_strong=is_strong)
            if not are_known and len(hits) < first and are_small(scope.subtrees):
                return await self._all_below(scope), True
            size, is_counted = self._size(pointers, len(hits), are_known=is_counted and are_known)
            others, are_all = await self._first_of(pointers, size, scope, is_strong=is_strong)
            complete = complete and (len(hits) >= first or (are_known and are_all))
            hits += others
        self.total = len(hits) if is_counted else None
        return await self._counted(hits[:first]), complete

    def _size(self, found: Sequence[Pointer], before: int, *, are_known: bool) -> tuple[int, bool]:
        """How many of the candidates are read, after the hits `before` them, and whether that is to count them all."""
        is_counted = self._selected.total and are_known and before + len(found) <= MAX_COUNTED
        return (len(found) if is_counted else max(0, self._asked.first - before)), is_counted

    def _too_large(self, subtrees: Sequence[Subtree]) -> BadInput:
        nodes, name = sum([one.record.subtree_size for one in subtrees]), self._hierarchy.name
        one = "a node" if self._asked.under is None else "another node"
        operator = "a tree that you may read whole is searched at any size"
        if not self._is_by_tree:
            operator = f'with search="tree" in the class of {name}, a tree that you may read whole could be searched'
        return BadInput(
            f"You may read a part of {name}, and this search would be in {nodes:,} nodes of it, of which at most "
            f"{MAX_SEARCHED_NODES:,} are searched. Give the path of {one} with fewer below it as under; {operator}."
        )

    async def _subtrees_and_base(self, under: Path) -> tuple[list[Subtree], str]:
        """The subtree below a path, and what the partition keys of the items in its tree begin with."""
        key = node_key(self._hierarchy.name, under[:1])
        found, root_id = await self._request.scheduler.gather_all(
            [read_subtree(self._request, self._hierarchy.name, under), self._id_at(key)]
        )
        if found and found[0].record.pk != key.pk:  # at a former path
            root_id = await self._id_at(Key(found[0].record.pk, "#"))
        return found if root_id else [], partition(self._hierarchy.name, id_hash(root_id), self.kind)

    async def _id_at(self, key: Key) -> str:
        """The id of a root, which grants may hide, and which the caller does not see here; empty if there is none."""
        item = await self._request.state.item(key)
        return "" if item is None else Record.of(item).id

    async def items(self, ranges: Sequence[tuple[KeyRange, int]]) -> list[list[Item]]:
        """The items in these ranges, each up to a limit, eventually consistent."""
        return await self._request.scheduler.gather_all(self._reads(ranges))

    def _reads(self, ranges: Sequence[tuple[KeyRange, int]]) -> list[Awaitable[list[Item]]]:
        return [self._request.state.items_in(span, limit=limit, current=False) for span, limit in ranges]

    # -- hits ----------------------------------------------------------------------------------------------------------

    async def _first_of(
        self, found: Sequence[Pointer], size: int, scope: Scope, *, is_strong: bool
    ) -> tuple[list[Hit], bool]:
        """The nodes of the first candidates, in order: one BatchGetItem with the ancestors that are selected.

        Nodes that do not match any more are replaced by the next candidates, in so many ATTEMPTS in all; the second
        value is False where that did not end. A node that is not at the key in its item is looked up by its id.
        """
        hits: list[Hit] = []
        ahead = list(found)
        for _ in range(ATTEMPTS):
            some, ahead = ahead[: size - len(hits)], ahead[size - len(hits) :]
            if not some:
                break
            records = await self._nodes(some, is_strong=is_strong)
            some_hits = [hit for record in records for hit in self._hit(record, scope)]
            hits += await self.settled(some_hits, {}, is_strong=is_strong)
        return sorted(hits), len(hits) == size or not ahead

    async def _all_below(self, scope: Scope) -> list[Hit]:
        """The first matching nodes of a small scope, all of whose nodes are read."""
        subtrees = scope.subtrees or ()
        found = await self._request.state.subtrees([one.record for one in subtrees])
        hits: list[Hit] = []
        for one, records in zip(subtrees, found, strict=True):
            async for chunk in in_chunks(records):
                for record in chunk:
                    hits += self._hit(record, scope) if one.itself or record.sk != one.record.sk else []
        own: Nodes = {record.key: record for records in found for record in records}
        hits = sorted(await self.settled(hits, own, is_strong=True))
        self.total = len(hits)
        return await self._counted(hits[: self._asked.first])

    def _hit(self, record: Record | None, scope: Scope) -> list[Hit]:
        """The hit of a node; none of a level that the class does not define, which it does not serve."""
        is_served = record is not None and record.level in self._hierarchy.levels
        place = self.place(record) if is_served and record is not None and scope.holds(record) else None
        return [] if record is None or place is None else [Hit(place, record)]

    async def _nodes(self, some: Sequence[Pointer], *, is_strong: bool) -> list[Record | None]:
        """The nodes of these candidates, with the ancestors that are selected of as many as are returned."""
        below, shown = self._selected.below, self._asked.first
        kinds = set() if below is None else kinds_for_all_levels(below, self._hierarchy)
        return await pointed_nodes(self._request, self._hierarchy.name, some, kinds, shown, is_strong=is_strong)

    async def _counted(self, hits: list[Hit]) -> list[Hit]:
        """The same hits, with their counts where these are selected."""
        if not self._selected.counts:
            return hits
        records = await with_counts(self._request.state, [hit.record for hit in hits])
        return [hit._replace(record=record) for hit, record in zip(hits, records, strict=True)]


def are_small(subtrees: Sequence[Subtree] | None) -> bool:
    """Whether all nodes of a scope may be read; None is the whole hierarchy."""
    return subtrees is not None and sum([one.record.subtree_size for one in subtrees]) <= MAX_SEARCHED_NODES
