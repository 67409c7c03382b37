"""Cursors: where a page of a list begins.

A cursor is a position in one order of one list: it names the order, the list's owner and the position, and nothing of
where the owner lies, so it stays valid when the owner moves.
"""

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from store.errors import BadCursor
from store.model.keys import MAX_SORT_KEY_BYTES
from store.model.records import Record
from store.text import shorten

_PREFIX_BYTES = 7  # of a cursor: its order, and a digest of its list's owner
MAX_CURSOR_CHARACTERS = -(-(_PREFIX_BYTES + MAX_SORT_KEY_BYTES) * 4 // 3)  # in base64

_NUMBER = re.compile(r"[0-9]{1,12}")


class CursorKind(StrEnum):
    """The orders that lists come in; the letter stands in cursors."""

    ROOTS = "r"
    CHILDREN = "c"
    CHILDREN_BY_KEY = "k"
    SIBLINGS = "s"
    DESCENDANTS = "d"
    HISTORY = "h"
    CHANGES = "f"


def encode_cursor(order: CursorKind, owner: str, position: str) -> str:
    """The cursor of a position in the list of `owner` (an id, or a hierarchy's name for its roots)."""
    return urlsafe_b64encode(order.encode() + _digest(owner) + position.encode()).decode().rstrip("=")


@dataclass(frozen=True)
class ListCursors:
    """What tells the cursors of one list: its order, its owner, and from where on a sort key is its records' position.

    A page keeps this, and nothing of the request that it was read for.
    """

    order: CursorKind
    owner: str
    start: int | None

    def cursor(self, record: Record) -> str:
        return encode_cursor(self.order, self.owner, record.rank if self.start is None else record.sk[self.start :])


def too_long(cursor: str) -> BadCursor:
    return BadCursor(f"A cursor has {len(cursor):,} characters; the longest has {MAX_CURSOR_CHARACTERS:,}.")


def decode_cursor(cursor: str, order: CursorKind, owner: str) -> str:
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


def decode_number(cursor: str, order: CursorKind, owner: str) -> int:
    """The same of a list whose positions are numbers."""
    position = decode_cursor(cursor, order, owner)
    if not _NUMBER.fullmatch(position):
        raise BadCursor(f'"{shorten(cursor)}" holds no number, as the cursors of this list do; take one from it.')
    return int(position)


def _digest(owner: str) -> bytes:
    return blake2b(owner.encode(), digest_size=6).digest()
