"""Cached records of a store, for tests."""

from typing import Any, cast

import msgspec

from store.dynamodb.codec import WireItem, decode
from store.engine.protocol import Store
from store.engine.record_cache import RecordCache
from store.model.items import Item
from store.model.records import Record
from store.sqlite.store import SQLiteStore


def decoded_records(decoded: RecordCache) -> dict[bytes, Record]:
    """All cached records, by the bytes that they were decoded from."""
    return dict(decoded._records._entries)


def cached_records(store: Store) -> dict[bytes, Record]:
    return decoded_records(cast(Any, store)._decoded)


def changed_records(store: Store) -> list[Record]:
    """The cached records that differ from their bytes: a shared object was changed."""
    items = _msgpack if isinstance(store, SQLiteStore) else _json
    return [record for content, record in cached_records(store).items() if Record.of(items(content)) != record]


def _msgpack(content: bytes) -> Item:
    return msgspec.msgpack.decode(content, type=dict[str, Any])


def _json(content: bytes) -> Item:
    return decode(msgspec.json.decode(content, type=WireItem))
