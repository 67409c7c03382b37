"""Sorted list: a whole list that was read, sorted and filtered in memory, and its pages.

DynamoDB orders a list only by its keys, and a FilterExpression is applied after the units were consumed, and makes
pages of unpredictable length. So the list is read as without order and conditions, by the usual batch functions, and
the result is cached: its other pages read nothing but the version of the tree. A long one is cached packed.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, cmp_to_key
from typing import Any, Self, overload

import msgspec
from msgspec.structs import astuple

from resolvers.access.grants import grant_roots
from resolvers.lists.arguments import (
    ConnectionArguments,
    CursorKind,
    Cursors,
    Page,
    Relation,
    RelationKind,
    decode_cursor,
    encode_cursor,
    page_of,
)
from resolvers.lists.list_request import MAX_CACHED_WHOLE, ListRequest, described
from resolvers.session.cache import RECORD_BYTES, Partition
from resolvers.session.request import Request
from resolvers.sorting.conditions import key_position
from resolvers.sorting.ordering import Ordering, PlaceOrder, SortValue
from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.errors import BadCursor, CladeError, shorten
from store.model.records import Record

TESTED_A_CHUNK = 5  # nodes between two points at which the event loop may run others: their texts may be long

_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode

Outcome = Page | Exception
Position = tuple[list[SortValue], str]  # what the list is sorted by, then the place in the list's own order


@dataclass(frozen=True)
class SortedCursors:
    """The cursors of a sorted or filtered list. `owner` names the list, with its order and conditions.

    A cursor has the values that its node was sorted by, so it is valid even if the node has changed or is gone.
    `listed` are the cursors of the list in its own order, None for an empty one; `is_deep` is whether its nodes have
    different parents.
    """

    ordering: Ordering
    owner: str
    listed: Cursors | None
    is_deep: bool

    def cursor(self, record: Record) -> str:
        values = msgspec.json.encode(self.ordering.plain_values(record)).decode()
        return encode_cursor(CursorKind.SORTED, self.owner, f"{values}\n{self.position(record)}")

    def position(self, record: Record) -> str:
        assert self.listed is not None  # only an empty page has none  # noqa: S101
        match self.ordering.place:
            case PlaceOrder.KEY if self.is_deep:
                return key_position(record) + self.listed.position(record)
            case PlaceOrder.KEY | PlaceOrder.PATH if not self.is_deep:
                return key_position(record)
        return self.listed.position(record)

    def decode(self, cursor: str) -> Position:
        """The position of a cursor; raises BadCursor for one of another list, order or condition."""
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
    """The nodes that meet the conditions, in the order requested. `size` is the length of the list with all others, and
    `partitions` are those that it was read from.
    """

    records: Sequence[Record]
    cursors: SortedCursors
    size: int
    partitions: frozenset[str]

    def page(self, arguments: ConnectionArguments, *, total: bool) -> Page:
        """One page; raises BadCursor."""
        after, before = [
            None if one is None else self.cursors.decode(one) for one in (arguments.after, arguments.before)
        ]
        lo = 0 if after is None else bisect_right(self.records, self._key(after), key=self._key_of)
        hi = len(self.records) if before is None else bisect_left(self.records, self._key(before), key=self._key_of)
        limit = len(self.records) if arguments.limit is None else arguments.limit
        if arguments.last is not None:
            records = list(self.records[max(lo, hi - limit) : hi])[::-1]
        else:
            records = list(self.records[lo : min(hi, lo + limit)])
        return page_of(records, arguments, len(self.records) if total else None, self.cursors)

    @cached_property
    def _key(self) -> Callable[[Position], Any]:
        return cmp_to_key(self.cursors.compare)

    def _key_of(self, record: Record) -> Any:
        return self._key((self.cursors.ordering.values(record), self.cursors.position(record)))


async def read_sorted(
    request: Request,
    lists: Sequence[ListRequest],
    read: Callable[[Request, Sequence[ListRequest]], Awaitable[list[Outcome]]],
) -> list[Outcome]:
    """The pages of lists, in order; `read` reads those that are neither sorted nor filtered, and whole lists.

    An error is in place of each page that it concerns.
    """
    if not any(relation.takes_whole_list for relation in {one.relation for one in lists}):
        return await read(request, lists)
    if request.grants is None:  # the versions of their trees validate sorted lists as well
        await request.state.read_versions(one.owner.pk for one in lists)
    found: dict[ListRequest, SortedList] = {}
    for one in lists:
        if one.relation.takes_whole_list and (cached := _cached(request, one.owner.pk, one.sorted_key)) is not None:
            found[one] = cached
    whole = {one: type(one)(one.owner, one.relation.whole) for one in lists if one.relation.takes_whole_list}
    missing = [whole.get(one, one) for one in lists if one not in found]
    outcomes = iter(await read(request, missing) if missing else ())
    listed: list[Outcome] = []
    for number, requested in enumerate(lists):
        if requested in found:
            listed.append(await _sorted_page(request, requested, found[requested]))
        elif requested in whole:
            listed.append(await _sorted_page(request, requested, next(outcomes)))
        else:
            listed.append(next(outcomes))
        if number % CHUNK_LENGTH == CHUNK_LENGTH - 1:
            await yield_to_loop()
    return listed


async def read_sorted_roots(
    request: Request,
    hierarchy: str,
    relation: Relation,
    read: Callable[[Request, str, Relation], Awaitable[Page]],
    partitions: frozenset[str] | None = None,
) -> Page:
    """A page of roots, or of the nodes in all trees; `read` reads one that is neither sorted nor filtered.

    `partitions` are those whose versions validate it, and were read; None: only a version of the whole store does.
    Raises the errors of `read`, and BadCursor.
    """
    if not relation.takes_whole_list:
        return await read(request, hierarchy, relation)
    kind = CursorKind.ROOTS if relation.kind is RelationKind.ROOTS else CursorKind.DESCENDANTS
    is_deep = kind is CursorKind.DESCENDANTS or grant_roots(request.grants, hierarchy) is not None
    what = f"The {relation.kind} of {hierarchy}"
    key = "sorted", hierarchy, relation.whole.page_key, relation.order_digest
    found = _cached(request, partitions, key)
    if found is None:
        whole = await read(request, hierarchy, relation.whole)
        found = await _sorted(request, partitions, key, relation, f"{kind}{hierarchy}", whole, is_deep=is_deep)
    else:
        request.budget.spend_nodes(found.size, what, compared=True)
        request.state.partitions_read.update([hierarchy, *found.partitions])
    return _page(request, relation, found, what)


async def _sorted_page(request: Request, requested: ListRequest, found: Outcome | SortedList) -> Outcome:
    """A page of a sorted list, or of the whole list that it is sorted and filtered from."""
    relation, owner = requested.relation, requested.owner
    if isinstance(found, Exception):
        return relation.shared_error(found) if isinstance(found, CladeError) else found
    try:
        if isinstance(found, SortedList):
            request.budget.spend_nodes(found.size, described([requested]), compared=True)
        else:
            is_deep, name = relation.kind is RelationKind.DESCENDANTS, f"{requested.cursor_kind}{owner.id}"
            found = await _sorted(request, owner.pk, requested.sorted_key, relation, name, found, is_deep=is_deep)
        return _page(request, relation, found, described([requested]))
    except CladeError as error:
        return relation.shared_error(error)


def _cached(request: Request, partition: Partition, key: Hashable) -> SortedList | None:
    """A sorted list that is cached, of which nothing is hidden."""
    found: SortedList | None = None if request.grants is not None else request.state.pages.get(partition, key)
    if found is not None and request.reads.trace is not None:
        request.reads.trace.pages += 1
    return found


async def _sorted(
    request: Request,
    partition: Partition,
    key: Hashable,
    relation: Relation,
    owner: str,
    whole: Page,
    *,
    is_deep: bool,
) -> SortedList:
    """A whole list sorted and filtered, and cached where nothing is hidden; `owner` names the list in cursors."""
    arguments, records = relation.arguments, whole.records
    if arguments.where is not None:
        test, records = arguments.where.test, []
        async for chunk in in_chunks(whole.records, TESTED_A_CHUNK):
            records += [record for record in chunk if test(record)]
    cursors = SortedCursors(arguments.ordering, f"{owner}\n{relation.order_digest}", whole.cursors, is_deep)
    partitions = frozenset([record.pk for record in whole.records])
    records = await arguments.ordering.sorted(records, cursors.position)
    found = SortedList(records, cursors, len(whole.records), partitions)
    if request.grants is None:
        kept, weight = found, len(records)
        if len(records) > MAX_CACHED_WHOLE:
            packed = await PackedRecords.of(records)
            kept, weight = replace(found, records=packed), packed.weight
        request.state.pages.put(partition, key, kept, weight + len(cursors.owner) // RECORD_BYTES)
    return found


def _page(request: Request, relation: Relation, found: SortedList, what: str) -> Page:
    """One page of a sorted list, `what` it is in messages; its nodes are spent as returned ones. Raises BadCursor."""
    page = found.page(relation.arguments, total=relation.total)
    if not relation.nodes:
        return Page([], total=page.total)
    request.budget.spend_nodes(len(page.records), what)
    return page
