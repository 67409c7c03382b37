"""SQLite table: its schema and statements, and its rows: items as msgpack in the column `body`, decoded and checked."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from store.metadata.tree_version import LAYOUT
from store.model.attributes import Value
from store.model.keys import Index, index_name
from store.model.records import MAX_ITEM_BYTES, Item, Record, canonical_item, checked_item_size

# `expires` is a column so that expired items are found. `body` holds the attributes that no other column has; of a node
# all that its record has, so that a record is decoded from it in one pass, and the attributes of its level apart, in #.
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
ROW = "body, pk, sk, parent, rank, tier"
SCAN = (
    f"SELECT {ROW} FROM items WHERE (pk, sk) > (?, ?) AND (expires IS NULL OR expires > ?) "  # noqa: S608
    "ORDER BY pk, sk LIMIT ?"
)
EXPIRED = "SELECT pk, sk FROM items WHERE expires <= ? LIMIT ?"
Row = tuple[bytes, str, str, str | None, str | None, str | None]
OWN = "#"  # the attributes of its level, in the body of a node
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode
_record = msgspec.msgpack.Decoder(Record).decode
_IN_RECORD = [name for name in Record.__struct_encode_fields__ if name != OWN]


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


def decode(
    body: bytes, pk: str | None = None, sk: str | None = None, parent: str | None = None, rank: str | None = None,
    tier: str | None = None,
) -> Item:  # fmt: skip
    """The item in a body, with the keys of its row that it has not; raises Undecodable."""
    try:
        item = _decode(body)
        if OWN in item:  # the body of a node, which has its own keys
            item |= item.pop(OWN)
            keys = {"parent": parent, "tier": tier}
        else:
            keys = {"pk": pk, "sk": sk, "parent": parent, "rank": rank}
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, ValueError) as error:
        raise Undecodable(str(error)) from error
    for name, key in keys.items():
        if key is not None:
            item[name] = key
    return item


def checked_item(row: Row) -> Item:
    """The item of a row; raises Undecodable, also where it has another key than the row."""
    item = decode(*row)
    if (item.get("pk"), item.get("sk")) != row[1:3]:
        raise Undecodable("a row has another key than its content")
    return item


def decode_record(body: bytes) -> Record:
    """The record in the body of a node. Raises DamagedItem, and Undecodable."""
    try:
        record = _record(body)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return Record.of(decode(body))
    is_whole = record.attributes is not None and (record.below is None) == record.is_root
    return record if is_whole else Record.of(decode(body))


def sizes(rows: Iterable[Sequence[Any]]) -> list[int]:
    """The bytes of the items in these rows, which begin with the body; raises Undecodable."""
    try:
        return [len(row[0]) for row in rows]  # in a damaged row it is not bytes
    except TypeError as error:
        raise Undecodable("a row has no content") from error


def row_of(item: Item) -> tuple[Value | bytes, ...]:
    """The columns of an item; raises BadInput where it cannot be stored."""
    content = canonical_item(item)
    row = [content.get(name) for name in COLUMNS[:-1]]
    if "tier" in content:
        content.pop("parent", None)
        del content["tier"]
        content = {name: content.pop(name) for name in _IN_RECORD if name in content} | {OWN: content}
    else:
        for name in COLUMNS[:4]:
            content.pop(name, None)
    body = _encode(content)
    if len(body) > MAX_ITEM_BYTES // 4:  # msgpack is no more than that much shorter than what DynamoDB counts
        checked_item_size(canonical_item(item))
    return *row, body
