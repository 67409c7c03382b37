"""SQLite table: its schema and statements, and its rows: items as msgpack in the column `body`, decoded and checked."""

from collections.abc import Iterable
from typing import Any

import msgspec

from store.metadata.tree_version import LAYOUT
from store.model.attributes import Value
from store.model.keys import Index, index_name
from store.model.records import MAX_ITEM_BYTES, Item, Record, canonical_item, checked_item_size

# `expires` is a column so that expired items are found. `body` holds the whole item, its keys too, because adding them
# to it after a read would take more time than their bytes do.
SCHEMA = (
    """CREATE TABLE items (
        pk TEXT NOT NULL, sk TEXT NOT NULL, parent TEXT, rank TEXT, tier TEXT, expires REAL, body BLOB NOT NULL,
        PRIMARY KEY (pk, sk)
    ) WITHOUT ROWID""",
    "CREATE INDEX by_parent ON items (parent, rank) WHERE parent IS NOT NULL",
    "CREATE INDEX by_level ON items (tier, sk) WHERE tier IS NOT NULL",
    "CREATE INDEX by_expiry ON items (expires) WHERE expires IS NOT NULL",
    f"PRAGMA user_version = {LAYOUT}",
)
COLUMNS = ["pk", "sk", "parent", "rank", "tier", "expires", "body"]
INSERT = "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?)"
PUT = "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?)"
DELETE = "DELETE FROM items WHERE pk = ? AND sk = ?"
SCAN = (
    "SELECT pk, sk, body FROM items WHERE (pk, sk) > (?, ?) AND (expires IS NULL OR expires > ?) "
    "ORDER BY pk, sk LIMIT ?"
)
EXPIRED = "SELECT pk, sk FROM items WHERE expires <= ? LIMIT ?"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


class Undecodable(Exception):
    """The content of a row is not what was written to it."""


def where(index: Index) -> str:
    """FROM and WHERE of a SELECT of a range; parameters: partition, lower and upper bound, current time."""
    by = f" INDEXED BY {index_name(index)}" if index is not Index.TABLE else ""
    return (
        f"FROM items{by} WHERE {index.partition} = ? AND {index.sort} >= ? AND {index.sort} < ? "
        "AND (expires IS NULL OR expires > ?)"
    )


def count_page(index: Index) -> str:
    """The SELECT that counts a page of a range: its rows, their bytes, and the sort key of the last one."""
    rows = f"SELECT length(body) AS size, {index.sort} AS sort {where(index)} ORDER BY {index.sort} LIMIT ?"
    return f"SELECT count(*), total(size), max(sort) FROM ({rows})"  # noqa: S608  # of constants alone


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
