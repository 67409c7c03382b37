"""Sorted list: a whole list that was read, sorted and filtered in memory, and its pages.

DynamoDB orders a list only by its keys, and a FilterExpression is applied after the units were consumed, and makes
pages of unpredictable length. So the list is read as without order and conditions, by the usual batch functions, and
the result is cached as well.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, cmp_to_key
from typing import Any

import msgspec

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
from resolvers.lists.list_request import ListRequest
from resolvers.session.budget import TooManyNodes
from resolvers.session.cache import RECORD_BYTES
from resolvers.session.request import Request
from resolvers.sorting.conditions import key_position
from resolvers.sorting.ordering import Ordering, PlaceOrder, SortValue
from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.errors import BadCursor, BudgetExceeded, CladeError, shorten
from store.model.records import Record

TESTED_A_CHUNK = 5  # nodes between two points at which the event loop may run others: their texts may be long

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


@dataclass(frozen=True)
class SortedList:
    """The nodes that meet the conditions, in the order requested."""

    records: list[Record]
    cursors: SortedCursors

    def page(self, arguments: ConnectionArguments, *, total: bool) -> Page:
        """One page; raises BadCursor."""
        after, before = [
            None if one is None else self.cursors.decode(one) for one in (arguments.after, arguments.before)
        ]
        lo = 0 if after is None else bisect_right(self.records, self._key(after), key=self._key_of)
        hi = len(self.records) if before is None else bisect_left(self.records, self._key(before), key=self._key_of)
        limit = len(self.records) if arguments.limit is None else arguments.limit
        if arguments.last is not None:
            records = self.records[max(lo, hi - limit) : hi][::-1]
        else:
            records = self.records[lo : min(hi, lo + limit)]
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
    whole = {one: type(one)(one.owner, one.relation.whole) for one in lists if one.relation.takes_whole_list}
    outcomes = await read(request, [whole.get(one, one) for one in lists])
    pages: list[Outcome] = []
    for number, (requested, outcome) in enumerate(zip(lists, outcomes, strict=True)):
        if requested in whole:
            outcome = await _sorted_page(request, requested, outcome)
            if number % CHUNK_LENGTH == 0:
                await yield_to_loop()
        pages.append(outcome)
    return pages


async def read_sorted_roots(
    request: Request,
    hierarchy: str,
    relation: Relation,
    read: Callable[[Request, str, Relation], Awaitable[Page]],
    *,
    is_deep: bool = False,
) -> Page:
    """A page of roots; `read` reads one that is neither sorted nor filtered. Raises its errors, and BadCursor.

    `is_deep` is whether they have different parents, as grant roots have.
    """
    if not relation.takes_whole_list:
        return await read(request, hierarchy, relation)
    try:
        whole = await read(request, hierarchy, relation.whole)
    except TooManyNodes as error:
        raise _whole_list_error(error) from None
    # Roots are of many trees, so they are cached where one version validates the whole store.
    return await _page(request, None, hierarchy, relation, f"{CursorKind.ROOTS}{hierarchy}", whole, is_deep=is_deep)


async def _sorted_page(request: Request, requested: ListRequest, outcome: Outcome) -> Outcome:
    relation, owner = requested.relation, requested.owner
    if isinstance(outcome, Exception):
        return relation.shared_error(_whole_list_error(outcome)) if isinstance(outcome, CladeError) else outcome
    try:
        is_deep, name = relation.kind is RelationKind.DESCENDANTS, f"{requested.cursor_kind}{owner.id}"
        return await _page(request, owner.pk, owner.sk, relation, name, outcome, is_deep=is_deep)
    except CladeError as error:
        return relation.shared_error(error)


async def _page(
    request: Request, tree: str | None, place: str, relation: Relation, owner: str, whole: Page, *, is_deep: bool
) -> Page:
    """A page of a sorted list, which is taken from the page cache, or made and cached where nothing is hidden.

    `place` is that of the list in the tree, `owner` names the list in cursors.
    """
    pages, is_cacheable = request.state.pages, request.grants is None
    key = "sorted", tree, place, relation.whole.page_key, relation.order_digest
    found: SortedList | None = pages.get(tree, key) if is_cacheable else None
    if found is None:
        arguments, records = relation.arguments, whole.records
        if arguments.where is not None:
            test, records = arguments.where.test, []
            async for chunk in in_chunks(whole.records, TESTED_A_CHUNK):
                records += [record for record in chunk if test(record)]
        cursors = SortedCursors(arguments.ordering, f"{owner}\n{relation.order_digest}", whole.cursors, is_deep)
        found = SortedList(await arguments.ordering.sorted(records, cursors.position), cursors)
        if is_cacheable:
            pages.put(tree, key, found, len(found.records) + len(found.cursors.owner) // RECORD_BYTES)
    page = found.page(relation.arguments, total=relation.total)
    return page if relation.nodes else Page([], total=page.total)


def _whole_list_error(error: CladeError) -> CladeError:
    """The error of a whole list, with what to do about it where the list is too long."""
    if not isinstance(error, TooManyNodes):
        return error
    way_out = (
        "orderBy and where take the whole list: narrow it with level and conditions on key or path, or ask for pages "
        "by key or path"
    )
    return BudgetExceeded(f"{error.fact} {way_out}, or raise CLADE_MAX_NODES.")
