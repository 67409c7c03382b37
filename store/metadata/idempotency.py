"""Idempotency records: the stored result of a write, in the same transaction, kept for 24 hours.

A record holds where the node came to lie and which revision it had then, not its content, which its history keeps.
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


def idempotency_key(hierarchy: str, key: str, caller: str = "") -> Key:
    """Where the outcome of a caller's write with an idempotency key lies; raises BadInput for a key that cannot be one.

    Each caller has its own, so that nobody learns by a key what another has written.
    """
    if not 0 < len(key) <= MAX_KEY_CHARACTERS or not key.isprintable():
        raise BadInput(
            f'"{shorten(key)}" is no idempotencyKey; it has 1 to {MAX_KEY_CHARACTERS} characters that can be printed.'
        )
    return Key(f"once#{hierarchy}:{key}", f"v0#{digest(caller)}" if caller else "v0")


def request_fingerprint(kind: str, fields: Mapping[str, Any]) -> str:
    """The same text for the same write, whatever the order of what it names; None is as if it were left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    return digest(json.dumps([kind, given], sort_keys=True))


def idempotency_record(key: Key, wanted: str, record: Record, now: float, move_id: str | None = None) -> Put:
    """The result of a write with the fingerprint `wanted`: the node of its payload, and the move that it began."""
    node = replace(record, name="", attributes={}).item()
    item: Item = {
        "pk": key.pk, "sk": key.sk, "wanted": wanted, "node": cast(Value, node), "move": move_id,
        "expires": int(now) + RECORD_SECONDS,
    }  # fmt: skip
    return Put(item, ABSENT)


def stored_result(item: Item, wanted: str) -> tuple[Record, Key | None]:
    """The node of a write, without its name and attributes, and where the state of the move lies that it began, if any.

    Raises BadInput where another write has used the key.
    """
    if item["wanted"] != wanted:
        raise BadInput("This idempotencyKey was used for another change within the last 24 hours; choose a new one.")
    move_id = cast(str | None, item.get("move"))
    return Record.of(cast(Item, item["node"])), None if move_id is None else move_key(move_id)


def digest(wanted: str) -> str:
    return blake2b(wanted.encode(errors="surrogatepass"), digest_size=16).hexdigest()
