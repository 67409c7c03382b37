"""API keys: their items at `pk` = `keys`, with a SHA-256 hash in the place of the secret."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from store.engine import ReadUsage, Store
from store.errors import NotFound, rfc3339, shorten
from store.model.decoding import Time, decoded
from store.model.keys import Index, Key, KeyRange, just_after
from store.model.records import ABSENT, Item, Put

PARTITION = "keys"
PREFIX = "clade_"
ID_BYTES, SECRET_BYTES = 8, 32
KEYS = KeyRange(Index.TABLE, PARTITION, "0", just_after("g"))  # all of them: ids begin with 0 to f

_TEXT = re.compile(rf"{PREFIX}([0-9a-f]{{{2 * ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")


class ApiKey(Struct, frozen=True, omit_defaults=True, rename={"id": "sk"}):
    """An API key with its grants (`read:location`, `write:location/US/NE`).

    `created_at` and `revoked_at` are times in UTC (RFC 3339), `until` is its expiry in seconds since 1970, None: never.
    """

    id: str
    name: str
    hash: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    grants: Sequence[str]
    created_at: Time
    until: int | None = None
    revoked_at: Time | None = None

    @classmethod
    def of(cls, item: Item) -> "ApiKey":
        """The key in an item; raises DamagedItem."""
        return decoded(item, cls)

    def item(self) -> Item:
        return {"pk": PARTITION, **to_builtins(self), "grants": [*self.grants]}  # which may be a tuple

    def fault(self, secret: str, now: float) -> str:
        """Why the key does not authenticate at `now`, in seconds since 1970; empty if it does."""
        # Compared first and in constant time, so that the duration reveals nothing of either.
        if not hmac.compare_digest(self.hash, secret_hash(secret)):
            return "was sent with another secret"
        if self.revoked_at is not None:
            return "is revoked"
        return "" if self.until is None or now < self.until else "has expired"


def new_key(name: str, grants: Sequence[str], until: int | None) -> tuple[ApiKey, str]:
    """A new key, without `created_at` until it is stored, and its text, which is shown once and stored nowhere."""
    key_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    key = ApiKey(key_id, name, secret_hash(secret), list(grants), "", until)
    return key, f"{PREFIX}{key_id}_{secret}"


def parse_key(text: str) -> tuple[str, str] | None:
    """The id and the secret in the text of a key, None where it is none."""
    match = _TEXT.fullmatch(text)
    return None if match is None else (match[1], match[2])


def secret_hash(secret: str) -> str:
    # A fast hash: 256 random bits cannot be guessed. A slow one, as for passwords, would be paid by each request.
    return hashlib.sha256(secret.encode()).hexdigest()


async def add_key(store: Store, key: ApiKey) -> None:
    """Store a new key; raises Conflict where its id is taken."""
    await store.commit([Put(replace(key, created_at=rfc3339(store.now())).item(), ABSENT)])


async def find_key(store: Store, key_id: str, reads: ReadUsage, *, strong: bool = False) -> ApiKey | None:
    """The key with an id, None where there is none; one read of one item."""
    (item,) = await store.get([Key(PARTITION, key_id)], reads, strong=strong)
    return None if item is None else ApiKey.of(item)


async def find_keys(store: Store, reads: ReadUsage) -> list[ApiKey]:
    """All keys, revoked and expired ones too, the oldest first."""
    return sorted(map(ApiKey.of, await store.range(KEYS, reads, strong=True)), key=lambda key: (key.created_at, key.id))


async def revoke_key(store: Store, key_id: str) -> ApiKey:
    """Revoke a key, which cannot be undone; a key that is revoked stays as it is. Raises NotFound."""
    key = await find_key(store, key_id, ReadUsage(), strong=True)
    if key is None:
        raise NotFound(f'There is no key "{shorten(key_id)}"; see clade key list.')
    if key.revoked_at is None:
        gone: Item = {**key.item(), "revoked_at": rfc3339(store.now())}
        await store.commit([Put(gone, {"hash": key.hash})])
    return key
