"""API key authentication: callers of API keys, cached for a few seconds and on SQLite until the next write."""

import asyncio
import time

from resolvers.access.caller import Caller, InvalidCredential
from resolvers.access.grants import Grants
from store.api_keys import PREFIX, ApiKey, find_key, parse_key
from store.cache import ExpiringCache
from store.engine import ReadUsage, Store
from store.errors import Unavailable

CACHE_SECONDS = 10.0  # for so long a revoked key is still accepted on DynamoDB by a server that has cached it
MAX_CACHED_KEYS = 10_000
KEY_BYTES = 2_000  # of memory for each
LOOKUP_SECONDS = 5.0


class ApiKeyAuthenticator:
    """Finds the caller of an API key. Results, unknown ids included, are cached for `cache_seconds`."""

    def __init__(self, store: Store, *, cache_seconds: float = CACHE_SECONDS) -> None:
        self._store = store
        self._found: ExpiringCache[str, tuple[object, list[tuple[ApiKey, Caller]]]] = ExpiringCache(
            "api_keys", MAX_CACHED_KEYS, cache_seconds, entry_bytes=KEY_BYTES
        )
        self.reads = ReadUsage()
        """The read consumption of all lookups."""

    async def caller(self, text: str) -> Caller:
        """The caller of a key, with its grants. Raises InvalidCredential and Unavailable."""
        if (parts := parse_key(text)) is None:
            raise InvalidCredential("The API key is malformed.")
        key_id, secret = parts
        store_version = self._store.version()  # None on DynamoDB
        read_at, found = self._found.get(key_id) or (None, None)  # an empty list for an unknown id
        if found is None or read_at != store_version:
            try:
                async with asyncio.timeout(LOOKUP_SECONDS):
                    key = await find_key(self._store, key_id, self.reads)
            except TimeoutError:
                raise Unavailable(f"An API key could not be looked up within {LOOKUP_SECONDS:g} seconds.") from None
            found = []
            if key is not None:
                grants = Grants.parse(key.grants)
                found.append((key, Caller(f"key:{key.id}", key.name or key.id, grants, grants)))
            self._found.put(key_id, (store_version, found))
        for key, caller in found:
            if fault := key.fault(secret, time.time()):
                raise InvalidCredential(f"The API key {key_id} {fault}.")
            return caller
        raise InvalidCredential(f"There is no API key {key_id}.")


def is_key(text: str) -> bool:
    """Whether a credential is an API key, by its prefix."""
    return text.startswith(PREFIX)
