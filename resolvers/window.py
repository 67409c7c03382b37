"""Which part of a list a client asks for, and the cursors that say where a part begins.

A cursor is a place in one order of one list: it names the order, the list's owner and the position, and nothing of
where the owner lies, so it stays valid when the owner moves.
"""

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from store.errors import BadCursor, BadInput
from store.keys import MAX_SORT_KEY_BYTES, shorten
from store.records import Record

_PREFIX_BYTES = 7  # of a cursor: its order, and a digest of its list's owner
MAX_CURSOR_CHARACTERS = -(-(_PREFIX_BYTES + MAX_SORT_KEY_BYTES) * 4 // 3)  # in base64

_NUMBER = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True)
class Window:
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


class Order(StrEnum):
    """The orders that lists come in; the letter stands in cursors."""

    ROOTS = "r"
    CHILDREN = "c"
    CHILDREN_BY_KEY = "k"
    SIBLINGS = "s"
    DESCENDANTS = "d"
    HISTORY = "h"
    CHANGES = "f"


def encode_cursor(order: Order, owner: str, position: str) -> str:
    """The cursor of a position in the list of `owner` (an id, or a hierarchy's name for its roots)."""
    return urlsafe_b64encode(order.encode() + _digest(owner) + position.encode()).decode().rstrip("=")


@dataclass(frozen=True)
class ListCursors:
    """What tells the cursors of one list: its order, its owner, and from where on a sort key is its records' position.

    A page keeps this, and nothing of the request that it was read for.
    """

    order: Order
    owner: str
    start: int | None

    def cursor(self, record: Record) -> str:
        return encode_cursor(self.order, self.owner, record.rank if self.start is None else record.sk[self.start :])


def too_long(cursor: str) -> BadCursor:
    return BadCursor(f"A cursor has {len(cursor):,} characters; the longest has {MAX_CURSOR_CHARACTERS:,}.")


def decode_cursor(cursor: str, order: Order, owner: str) -> str:
    """The position in this order of this owner's list; raises BadCursor where the cursor is of another."""
    if len(cursor) > MAX_CURSOR_CHARACTERS:
        raise too_long(cursor)
    try:
        raw = b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        position = raw[_PREFIX_BYTES:].decode()
    except (ValueError, binascii.Error):
        raise BadCursor(f'"{shorten(cursor)}" is no cursor; take one from edges or pageInfo.') from None
    if raw[:_PREFIX_BYTES] != order.encode() + _digest(owner) or not position:
        raise BadCursor(f'"{shorten(cursor)}" is a cursor of another list; a cursor goes with the list it came from.')
    return position


def decode_number(cursor: str, order: Order, owner: str) -> int:
    """The same of a list whose positions are numbers."""
    position = decode_cursor(cursor, order, owner)
    if not _NUMBER.fullmatch(position):
        raise BadCursor(f'"{shorten(cursor)}" holds no number, as the cursors of this list do; take one from it.')
    return int(position)


def _digest(owner: str) -> bytes:
    return blake2b(owner.encode(), digest_size=6).digest()
