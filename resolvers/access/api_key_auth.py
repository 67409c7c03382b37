"""The API keys that come in, each looked up once in a while."""

import asyncio
import time

from resolvers.access.caller import Caller
from resolvers.access.grants import Grants
from store.api_keys import (
    PREFIX,
    ApiKey,
    find_key,
    parse_key,
)
from store.bounded_cache import ExpiringCache
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Unavailable

KEPT_SECONDS = 10.0  # so long a key may still be used by a server that has seen it, after it was revoked
MOST_KEPT = 10_000
KEPT_BYTES = 2_000  # what one takes in memory
LOOK_UP_SECONDS = 5.0

Holders = list[tuple[ApiKey, Caller]]  # one or none


class ApiKeyAuthenticator:
    """Tells who holds a key. What was found under an id, also nothing, is kept for a short time."""

    def __init__(self, store: Store, *, kept_seconds: float = KEPT_SECONDS) -> None:
        self._store = store
        self._found: ExpiringCache[str, Holders] = ExpiringCache(
            "api_keys", MOST_KEPT, kept_seconds, entry_bytes=KEPT_BYTES
        )
        self.reads = ReadUsage()
        """What all look-ups have cost together."""

    async def caller(self, text: str) -> Caller | None:
        """Who holds the key with this text, with all that its grants allow; None for what is no key in force.

        Raises Unavailable.
        """
        parts = parse_key(text)
        if parts is None:
            return None
        key_id, secret = parts
        found = self._found.get(key_id)
        if found is None:
            key = await self._find(key_id)
            found = [] if key is None else [(key, holder_of(key))]
            self._found.put(key_id, found)
        return next((caller for key, caller in found if key.accepts(secret, time.time())), None)

    async def _find(self, key_id: str) -> ApiKey | None:
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                return await find_key(self._store, key_id, self.reads)
        except TimeoutError:
            raise Unavailable(f"An API key could not be looked up within {LOOK_UP_SECONDS:g} seconds.") from None


def is_key(text: str) -> bool:
    """Whether a credential is an API key, and nothing else that may come in its place."""
    return text.startswith(PREFIX)


def holder_of(key: ApiKey) -> Caller:
    """Who acts by a key."""
    grants = Grants.parse(key.grants)
    return Caller(f"key:{key.id}", key.name or key.id, grants, grants)
