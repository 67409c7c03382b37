"""What makes a repeated write harmless: an item with its outcome, written by the transaction that it is about."""

from hashlib import blake2b
from typing import cast

from store.errors import BadInput
from store.items import ABSENT, Item, Put
from store.journal import move_key
from store.keys import Key, shorten
from store.records import Record

ONCE_SECONDS = 24 * 3600
MAX_KEY_CHARACTERS = 128


def once_key(hierarchy: str, key: str, caller: str = "") -> Key:
    """Where the outcome of a caller's write with an idempotency key lies; raises BadInput for a key that cannot be one.

    Each caller has its own, so that nobody learns by a key what another has written.
    """
    if not 0 < len(key) <= MAX_KEY_CHARACTERS or not key.isprintable():
        raise BadInput(
            f'"{shorten(key)}" is no idempotencyKey; it has 1 to {MAX_KEY_CHARACTERS} characters that can be printed.'
        )
    return Key(f"once#{hierarchy}:{key}", f"v0#{digest(caller)}" if caller else "v0")


def once_item(key: Key, wanted: str, record: Record, now: float, move_id: str | None = None) -> Put:
    """The outcome of a write that `wanted` describes: the node that its payload tells, and the move that it began."""
    item: Item = {
        "pk": key.pk, "sk": key.sk, "wanted": digest(wanted), "node": record.item(), "move": move_id,
        "expires": int(now) + ONCE_SECONDS,
    }  # fmt: skip
    return Put(item, ABSENT)


def outcome(item: Item, wanted: str) -> tuple[Record, Key | None]:
    """What was written under the key, and where the state of the move lies that it began, if it did.

    Raises BadInput where that was another write.
    """
    if item["wanted"] != digest(wanted):
        raise BadInput("This idempotencyKey was used for another change within the last 24 hours; choose a new one.")
    move_id = cast(str | None, item.get("move"))
    return Record.of(cast(Item, item["node"])), None if move_id is None else move_key(move_id)


def digest(wanted: str) -> str:
    return blake2b(wanted.encode(errors="surrogatepass"), digest_size=16).hexdigest()
