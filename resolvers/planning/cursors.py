"""Cursors: opaque positions in lists, for `after` and `before`.

A cursor contains the kind of the list, a digest of the owner's id and the position relative to the owner. It does not
contain the owner's path, so it stays valid when the owner moves.
"""

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from operator import attrgetter

from resolvers.sorting.ordering import MAX_ORDER_FIELDS, MAX_SORTED_CHARACTERS
from store.errors import BadCursor, shorten
from store.model.keys import MAX_SORT_KEY_BYTES
from store.model.records import Record

_PREFIX_BYTES = 7  # the kind of the list, and a digest of its owner
_MAX_VALUES_BYTES = MAX_ORDER_FIELDS * (6 * MAX_SORTED_CHARACTERS + 3) + 2  # of a sorted list: JSON, then a new line
MAX_CURSOR_CHARACTERS = -(-(_PREFIX_BYTES + _MAX_VALUES_BYTES + MAX_SORT_KEY_BYTES) * 4 // 3)  # in base64

_NUMBER = re.compile(r"[0-9]{1,12}")


class CursorKind(StrEnum):
    """The kinds of lists, each with its order; the letter is the first byte of a cursor."""

    ROOTS = "r"
    CHILDREN = "c"
    CHILDREN_BY_KEY = "k"
    DESCENDANTS = "d"
    ARRANGED = "o"
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


def cursor_too_long(cursor: str) -> BadCursor:
    return BadCursor(f"A cursor has {len(cursor):,} characters; the longest has {MAX_CURSOR_CHARACTERS:,}.")


def decode_cursor(cursor: str, order: CursorKind, owner: str) -> str:
    """The position in this list of this owner; raises BadCursor for a cursor of another list."""
    if len(cursor) > MAX_CURSOR_CHARACTERS:
        raise cursor_too_long(cursor)
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
    """The same for a list whose positions are numbers."""
    position = decode_cursor(cursor, order, owner)
    if not _NUMBER.fullmatch(position):
        raise BadCursor(f'"{shorten(cursor)}" is a cursor of another list; use a cursor of the same list.')
    return int(position)


def _digest(owner: str) -> bytes:
    return blake2b(owner.encode(), digest_size=6).digest()
