"""Arguments of lists: the relations of a node that read other nodes, the part of a list that a client requests, and
the pages and cursors that it gets.
"""

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from operator import attrgetter
from typing import Protocol, Self

from msgspec import Struct

from resolvers.sorting.conditions import (
    EVERYTHING,
    Combination,
    Condition,
    KeyComparison,
    Spans,
    clipped,
    complement,
    intersection,
    union,
)
from resolvers.sorting.facets import FacetsRequest, ListFacet
from resolvers.sorting.near import NearComparison, direct_near
from resolvers.sorting.ordering import LIST_ORDER, MAX_ORDER_FIELDS, MAX_SORTED_CHARACTERS, Ordering, PlaceOrder
from store.errors import BadCursor, BadInput, CladeError, shorten
from store.model.keys import MAX_SORT_KEY_BYTES, KeyRange, just_after, prefix_end
from store.model.records import Record

_PREFIX_BYTES = 7  # the kind of the list, and a digest of its owner
_RELEVANCE_BYTES = 500  # by which a place in the order of a search may be longer than any other value
# Of a sorted list: JSON, then a new line.
_MAX_VALUES_BYTES = MAX_ORDER_FIELDS * (6 * MAX_SORTED_CHARACTERS + 3) + _RELEVANCE_BYTES + 2
MAX_SPANS = 10  # of one list: each is a Query of its own; a condition of more is read as one span, and tested
_MAX_POSITION_BYTES = 3 * MAX_SORT_KEY_BYTES  # of a grant root: its level, its key and its path
MAX_CURSOR_CHARACTERS = -(-(_PREFIX_BYTES + _MAX_VALUES_BYTES + _MAX_POSITION_BYTES) * 4 // 3)  # in base64

_NUMBER = re.compile(r"[0-9]{1,12}")


class CursorKind(StrEnum):
    """The kinds of lists, each with its order; the letter is the first byte of a cursor.

    A cursor is an opaque position in a list, for `after` and `before`. It contains the kind of the list, a digest of
    the owner's id and the position relative to the owner. It does not contain the owner's path, so it stays valid when
    the owner moves.
    """

    ROOTS = "r"
    CHILDREN = "c"
    CHILDREN_BY_KEY = "k"
    DESCENDANTS = "d"
    SORTED = "o"
    HISTORY = "h"
    CHANGES = "f"


def encode_cursor(order: CursorKind, owner: str, position: str) -> str:
    """The cursor of a position in the list of `owner` (the id of a node, or a hierarchy's name for its roots)."""
    return urlsafe_b64encode(order.encode() + _digest(owner) + position.encode()).decode().rstrip("=")


@dataclass(frozen=True)
class ListCursors:
    """The cursors of the records of one list, with the position of a record: a text that sorts as the list does.

    A cached page holds this, and no reference to the request that read it.
    """

    order: CursorKind
    owner: str
    position: Callable[[Record], str]

    def cursor(self, record: Record) -> str:
        return encode_cursor(self.order, self.owner, self.position(record))

    def decode(self, cursor: str) -> str:
        """The position of a cursor; raises BadCursor for one of another list."""
        return decode_cursor(cursor, self.order, self.owner)


by_rank: Callable[[Record], str] = attrgetter("rank")


def by_key_from(start: int) -> Callable[[Record], str]:
    """The positions of a list in key order: the sort keys from `start` on."""
    return lambda record: record.sk[start:]


def check_cursor(name: str, cursor: str | None) -> None:
    """Raise BadCursor for one that is empty, or longer than any; `name` is that of its argument."""
    if cursor == "":
        page = "last" if name == "before" else "first"
        raise BadCursor(f"{name} is empty, which no cursor is; omit {name} for the {page} page.")
    if cursor is not None and len(cursor) > MAX_CURSOR_CHARACTERS:
        raise BadCursor(f"{name} has {len(cursor):,} characters; the longest cursor has {MAX_CURSOR_CHARACTERS:,}.")


def decode_cursor(cursor: str, order: CursorKind, owner: str) -> str:
    """The position in this list of this owner; raises BadCursor for a cursor of another list."""
    try:
        raw = b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        position = raw[_PREFIX_BYTES:].decode()
    except (ValueError, binascii.Error):
        position = ""
    if not position:
        raise BadCursor(f'"{shorten(cursor)}" is not a cursor; use one from an earlier response.')
    if raw[:_PREFIX_BYTES] != order.encode() + _digest(owner):
        raise BadCursor(f'"{shorten(cursor)}" is a cursor of another list; use a cursor of the same list.')
    return position


def decode_number(cursor: str, order: CursorKind, owner: str) -> int:
    """The position in a list whose positions are numbers; raises BadCursor for a cursor of another list."""
    position = decode_cursor(cursor, order, owner)
    if not _NUMBER.fullmatch(position):
        raise BadCursor(f'"{shorten(cursor)}" is a cursor of another list; use a cursor of the same list.')
    return int(position)


def _digest(owner: str) -> bytes:
    return blake2b(owner.encode(), digest_size=6).digest()


@dataclass(frozen=True)
class KeyBounds:
    """The spans of keys that a condition leaves of the lists of any node, so that no more is read.

    A condition on paths is a part of the keys of any list, one on keys only of the keys of children. They may be joined
    by and, or and not; of what is joined to others by and, the key conditions are enough.

    `are_children` is whether all nodes of the list are children of its owner, so that a condition on keys leaves a part
    of their range; `is_many` whether it has too many spans; `is_exact` whether every node in the spans meets the whole
    condition. Bounds are compared by `digest`, that of the condition: they are in the cache key of each list, and a
    condition may be long.
    """

    where: Condition = field(compare=False)
    digest: str
    are_children: bool
    is_many: bool
    is_exact: bool

    @classmethod
    def of(cls, where: Condition | None, *, are_children: bool) -> Self | None:
        """The bounds of a condition; None where it leaves all of a list."""
        if where is None:
            return None
        digest = blake2b(repr(where.identity).encode(), digest_size=16).hexdigest()
        found = cls(where, digest, are_children, is_many=_count(where) > MAX_SPANS, is_exact=False)
        spans, is_exact = _spans(where, lambda one: found._place(one, EVERYTHING))
        return None if spans is None else replace(found, is_exact=is_exact)

    def spans(self, owner: Record) -> list[tuple[str, str]]:
        """The parts of the sort keys below a node, in their order."""
        root, lo, hi = owner.pk[owner.pk.index("#") + 1 :], just_after(owner.sk), prefix_end(owner.sk)

        def below(one: KeyComparison) -> tuple[Spans | None, bool]:
            spans = self._kept(one)
            if one.name == "key":
                children = [(owner.sk + start, hi if end is None else owner.sk + end) for start, end in spans]
                return self._place(one, tuple(children))
            cut = clipped(spans, root + lo, root + hi)
            return self._place(one, tuple([(start[len(root) :], (end or "")[len(root) :]) for start, end in cut]))

        found, _ = _spans(self.where, below)
        return [(lo, end or hi) for lo, end in clipped(EVERYTHING if found is None else found, lo, hi)]

    def _kept(self, one: KeyComparison) -> Spans:
        """The spans of a comparison; those of many conditions are one, so that a list has few ranges."""
        spans = one.spans
        return ((spans[0][0], spans[-1][1]),) if self.is_many and spans else spans

    def _place(self, one: KeyComparison, spans: Spans) -> tuple[Spans | None, bool]:
        """These spans of a comparison among the keys of a list, and whether they are all that it leaves."""
        if one.name == "key" and not self.are_children:
            return None, False
        return spans, not self.is_many


def _spans(where: Condition, place: Callable[[KeyComparison], tuple[Spans | None, bool]]) -> tuple[Spans | None, bool]:
    """The spans that a condition leaves, None for all, and whether every node in them meets it.

    `place` has the same of a comparison, None where it is no part of the keys of a list.
    """
    match where:
        case KeyComparison():
            return place(where)
        case Combination():
            parts = [_spans(part, place) for part in where.parts]
        case _:
            return None, False
    bounded = [spans for spans, _ in parts if spans is not None]
    is_exact = all(exact for _, exact in parts)
    match where.operator:
        case "and":
            return (intersection(*bounded) if bounded else None), is_exact
        case "or":
            return (union(*bounded) if len(bounded) == len(parts) else None), is_exact and len(bounded) == len(parts)
    if is_exact and bounded:
        return complement(bounded[0]), True
    return None, False


def _count(where: Condition) -> int:
    """The most spans that a condition can leave."""
    match where:
        case KeyComparison():
            return len(where.spans)
        case Combination():
            return sum([_count(part) for part in where.parts]) + 1
    return 0


@dataclass(frozen=True)
class ConnectionArguments:
    """The arguments of a connection, as Relay and the schema name them.

    Of `levels` there is one or more in their order, none for all; `where` is what has to be tested for each node, and
    `bounds` the part of the list's keys that it leaves, None for all. Without `first` and `last` all of the list is
    requested. `compared` is whether its nodes are read to be sorted or filtered, which is another budget but no other
    page. Raises BadInput for arguments that contradict each other, and BadCursor for an empty cursor or one that is too
    long.
    """

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None
    levels: tuple[str, ...] = ()
    max_depth: int | None = None
    ordering: Ordering = LIST_ORDER
    where: Condition | None = None
    bounds: KeyBounds | None = None
    compared: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("first", self.first), ("last", self.last), ("maxDepth", self.max_depth)):
            if value is not None and value < 0:
                raise BadInput(f"{name} is {value}; it must be 0 or more.")
        check_cursor("after", self.after)
        check_cursor("before", self.before)
        if self.first is not None and self.last is not None:
            raise BadInput("first and last are both given; give one of them.")

    def has_level(self, level: str) -> bool:
        """Whether nodes of a level can be in the list."""
        return not self.levels or level in self.levels

    def whole(self) -> "ConnectionArguments":
        """The arguments of the whole list as it is read, of the same levels and between the same bounds."""
        ordering = Ordering(place=self.ordering.place)
        return ConnectionArguments(
            levels=self.levels, max_depth=self.max_depth, ordering=ordering, bounds=self.bounds, compared=True
        )

    @property
    def size(self) -> int | None:
        """The maximum number of nodes, None for all."""
        return self.last if self.first is None else self.first

    @property
    def limit(self) -> int | None:
        """The maximum number of records to read: one more than `size`, which shows whether there is a next page."""
        return None if self.size is None else self.size + 1

    @property
    def descending(self) -> bool:
        """Whether the page is at the end of the range in key order, so that it is read backwards."""
        return self.ordering.descending != (self.last is not None)

    @cached_property
    def is_narrow(self) -> bool:
        """Whether bounds or cursors leave out a part of the list."""
        return self.bounds is not None or self.is_paged

    @property
    def is_paged(self) -> bool:
        """Whether cursors leave out a part of the list."""
        return self.after is not None or self.before is not None

    def positions(self, decode: Callable[[str], str]) -> tuple[str | None, str | None]:
        """The positions between which the page lies, in the order of the list; `decode` takes a cursor."""
        after, before = [None if cursor is None else decode(cursor) for cursor in (self.after, self.before)]
        return (before, after) if self.ordering.descending else (after, before)

    def between_cursors(self, span: KeyRange, decode: Callable[[str], str]) -> KeyRange:
        """The part of a range between the cursors; `decode` gives the key of a cursor."""
        after, before = self.positions(decode)
        span = span if after is None else span.after(after)
        return span if before is None else span.before(before)


class Cursors(Protocol):
    """The cursors of the records of a list."""

    def cursor(self, record: Record) -> str: ...

    def position(self, record: Record) -> str:
        """The place of a record in the list: a text that sorts as the list does."""
        ...


@dataclass
class Page:
    """A part of a list, as the fields of a connection show it: its records in the list's order, whether there are
    others, and `totalCount` and `facets` if these were selected; `near` is the condition that tells their distances.

    `cursors` is None only for an empty page.
    """

    records: list[Record]
    has_next: bool = False
    has_previous: bool = False
    total: int | None = None
    cursors: Cursors | None = None
    facets: Mapping[FacetsRequest, Sequence[ListFacet]] = field(default_factory=dict)
    near: NearComparison | None = None
    json_fields: dict[int, tuple[bytes, int]] = field(default_factory=dict, compare=False)
    """A cache of the page's fields as JSON, by numbers that their writer chooses."""
    _uses: int = field(default=0, compare=False)

    def use(self) -> None:
        """Note that its records are written: from the second time on their fragments are cached."""
        self._uses += 1
        if self._uses == 2:
            for record in self.records:
                record.with_fragments()

    def cursor(self, record: Record) -> str:
        assert self.cursors is not None  # only an empty page has none  # noqa: S101
        return self.cursors.cursor(record)


def page_of(records: list[Record], arguments: ConnectionArguments, total: int | None, cursors: Cursors) -> Page:
    """The page of records that were read in the direction of its arguments, one more than it has where one follows."""
    more = arguments.size is not None and len(records) > arguments.size
    shown = records[: arguments.size]
    if arguments.last is not None:
        return Page(shown[::-1], arguments.before is not None, more or arguments.after is not None, total, cursors)
    return Page(shown, more or arguments.before is not None, arguments.after is not None, total, cursors)


class RelationKind(StrEnum):
    """The fields of a node that lead to other nodes; and the roots of a hierarchy, and the revisions of a node."""

    PARENT = "parent"
    ANCESTORS = "ancestors"
    CHILDREN = "children"
    DESCENDANTS = "descendants"
    ROOTS = "roots"
    REVISIONS = "revisions"


class RelationKey(Struct, frozen=True, cache_hash=True):
    """The part of the cache key of a page that comes from its field: equal keys have equal pages."""

    kind: RelationKind
    arguments: ConnectionArguments
    nodes: bool
    total: bool
    counts: bool


class Selection(Protocol):
    """The selection set of the nodes at one place of a response; it may differ from level to level."""

    def on(self, hierarchy: str, level: str) -> "tuple[Relation, ...]":
        """The relations that are selected for a node of this level of a hierarchy."""
        ...


@dataclass(frozen=True, eq=False)
class Relation:
    """One selected relation, with its arguments and the selection set of its nodes.

    `nodes` is whether any node is selected, `total` whether `totalCount` is, and `counts` whether `descendantCount` of
    roots is; `facets` are those that are, each once. `is_cached` is whether its pages are: not where something is made
    of many short ones. Two relations are equal only if they are the same object.
    """

    kind: RelationKind
    arguments: ConnectionArguments
    selection: Selection
    nodes: bool = True
    total: bool = False
    counts: bool = False
    facets: tuple[FacetsRequest, ...] = ()
    is_cached: bool = True

    @cached_property
    def page_key(self) -> RelationKey:
        return RelationKey(self.kind, self.arguments, self.nodes, self.total, self.counts)

    @cached_property
    def whole(self) -> "Relation":
        """What has to be read: itself, or the whole list in its own order where more than a page of it is needed.

        Lists below it are read together with it only if all of its nodes are on the page.
        """
        arguments = self.arguments
        if not self.takes_whole_list:
            return self
        is_shown = arguments.where is None and arguments.size is None and not arguments.is_paged
        selection = self.selection if is_shown else NOTHING
        return Relation(self.kind, arguments.whole(), selection, counts=self.counts)

    @property
    def is_returned(self) -> bool:
        """Whether the nodes that are read are those of the response, also where these are sorted."""
        return not self.arguments.compared or self.selection is not NOTHING

    @cached_property
    def takes_whole_list(self) -> bool:
        """Whether all of the list is read first, to be sorted, filtered or counted."""
        return self.is_sorted or any(not self.is_counted(one) for one in self.facets)

    def is_counted(self, facets: FacetsRequest) -> bool:
        """Whether the counts of the owner answer these facets."""
        arguments = self.arguments
        is_whole = arguments.where is None and arguments.bounds is None and arguments.max_depth is None
        return is_whole and facets.is_of_levels

    @cached_property
    def is_sorted(self) -> bool:
        """Whether the list is filtered, or has an order in which no range has it."""
        ordering, arguments = self.arguments.ordering, self.arguments
        if arguments.where is not None or ordering.fields:
            return True
        match self.kind:
            case RelationKind.CHILDREN:
                return arguments.bounds is not None and ordering.place in (None, PlaceOrder.POSITION)
            case RelationKind.DESCENDANTS:
                return self.is_by_position or (ordering.place is PlaceOrder.KEY and arguments.max_depth != 1)
        return ordering.place in (PlaceOrder.KEY, PlaceOrder.PATH)

    @property
    def is_by_position(self) -> bool:
        """Whether nodes of different parents are in the order in which editors put them."""
        return self.kind is RelationKind.DESCENDANTS and self.arguments.ordering.place is PlaceOrder.POSITION

    @cached_property
    def is_plain(self) -> bool:
        """Whether its pages are parts of what is read, and nothing more."""
        return not (self.is_sorted or self.facets)

    @cached_property
    def without_facets(self) -> "Relation":
        """The same list without its facets."""
        return replace(self, facets=()) if self.facets else self

    @property
    def is_cacheable(self) -> bool:
        """Whether the sorted and filtered list is cached: not by a point, which differs."""
        return self.arguments.where is None or self.arguments.where.is_cacheable

    @cached_property
    def near(self) -> NearComparison | None:
        """The condition that tells the distances of its nodes."""
        return direct_near(self.arguments.where)

    @cached_property
    def order_digest(self) -> str:
        """A digest of its order and conditions, made once for all of its lists, since conditions may be long."""
        arguments = self.arguments
        where, bounds = arguments.where, arguments.bounds
        identity = arguments.ordering.identity, [where and where.identity, bounds and bounds.digest]
        return blake2b(repr(identity).encode(), digest_size=16).hexdigest()

    @cached_property
    def _errors(self) -> dict[str, CladeError]:
        return {}

    def shared_error(self, error: CladeError) -> CladeError:
        """One instance of an error for all lists of the relation that fail alike, since there may be thousands."""
        return self._errors.setdefault(str(error), error.bare())

    @property
    def is_complete(self) -> bool:
        """Whether it selects all children of a node; only complete lists are prefetched."""
        arguments = self.arguments
        return (
            self.nodes
            and self.kind is RelationKind.CHILDREN
            and arguments.size is None
            and not arguments.levels
            and not arguments.is_narrow
            and not self.is_sorted
        )


class NoSelection:
    """An empty selection set."""

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        return ()


NOTHING = NoSelection()

Asked = tuple[Relation, Sequence[Record]]
"""A relation, with the nodes of which it is asked for."""
