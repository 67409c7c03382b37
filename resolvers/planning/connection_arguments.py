"""Connection arguments: which part of a list a client asks for."""

from dataclasses import dataclass

from resolvers.planning.cursors import MAX_CURSOR_CHARACTERS, too_long
from store.errors import BadInput


@dataclass(frozen=True)
class ConnectionArguments:
    """The arguments of a list, as Relay and the schema name them (`start` and `end` are `from` and `to`, encoded as
    segments are in keys).

    Without `first` and `last` it is all of the list. Raises BadInput where arguments contradict each other, and
    BadCursor for a cursor that is longer than any.
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

    def __post_init__(self) -> None:
        for name, value in (("first", self.first), ("last", self.last), ("maxDepth", self.max_depth)):
            if value is not None and value < 0:
                raise BadInput(f"{name} is {value}; it must be 0 or more.")
        for cursor in (self.after, self.before):
            if cursor is not None and len(cursor) > MAX_CURSOR_CHARACTERS:
                raise too_long(cursor)
        if self.first is not None and self.last is not None:
            raise BadInput("first and last are both given; ask from one end of the list.")

    @property
    def size(self) -> int | None:
        """How many nodes at most, None for all."""
        return self.last if self.first is None else self.first

    @property
    def limit(self) -> int | None:
        """How many to read at most: one more than asked for tells whether there are others."""
        return None if self.size is None else self.size + 1

    @property
    def descending(self) -> bool:
        """Whether the wanted nodes are the last ones in key order, so that reading begins at the end."""
        return self.reverse != (self.last is not None)

    @property
    def is_bounded(self) -> bool:
        """Whether `from` or `to` bound the next segment, which makes it a list in key order."""
        return self.start is not None or self.end is not None

    @property
    def is_narrow(self) -> bool:
        """Whether it holds only some stretch of the list, wherever it begins."""
        return self.is_bounded or self.after is not None or self.before is not None
