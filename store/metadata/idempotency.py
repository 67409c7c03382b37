"""Idempotency records: the stored result of a write, in the same transaction, kept for 24 hours.

A record holds the node's key and revision after the write, not its content, which its history has.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, cast

from msgspec.structs import replace

from store.errors import BadInput
from store.metadata.move_record import move_key
from store.model.attributes import Value
from store.model.items import ABSENT, Item, Put
from store.model.keys import Key
from store.model.records import Record
from store.text import shorten

RECORD_SECONDS = 24 * 3600
MAX_KEY_CHARACTERS = 128


def idempotency_key(hierarchy: str, key: str, caller: str) -> Key:
    """The key of the record of a caller's write; raises BadInput for an invalid `key`.

    Each caller has its own keys, so that none can read by them what another has written.
    """
    if not 0 < len(key) <= MAX_KEY_CHARACTERS or not key.isprintable():
        raise BadInput(
            f'"{shorten(key)}" is not an idempotencyKey; it has 1 to {MAX_KEY_CHARACTERS} printable characters.'
        )
    return Key(f"once#{hierarchy}:{key}", f"v0#{digest(caller)}" if caller else "v0")


def request_fingerprint(kind: str, fields: Mapping[str, Any]) -> str:
    """The same text for the same write, in whatever order its fields are; one that is None equals one left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    return digest(json.dumps([kind, given], sort_keys=True))


def idempotency_record(key: Key, fingerprint: str, record: Record, now: float, move_id: str | None) -> Put:
    """The record of a write with this fingerprint: the node of its payload, and the move that it started."""
    node = replace(record, name="", attributes={}).item() | {"below": cast(Value, record.descendant_counts)}
    item: Item = {
        "pk": key.pk, "sk": key.sk, "wanted": fingerprint, "node": cast(Value, node), "move": move_id,
        "expires": int(now) + RECORD_SECONDS,
    }  # fmt: skip
    return Put(item, ABSENT)


def stored_result(item: Item, fingerprint: str) -> tuple[Record, Key | None]:
    """The node of a write, without its name and attributes, and the key of the move that it started, if any.

    Raises BadInput where the fingerprint is that of another write.
    """
    if item["wanted"] != fingerprint:
        raise BadInput("This idempotencyKey was used for another change within the last 24 hours; choose a new one.")
    move_id = cast(str | None, item.get("move"))
    node = cast(Any, item["node"])
    return replace(Record.of(node), below=node["below"]), None if move_id is None else move_key(move_id)


def digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
