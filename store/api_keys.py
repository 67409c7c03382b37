"""API keys as they lie in the table, at `pk` = `keys`: of a secret only its hash, which opens nothing."""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import NotFound
from store.model.items import ABSENT, Item, Put
from store.model.keys import Index, Key
from store.model.ranges import KeyRange, just_after
from store.text import rfc3339, shorten

PARTITION = "keys"
PREFIX = "clade_"
ID_BYTES, SECRET_BYTES = 8, 32

_TEXT = re.compile(rf"{PREFIX}([0-9a-f]{{{2 * ID_BYTES}}})_([A-Za-z0-9_-]{{43}})")


@dataclass(frozen=True)
class ApiKey:
    """A key that was given out, with what it may do (`read:location`, `write:location/US/NE`).

    `created_at` and `revoked_at` are times in UTC (RFC 3339), `until` is in seconds since 1970, None for ever.
    """

    id: str
    name: str
    hash: str
    grants: Sequence[str]
    created_at: str
    until: int | None = None
    revoked_at: str | None = None

    @classmethod
    def of(cls, item: Item) -> "ApiKey":
        found = cast(dict[str, Any], item)
        return cls(
            found["sk"], found["name"], found["hash"], tuple(found["grants"]), found["created_at"],
            found.get("until"), found.get("revoked_at"),
        )  # fmt: skip

    def item(self) -> Item:
        item: Item = {
            "pk": PARTITION, "sk": self.id, "name": self.name, "hash": self.hash, "grants": list(self.grants),
            "created_at": self.created_at, "until": self.until, "revoked_at": self.revoked_at,
        }  # fmt: skip
        return {name: value for name, value in item.items() if value is not None}

    def opens_with(self, secret: str, now: float) -> bool:
        """Whether this is its secret, and it may be used at this time in seconds since 1970."""
        # Compared first and in constant time, so that the time it takes tells nothing of either.
        is_right = hmac.compare_digest(self.hash, secret_hash(secret))
        return is_right and self.revoked_at is None and (self.until is None or now < self.until)


def new_key(name: str, grants: Sequence[str], until: int | None) -> tuple[ApiKey, str]:
    """A new key, and its text, which is shown once and kept nowhere."""
    key_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    key = ApiKey(key_id, name, secret_hash(secret), grants, rfc3339(time.time()), until)
    return key, f"{PREFIX}{key_id}_{secret}"


def parse_key(text: str) -> tuple[str, str] | None:
    """The id and the secret in a key's text, or None where it cannot be one."""
    match = _TEXT.fullmatch(text)
    return None if match is None else (match[1], match[2])


def secret_hash(secret: str) -> str:
    # 256 random bits cannot be guessed however fast one hashes; a slow hash is for passwords, and costs each request.
    return hashlib.sha256(secret.encode()).hexdigest()


async def add_key(store: Store, key: ApiKey) -> None:
    """Keep a new key."""
    await store.commit([Put(key.item(), ABSENT)])


async def find_key(store: Store, key_id: str, reads: ReadUsage, *, strong: bool = False) -> ApiKey | None:
    """The key with an id; one read of one item."""
    (item,) = await store.get([Key(PARTITION, key_id)], reads, strong=strong)
    return None if item is None else ApiKey.of(item)


async def find_keys(store: Store, reads: ReadUsage) -> list[ApiKey]:
    """All that were ever given out, the oldest first."""
    span = KeyRange(Index.TABLE, PARTITION, "0", just_after("g"))  # ids begin with 0 to f
    return sorted(map(ApiKey.of, await store.range(span, reads, strong=True)), key=lambda key: (key.created_at, key.id))


async def revoke_key(store: Store, key_id: str) -> ApiKey:
    """Take a key back for ever; harmless where that was done. Raises NotFound."""
    key = await find_key(store, key_id, ReadUsage(), strong=True)
    if key is None:
        raise NotFound(f'There is no key "{shorten(key_id)}"; clade key list shows what there is.')
    if key.revoked_at is None:
        gone: Item = {**key.item(), "revoked_at": rfc3339(time.time())}
        await store.commit([Put(gone, {"hash": key.hash})])
    return key
