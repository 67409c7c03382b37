"""Sorted list: a whole list that was read, sorted, filtered and counted in memory, and its pages.

DynamoDB orders a list only by its keys, and a FilterExpression is applied after the units were consumed, and makes
pages of unpredictable length. So the list is read as without order and conditions, by the usual batch functions, and
the result is cached: its other pages read nothing but the version of the tree. A long one is cached packed.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, cmp_to_key
from itertools import islice
from typing import Any, NamedTuple, Self, overload

import msgspec
from msgspec.structs import astuple

from resolvers.lists.ancestor_words import with_ancestors
from resolvers.lists.arguments import (
    ConnectionArguments,
    CursorKind,
    ListCursors,
    Page,
    Relation,
    decode_cursor,
    encode_cursor,
    page_of,
)
from resolvers.lists.child_conditions import ReadAsked, read_children
from resolvers.lists.list_request import MAX_CACHED_WHOLE, ListRequest
from resolvers.lists.position_order import Places, Read, read_places, read_together
from resolvers.session.budget import raise_first_error
from resolvers.session.cache import RECORD_BYTES
from resolvers.session.request import Request
from resolvers.sorting.children import child_key, comparisons_in
from resolvers.sorting.conditions import Condition, key_position, tested
from resolvers.sorting.facets import FacetsRequest, ListFacet, count_facets
from resolvers.sorting.ordering import Ordering, PlaceOrder, SortValue, of_each
from resolvers.sorting.search_comparison import searches_in
from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.errors import BadCursor, CladeError, shorten
from store.model.records import Record

_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode

FACET_VALUE_BYTES = 200  # memory of a value of a facet with its count

Outcome = Page | Exception
Candidates = Callable[[Request, ListRequest], Awaitable[list[Record] | None]]
Position = tuple[list[SortValue], str]  # what the list is sorted by, then the place in the list's own order


@dataclass(frozen=True)
class SortedCursors:
    """The cursors of a sorted or filtered list. `owner` names the list, with its order and conditions.

    A cursor has the values that its node was sorted by, so it is valid even if the node has changed or is gone; but in
    position order it is the node's path. `listed` are the cursors of the list in its own order, which a list has that
    is only counted (`are_own`); `is_deep` is whether its nodes have different parents.
    """

    ordering: Ordering
    owner: str
    listed: ListCursors
    is_deep: bool
    are_own: bool

    def cursor(self, record: Record) -> str:
        if self.are_own:
            return self.listed.cursor(record)
        values = msgspec.json.encode(self.ordering.plain_values(record)).decode()
        return encode_cursor(CursorKind.SORTED, self.owner, f"{values}\n{self.position(record)}")

    def position(self, record: Record) -> str:
        match self.ordering.place:
            case _ if self.are_own:
                return self.listed.position(record)
            case PlaceOrder.KEY if self.is_deep:
                return key_position(record) + self.listed.position(record)
            case PlaceOrder.KEY | PlaceOrder.PATH if not self.is_deep:
                return key_position(record)
        return self.listed.position(record)

    def decode(self, cursor: str) -> Position:
        """The position of a cursor; raises BadCursor for one of another list, order or condition."""
        if self.are_own:
            return [], self.listed.decode(cursor)
        values, _, position = decode_cursor(cursor, CursorKind.SORTED, self.owner).partition("\n")
        try:
            return self.ordering.checked(msgspec.json.decode(values)), position
        except ValueError:  # msgspec's errors are among them
            message = f'"{shorten(cursor)}" is a cursor of another list; use a cursor of the same list and order.'
            raise BadCursor(message) from None

    def compare(self, one: Position, other: Position) -> int:
        """-1, 0 or 1: whether one position comes before the other."""
        place = (one[1] > other[1]) - (one[1] < other[1])
        return self.ordering.compare(one[0], other[0]) or (-place if self.ordering.descending else place)


class PackedRecords(Sequence[Record]):
    """Records as bytes, a fifth of their memory, each unpacked when it is taken."""

    def __init__(self, packed: list[bytes]) -> None:
        self._packed = packed

    @classmethod
    async def of(cls, records: Sequence[Record]) -> Self:
        packed: list[bytes] = []
        async for chunk in in_chunks(records):
            packed += [_pack(astuple(record)) for record in chunk]
        return cls(packed)

    @property
    def weight(self) -> int:
        """Its memory, in that of a record in the page cache."""
        return sum(map(sys.getsizeof, self._packed)) // RECORD_BYTES + 1

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, slice):
            return list(map(_unpacked, self._packed[place]))
        return _unpacked(self._packed[place])


def _unpacked(packed: bytes) -> Record:
    return Record(**dict(zip(Record.__struct_fields__, _unpack(packed), strict=True)))


@dataclass(frozen=True)
class SortedList:
    """The nodes that meet the conditions, in the order requested. `size` is the number of all nodes that were read, and
    `partitions` are those that they were read from. In position order `positions` are those of the nodes in cursors,
    which do not sort.
    """

    records: Sequence[Record]
    cursors: SortedCursors
    size: int
    partitions: frozenset[str]
    positions: Sequence[str] | None = None

    def page(
        self, arguments: ConnectionArguments, after: Position | None, before: Position | None, *, total: bool
    ) -> Page:
        """The page between the positions of the cursors; raises BadCursor."""
        lo = 0 if after is None else self._index(after, bisect_right)
        hi = len(self.records) if before is None else self._index(before, bisect_left)
        limit = len(self.records) if arguments.limit is None else arguments.limit
        if arguments.last is not None:
            records = list(self.records[max(lo, hi - limit) : hi])[::-1]
        else:
            records = list(self.records[lo : min(hi, lo + limit)])
        return page_of(records, arguments, len(self.records) if total else None, self.cursors)

    def _index(self, position: Position, bisect: Callable[..., int]) -> int:
        """The index of the first node after a cursor, or with `bisect_left` not before it."""
        if self.positions is None:
            return bisect(self.records, self._key(position), key=self._key_of)
        try:
            return self.positions.index(position[1]) + (bisect is bisect_right)
        except ValueError:
            message = "The node of the cursor has moved, or is no longer in the list; start again without it."
            raise BadCursor(message) from None

    @cached_property
    def _key(self) -> Callable[[Position], Any]:
        return cmp_to_key(self.cursors.compare)

    def _key_of(self, record: Record) -> Any:
        return self._key((self.cursors.ordering.values(record), self.cursors.position(record)))


@dataclass(frozen=True)
class CountedFacets:
    """Facets of a list of so many nodes, which was read from these partitions."""

    facets: Sequence[ListFacet]
    size: int
    partitions: frozenset[str]


Made = SortedList | CountedFacets
"""What is made of a whole list, and cached."""


class Readers(NamedTuple):
    """What reads lists for those that are made of whole ones.

    `pages` reads lists that are neither sorted nor filtered, `asked` those that relations lead to from their nodes, and
    `candidates` the nodes of a list that may meet its conditions, None where it is to be read whole.
    """

    pages: Read
    asked: ReadAsked
    candidates: Candidates


async def read_sorted(request: Request, lists: Sequence[ListRequest], readers: Readers) -> list[Outcome]:
    """The pages of lists, in order.

    An error is in place of each page that it concerns.
    """
    if all(relation.is_plain for relation in {one.relation for one in lists}):
        return await readers.pages(request, lists)
    if request.grants is None:  # the versions of their trees validate what is made of lists as well
        await request.state.read_versions(one.partition for one in lists if isinstance(one.partition, str))
    makings = [_Making(request, one) for one in lists]
    _check_conditions(request, makings)
    _check_cursors(makings)
    for one in makings:
        one.take_cached()
    async for chunk in in_chunks([one for one in makings if one.may_use_items]):
        found = await request.scheduler.gather_outcomes([readers.candidates(request, one.requested) for one in chunk])
        for one, records in zip(chunk, found, strict=True):
            one.whole = Page(records) if isinstance(records, list) else records
    parts = [part for one in makings for part in one.parts]
    outcomes = iter(await readers.pages(request, parts) if parts else ())
    for one in makings:
        one.take(list(islice(outcomes, len(one.parts))))
    if searched := [one for one in makings if one.needs_ancestors]:
        await _take_ancestors(request, searched)
    if filtered := [one for one in makings if one.needs_children]:
        nodes = [(one.requested, one.where, one.read_nodes) for one in filtered]
        for one, found_children in zip(filtered, await read_children(request, nodes, readers.asked), strict=True):
            one.take_children(found_children)
    if ordered := [one for one in makings if one.needs_places]:
        await request.scheduler.gather_all([one.read_places(readers.pages) for one in ordered])
    pages: list[Outcome] = []
    for number, one in enumerate(makings):
        pages.append(await one.page())
        if number % CHUNK_LENGTH == CHUNK_LENGTH - 1:
            await yield_to_loop()
    return pages


async def _take_ancestors(request: Request, makings: Sequence["_Making"]) -> None:
    """Give conditions the words of ancestors that they depend on, or their lists the error of that."""
    try:
        found = await with_ancestors(request, [(one.requested, one.where, one.read_nodes) for one in makings])
    except Exception as error:  # also of a failed read
        for one in makings:
            one.error = error
    else:
        for one, where in zip(makings, found, strict=True):
            one.where = where


def _check_conditions(request: Request, makings: Sequence["_Making"]) -> None:
    """Refuse the lists whose conditions no node can meet."""
    checked: dict[tuple[Relation, str], CladeError | None] = {}
    for one in makings:
        requested, relation = one.requested, one.requested.relation
        if relation.arguments.where is None:
            continue
        key = relation, requested.owner.level
        if key not in checked:
            checked[key] = None
            try:
                requested.check_conditions(request.hierarchies[requested.hierarchy])
            except CladeError as error:
                checked[key] = error
        one.error = checked[key]


def _check_cursors(makings: Sequence["_Making"]) -> None:
    """Refuse the lists with cursors of other ones, of which nothing needs to be read."""
    for one in makings:
        if one.requested.relation.takes_whole_list and one.error is None:
            try:
                one.after, one.before = one.positions()
            except CladeError as error:
                one.error = error


class _Making:
    """The page of one list, as it is made of what was cached, and of what is read.

    `whole` is the whole list, or those of its nodes that may meet the conditions; None where it is not needed, or not
    read. `where` is the condition, with what was read for it, `_more` the number of nodes that were read beside the
    list, and `_places` are those of its nodes in position order. The page lies between the
    positions `after` and `before`.
    """

    def __init__(self, request: Request, requested: ListRequest) -> None:
        self._request, self.requested = request, requested
        self.whole: Outcome | None = None
        self.error: Exception | None = None
        self._plain: Outcome | None = None
        self._cached: dict[Hashable, Made] = {}
        self.where, self._more = requested.relation.arguments.where, 0
        self._between: list[Outcome] = []
        self._met: Sequence[Record] | None = None
        self._places: Places = {}
        self.after: Position | None = None
        self.before: Position | None = None

    @cached_property
    def cursors(self) -> SortedCursors:
        requested, relation = self.requested, self.requested.relation
        ordering, owner = relation.arguments.ordering, f"{requested.cursor_kind}{requested.owner.id}"
        name, are_own = f"{owner}\n{relation.order_digest}", not relation.is_sorted
        return SortedCursors(ordering, name, requested.cursors, requested.is_deep, are_own)

    def positions(self) -> list[Position | None]:
        """The positions of the cursors after and before; raises BadCursor."""
        given = self.requested.relation.arguments
        return [None if one is None else self.cursors.decode(one) for one in (given.after, given.before)]

    def take_cached(self) -> None:
        """Take what was made before and is current; nothing where something is hidden."""
        request, requested = self._request, self.requested
        if request.grants is not None or not requested.relation.is_cacheable:
            return
        for key in requested.result_keys if requested.relation.takes_whole_list else ():
            found: Made | None = request.state.pages.get(requested.partition, key)
            if found is not None:
                self._cached[key] = found
                if request.reads.trace is not None:
                    request.reads.trace.pages += 1

    @property
    def may_use_items(self) -> bool:
        return self.error is None and not self.requested.relation.is_cacheable

    @property
    def needs_ancestors(self) -> bool:
        """Whether conditions depend on the words of ancestors."""
        return isinstance(self.whole, Page) and self.error is None and bool(searches_in(self.where))

    @cached_property
    def parts(self) -> list[ListRequest]:
        """The lists that have to be read for it."""
        requested, relation = self.requested, self.requested.relation
        if self.error is not None:
            return []
        if not relation.takes_whole_list:
            return [requested.of(relation.without_facets) if relation.facets else requested]
        if self.whole is not None or all(key in self._cached for key in requested.result_keys):
            return []
        return [requested.of(relation.whole), *(read_together(self._request, requested) if self._is_placed else ())]

    def take(self, outcomes: list[Outcome]) -> None:
        """Take the outcomes of its parts."""
        if outcomes and self.requested.relation.takes_whole_list:
            self.whole, *self._between = outcomes
        elif outcomes:
            (self._plain,) = outcomes

    @property
    def read_nodes(self) -> Sequence[Record]:
        """The nodes that are tested."""
        return self.whole.records if isinstance(self.whole, Page) else ()

    @property
    def needs_children(self) -> bool:
        return isinstance(self.whole, Page) and self.error is None and any(comparisons_in(self.where))

    def take_children(self, found: tuple[Condition, int] | Exception) -> None:
        """Take what was read for the conditions on children, and how many nodes these are."""
        if isinstance(found, Exception):
            self.error = found
        else:
            self.where, self._more = found

    @property
    def needs_places(self) -> bool:
        return self._is_placed and isinstance(self.whole, Page) and self.error is None

    @property
    def _is_placed(self) -> bool:
        """Whether its nodes are to be put into position order."""
        return self.requested.relation.is_by_position and self.requested.sorted_key not in self._cached

    async def read_places(self, read: Read) -> None:
        """Read the places of its nodes in position order."""
        try:
            raise_first_error(self._between)
            between = [record for page in self._between if isinstance(page, Page) for record in page.records]
            known = [*self.read_nodes, *between]
            listed = await self._meeting()
            self._places, others = await read_places(self._request, self.requested, listed, known, read)
            self._more += len(between) + others
        except Exception as error:  # also of a failed read
            self.error = error

    async def page(self) -> Outcome:
        """The page, or the error in its place."""
        relation = self.requested.relation
        try:
            for one in (self.error, self._plain, self.whole):
                if isinstance(one, Exception):
                    raise one
            return await self._page()
        except CladeError as error:
            return relation.shared_error(error)
        except Exception as error:  # of a failed read
            return error

    async def _page(self) -> Page:
        request, requested, relation = self._request, self.requested, self.requested.relation
        made = dict(self._cached)
        if isinstance(self.whole, Page):
            made |= await self._made(self.whole)
        elif made:
            request.budget.spend_nodes(max(one.size for one in made.values()), requested.description, compared=True)
        request.state.partitions_read.update(*[one.partitions for one in made.values()])
        page = self._plain
        if relation.takes_whole_list:
            found = made[requested.sorted_key]
            assert isinstance(found, SortedList)  # noqa: S101 - by its key
            page = found.page(relation.arguments, self.after, self.before, total=relation.total)
            if relation.nodes:
                request.budget.spend_nodes(len(page.records), requested.description)
            else:
                page = Page([], total=page.total)
            page.near = relation.near
        assert isinstance(page, Page)  # noqa: S101 - an error was raised
        return replace(page, facets=await self._facets(made)) if relation.facets else page

    async def _facets(self, made: Mapping[Hashable, Made]) -> dict[FacetsRequest, Sequence[ListFacet]]:
        """The facets by what was asked."""
        requested, relation = self.requested, self.requested.relation
        found: dict[FacetsRequest, Sequence[ListFacet]] = {}
        for one in relation.facets:
            if relation.is_counted(one):
                found[one] = await one.of_levels(await requested.level_counts(self._request))
            else:
                counted = made[(*requested.sorted_key, one)]
                assert isinstance(counted, CountedFacets)  # noqa: S101 - by its key
                found[one] = counted.facets
        return found

    async def _made(self, whole: Page) -> dict[Hashable, Made]:
        """What is made of the whole list, all in turn, and cached where nothing is hidden."""
        requested, relation = self.requested, self.requested.relation
        partitions, size = requested.partitions(whole.records), len(whole.records) + self._more
        missing = [key for key in requested.result_keys if key not in self._cached]
        made: dict[Hashable, Made] = {}
        asked = [one for one in relation.facets if (*requested.sorted_key, one) in missing]
        counted = await count_facets(whole.records, self.where, asked) if asked else {}
        for one, facets in counted.items():
            made[(*requested.sorted_key, one)] = CountedFacets(facets, size, partitions)
        if requested.sorted_key in missing:
            made[requested.sorted_key] = await self._sorted(size, partitions)
        if self._request.grants is None and relation.is_cacheable:
            for key, found in made.items():
                await self._put(key, found)
        return made

    async def _meeting(self) -> Sequence[Record]:
        """The nodes that meet the conditions."""
        if self._met is None:
            self._met = self.read_nodes if self.where is None else await tested(self.read_nodes, self.where.test)
        return self._met

    async def _sorted(self, size: int, partitions: frozenset[str]) -> SortedList:
        relation, cursors = self.requested.relation, self.cursors
        place: Callable[[Record], Any] = cursors.position
        if relation.is_by_position:
            place = lambda record: self._places[child_key(record)]  # noqa: E731
        records = await relation.arguments.ordering.sorted(await self._meeting(), place)
        positions = await of_each(cursors.position, records) if relation.is_by_position else None
        return SortedList(records, cursors, size, partitions, positions)

    async def _put(self, key: Hashable, found: Made) -> None:
        if isinstance(found, CountedFacets):
            weight = sum([len(one.values) for one in found.facets]) * FACET_VALUE_BYTES // RECORD_BYTES + 1
        else:
            weight = len(found.records) + len(found.cursors.owner) // RECORD_BYTES
            if len(found.records) > MAX_CACHED_WHOLE:
                packed = await PackedRecords.of(found.records)
                found, weight = replace(found, records=packed), packed.weight + weight - len(found.records)
            weight += sum(map(sys.getsizeof, found.positions or ())) // RECORD_BYTES
        self._request.state.pages.put(self.requested.partition, key, found, weight)
