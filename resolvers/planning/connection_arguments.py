"""Connection arguments: the part of a list that a client requests."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Self

from resolvers.planning.cursors import MAX_CURSOR_CHARACTERS, cursor_too_long
from resolvers.sorting.conditions import Condition
from resolvers.sorting.ordering import Ordering
from store.errors import BadInput
from store.model.ranges import KeyRange


@dataclass(frozen=True)
class ConnectionArguments:
    """The arguments of a connection, as Relay and the schema name them; `start` and `end` are `from` and `to`, encoded
    like the segments of a key. `levels` are two or more in their order, `level` is a single one; `ordering` is None for
    the order that the list has by itself.

    Without `first` and `last` all of the list is requested. Raises BadInput for arguments that contradict each other,
    and BadCursor for a cursor of more than the maximum length.
    """

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None
    level: str | None = None
    start: str | None = None
    end: str | None = None
    reverse: bool = False
    max_depth: int | None = None
    levels: tuple[str, ...] = ()
    ordering: Ordering | None = None
    where: Condition | None = None

    def __post_init__(self) -> None:
        for name, value in (("first", self.first), ("last", self.last), ("maxDepth", self.max_depth)):
            if value is not None and value < 0:
                raise BadInput(f"{name} is {value}; it must be 0 or more.")
        for cursor in (self.after, self.before):
            if cursor is not None and len(cursor) > MAX_CURSOR_CHARACTERS:
                raise cursor_too_long(cursor)
        if self.first is not None and self.last is not None:
            raise BadInput("first and last are both given; give one of them.")

    @classmethod
    def of_levels(cls, levels: Collection[str], **others: Any) -> Self:
        """Arguments with these levels; raises BadInput where there is none."""
        if not levels:
            raise BadInput("levels is empty; give levels, or omit it for all.")
        several = tuple(sorted(set(levels)))
        return cls(level=several[0], **others) if len(several) == 1 else cls(levels=several, **others)

    def has_level(self, level: str) -> bool:
        """Whether nodes of a level can be in the list."""
        return level in self.levels if self.levels else self.level in (None, level)

    @property
    def has_all_levels(self) -> bool:
        """Whether nodes of all levels can be in the list."""
        return self.level is None and not self.levels

    @property
    def is_arranged(self) -> bool:
        """Whether the list is sorted or filtered, so that all of it is read first."""
        return self.where is not None or self.ordering is not None

    def whole(self) -> "ConnectionArguments":
        """The arguments of the whole list in its own order."""
        return ConnectionArguments(
            level=self.level, levels=self.levels, start=self.start, end=self.end, max_depth=self.max_depth
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
        return self.reverse != (self.last is not None)

    @property
    def is_bounded(self) -> bool:
        """Whether `from` or `to` is given; the list is then in key order."""
        return self.start is not None or self.end is not None

    @property
    def is_narrow(self) -> bool:
        """Whether bounds or cursors leave out a part of the list."""
        return self.is_bounded or self.is_paged

    @property
    def is_paged(self) -> bool:
        """Whether cursors leave out a part of the list."""
        return self.after is not None or self.before is not None

    def positions(self, decode: Callable[[str], str]) -> tuple[str | None, str | None]:
        """The positions between which the page lies, in the order of the list; `decode` takes a cursor."""
        after, before = [None if cursor is None else decode(cursor) for cursor in (self.after, self.before)]
        return (before, after) if self.reverse else (after, before)

    def between_cursors(self, span: KeyRange, decode: Callable[[str], str]) -> KeyRange:
        """The part of a range between the cursors; `decode` gives the key of a cursor."""
        after, before = self.positions(decode)
        span = span if after is None else span.after(after)
        return span if before is None else span.before(before)
