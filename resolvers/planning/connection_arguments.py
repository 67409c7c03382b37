"""Connection arguments: the part of a list that a client requests."""

from collections.abc import Callable
from dataclasses import dataclass

from resolvers.planning.cursors import MAX_CURSOR_CHARACTERS, cursor_too_long
from resolvers.planning.key_bounds import KeyBounds
from resolvers.sorting.conditions import Condition
from resolvers.sorting.ordering import LIST_ORDER, Ordering
from store.errors import BadInput
from store.model.keys import KeyRange


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

    @property
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
