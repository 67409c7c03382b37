"""Rows: items as msgpack in the column `body`, decoded and checked, with their sizes."""

from collections.abc import Iterable
from typing import Any

import msgspec

from store.model.attributes import Value
from store.model.records import MAX_ITEM_BYTES, Item, Record, canonical_item, checked_item_size
from store.sqlite.connection import Undecodable

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


def decode(body: bytes) -> Item:
    """The item in a body; raises Undecodable."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        raise Undecodable(str(error)) from error


def decode_at(pk: str, sk: str, body: bytes) -> Item:
    """The item in the body of a row; raises Undecodable, also where it has another key than the row."""
    item = decode(body)
    if (item.get("pk"), item.get("sk")) != (pk, sk):
        raise Undecodable("a row has another key than its content")
    return item


def decode_record(body: bytes) -> Record:
    """The record in the body of a node."""
    return Record.of(decode(body))


def total_size(bodies: Iterable[object]) -> int:
    """The bytes of these bodies together; raises Undecodable."""
    try:
        return sum(map(len, bodies))  # type: ignore[arg-type]  # in a damaged row it is not bytes
    except TypeError as error:
        raise Undecodable("a row has no content") from error


def row_of(item: Item) -> tuple[Value | bytes, ...]:
    """The columns of an item; raises BadInput where it cannot be stored."""
    canonical = canonical_item(item)
    body = _encode(canonical)
    if len(body) > MAX_ITEM_BYTES // 4:  # msgpack is no more than that much shorter than what DynamoDB counts
        checked_item_size(canonical)
    get = canonical.get
    return get("pk"), get("sk"), get("parent"), get("rank"), get("tier"), get("expires"), body
