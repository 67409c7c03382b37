"""What a store keeps decoded."""

from typing import Any, cast

import msgspec

from store.dynamodb.codec import WireItem, decode
from store.engine.protocol import Store
from store.engine.record_cache import RecordCache
from store.model.items import Item
from store.model.records import Record
from store.sqlite.store import SQLiteStore


def decoded_by(decoded: RecordCache) -> dict[bytes, Record]:
    """All records that are kept, by what they were decoded from."""
    return dict(decoded._records._entries)


def kept_by(store: Store) -> dict[bytes, Record]:
    return decoded_by(cast(Any, store)._decoded)


def spoilt(store: Store) -> list[Record]:
    """The kept records that are not what they were decoded from: somebody has changed an object that others share."""
    items = _msgpack if isinstance(store, SQLiteStore) else _json
    return [record for content, record in kept_by(store).items() if Record.of(items(content)) != record]


def _msgpack(content: bytes) -> Item:
    return msgspec.msgpack.decode(content, type=dict[str, Any])


def _json(content: bytes) -> Item:
    return decode(msgspec.json.decode(content, type=WireItem))
