"""Relations: the fields of a node that read other nodes, with the arguments of connections and their selections."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

from resolvers.planning.cursors import MAX_CURSOR_CHARACTERS, cursor_too_long
from resolvers.planning.key_bounds import KeyBounds
from resolvers.sorting.conditions import Condition
from resolvers.sorting.ordering import LIST_ORDER, Ordering, PlaceOrder
from store.errors import BadInput, CladeError
from store.model.ranges import KeyRange


@dataclass(frozen=True)
class ConnectionArguments:
    """The arguments of a connection, as Relay and the schema name them.

    Of `levels` there is one or more in their order, none for all; `where` is what has to be tested for each node, and
    `bounds` the part of the list's keys that it leaves, None for all. Without `first` and `last` all of the list is
    requested. Raises BadInput for arguments that contradict each other, and BadCursor for a cursor of more than the
    maximum length.
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

    def __post_init__(self) -> None:
        for name, value in (("first", self.first), ("last", self.last), ("maxDepth", self.max_depth)):
            if value is not None and value < 0:
                raise BadInput(f"{name} is {value}; it must be 0 or more.")
        for cursor in (self.after, self.before):
            if cursor is not None and len(cursor) > MAX_CURSOR_CHARACTERS:
                raise cursor_too_long(cursor)
        if self.first is not None and self.last is not None:
            raise BadInput("first and last are both given; give one of them.")

    def has_level(self, level: str) -> bool:
        """Whether nodes of a level can be in the list."""
        return not self.levels or level in self.levels

    @property
    def level_or_all(self) -> tuple[str | None, ...]:
        """The levels, None for all, in the order in which an index has them."""
        return self.levels or (None,)

    def whole(self) -> "ConnectionArguments":
        """The arguments of the whole list as it is read, of the same levels and between the same bounds."""
        ordering = Ordering(place=self.ordering.place)
        return ConnectionArguments(levels=self.levels, max_depth=self.max_depth, ordering=ordering, bounds=self.bounds)

    @cached_property
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


class RelationKind(StrEnum):
    """The fields of a node that lead to other nodes; and the roots of a hierarchy, and the revisions of a node."""

    PARENT = "parent"
    ANCESTORS = "ancestors"
    CHILDREN = "children"
    DESCENDANTS = "descendants"
    SIBLINGS = "siblings"
    ROOTS = "roots"
    REVISIONS = "revisions"


class RelationKey(Struct, frozen=True, cache_hash=True):
    """The part of the cache key of a page that comes from its field: equal keys have equal pages."""

    kind: RelationKind
    window: ConnectionArguments
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
    nodes is that can be roots. `tests` is the number of comparisons with each node of a list that is read to be sorted
    and filtered, 0 for a list that is returned. Two relations are equal only if they are the same object.
    """

    kind: RelationKind
    window: ConnectionArguments
    selection: Selection
    nodes: bool = True
    total: bool = False
    counts: bool = False
    tests: int = 0

    @cached_property
    def page_key(self) -> RelationKey:
        return RelationKey(self.kind, self.window, self.nodes, self.total, self.counts)

    @cached_property
    def whole(self) -> "Relation":
        """What has to be read: itself, or the whole list in its own order where it is sorted or filtered.

        Lists below it are read together with it only if all of its nodes are on the page.
        """
        return self.to_sort if self.is_sorted else self

    @cached_property
    def to_sort(self) -> "Relation":
        """The whole list in its own order, to be sorted and filtered."""
        window = self.window
        is_shown = window.where is None and window.size is None and not window.is_paged
        selection = self.selection if is_shown else NoSelection()
        return Relation(self.kind, window.whole(), selection, counts=self.counts, tests=self.tests_of_each)

    @property
    def tests_of_each(self) -> int:
        """The number of comparisons with each node of the list where it is sorted and filtered."""
        window = self.window
        return 1 + len(window.ordering.fields) + (0 if window.where is None else window.where.tests)

    @cached_property
    def is_sorted(self) -> bool:
        """Whether the list is filtered, or has an order in which no range has it, so that all of it is read first."""
        ordering, window = self.window.ordering, self.window
        if window.where is not None or ordering.fields:
            return True
        match self.kind:
            case RelationKind.CHILDREN:
                return window.bounds is not None and ordering.place in (None, PlaceOrder.POSITION)
            case RelationKind.DESCENDANTS:
                return ordering.place is PlaceOrder.KEY and window.max_depth != 1
        return ordering.place in (PlaceOrder.KEY, PlaceOrder.PATH)

    @cached_property
    def order_digest(self) -> str:
        """A digest of its order and conditions, made once for all of its lists, since conditions may be long."""
        window = self.window
        where, bounds = window.where, window.bounds
        identity = window.ordering.identity, [where and where.identity, bounds and bounds.digest]
        return blake2b(repr(identity).encode(), digest_size=16).hexdigest()

    @cached_property
    def _errors(self) -> dict[str, CladeError]:
        return {}

    def shared_error(self, error: CladeError) -> CladeError:
        """One instance of an error for all lists of the relation that fail alike, since there may be thousands."""
        return self._errors.setdefault(str(error), error.bare())

    @cached_property
    def is_complete(self) -> bool:
        """Whether it selects all children of a node; only complete lists are prefetched."""
        window = self.window
        return (
            self.nodes
            and self.kind is RelationKind.CHILDREN
            and window.size is None
            and not window.levels
            and not window.is_narrow
            and not self.is_sorted
        )


class NoSelection:
    """An empty selection set."""

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        return ()
