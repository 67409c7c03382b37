"""Idempotency records: the stored result of a write, in the same transaction, kept for 24 hours.

A record holds the keys and revisions of the nodes after the write, not their content, which their history has.
"""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from store.errors import BadData, BadInput, BadPath
from store.metadata.move_record import move_key
from store.model.attributes import Value
from store.model.items import ABSENT, Item, Put, damaged, decoded
from store.model.keys import Key, Path
from store.model.paths import format_path, parse_path
from store.model.records import Counts, Record
from store.text import shorten

RECORD_SECONDS = 24 * 3600
MAX_KEY_CHARACTERS = 128


def idempotency_key(hierarchy: str, key: str, caller: str) -> Key:
    """The key of the record of a caller's write; raises BadInput for an invalid `key`.

    Each caller has its own keys, so that none can read by them what another has written.
    """
    if not 0 < len(key) <= MAX_KEY_CHARACTERS or not key.isprintable():
        text = f'"{shorten(key)}" is not an idempotencyKey; it has 1 to {MAX_KEY_CHARACTERS} printable characters.'
        raise BadInput(text).at("idempotency_key")
    return Key(f"once#{hierarchy}:{key}", f"v0#{digest(caller)}" if caller else "v0")


def request_fingerprint(kind: str, asked: Any) -> str:
    """The same text for the same write, which was `asked` for as JSON, in whatever order its fields are."""
    return digest(json.dumps([kind, asked], sort_keys=True))


def idempotency_record(
    key: Key, fingerprint: str, records: Sequence[Record], now: float, move_id: str | None, before: Path | None
) -> Put:
    """The record of a write with this fingerprint: the nodes of its payload, the move that it started, and the path
    that the node of a move or deletion had.
    """
    nodes = [
        replace(record, name="", attributes={}).item() | {"below": cast(Value, record.descendant_counts)}
        for record in records
    ]
    item: Item = {
        "pk": key.pk, "sk": key.sk, "wanted": fingerprint, "nodes": cast(Value, nodes), "move": move_id,
        "before": None if before is None else format_path(before), "expires": int(now) + RECORD_SECONDS,
    }  # fmt: skip
    return Put(item, ABSENT)


class _StoredResult(Struct):
    wanted: str
    nodes: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    move: str | None = None
    before: str | None = None


class StoredResult(NamedTuple):
    """The nodes of a write, without their names and attributes, the key of the move that it started, and the path that
    the node of a move or deletion had.
    """

    records: list[Record]
    move_key: Key | None
    before: Path | None


def stored_result(item: Item, fingerprint: str) -> StoredResult:
    """The result of a write. Raises BadInput where the fingerprint is that of another write, BadData where the item is
    damaged.
    """
    found = decoded(item, _StoredResult)
    if found.wanted != fingerprint:
        text = "This idempotencyKey was used for another change within the last 24 hours; choose a new one."
        raise BadInput(text).at("idempotency_key")
    try:
        records = [replace(Record.of(node), below=msgspec.convert(node["below"], Counts)) for node in found.nodes]
        before = None if found.before is None else parse_path(found.before)
    except (BadData, BadPath, KeyError, msgspec.ValidationError) as error:
        raise damaged(item, f"Expected nodes and a path, got {error}") from None
    return StoredResult(records, None if found.move is None else move_key(found.move), before)


def digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
