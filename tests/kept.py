"""What a store keeps decoded."""

from typing import Any, cast

import msgspec

from store.decoded import Decoded
from store.items import Item
from store.records import Record
from store.sqlite import SQLiteStore
from store.stores import Store
from store.wire import WireItem, decode


def decoded_by(decoded: Decoded) -> dict[bytes, Record]:
    """All records that are kept, by what they were decoded from."""
    return {**decoded._old, **decoded._young}


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
