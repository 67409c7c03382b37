"""The keys that tokens are checked with: a secret, or the public keys that an issuer publishes as a JWKS."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from jwt import PyJWK, PyJWKClient, PyJWKSet, PyJWTError

from store.errors import Unavailable

MAX_AGE_SECONDS = 300.0  # after which published keys are read again
COOLDOWN_SECONDS = 20.0  # between two attempts, whatever keys tokens name
FETCH_SECONDS = 3.0

logger = logging.getLogger("clade")


class SigningKeys(Protocol):
    """Where the key of a token is found."""

    async def find(self, name: str | None) -> PyJWK | str | None:
        """The key that a token names, None where there is none. Raises Unavailable."""
        ...


class Secret:
    """One secret, which the issuer has too; the names that tokens give it do not matter."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def find(self, name: str | None) -> str:
        return self._secret


class PublishedKeys:
    """The public keys of a JWKS, read again when they are old, and at a name that is not among them.

    While they cannot be read the known ones go on to be used.
    """

    def __init__(
        self,
        read: Callable[[], PyJWKSet],
        algorithms: Collection[str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` may block and raise; only keys of these algorithms are taken."""
        self._read = read
        self._algorithms = algorithms
        self._clock = clock
        self._keys: dict[str | None, PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "signing-keys")  # not one of those that the store works with

    async def find(self, name: str | None) -> PyJWK | None:
        if name not in self._keys or self._clock() - self._read_at > MAX_AGE_SECONDS:
            async with self._turn:
                if self._clock() - self._tried_at > COOLDOWN_SECONDS:
                    await self._renew()
        if not self._keys:
            raise Unavailable("The keys that tokens are signed with cannot be read.")
        return self._keys.get(name)

    async def _renew(self) -> None:
        self._tried_at = self._clock()
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                found = await asyncio.get_running_loop().run_in_executor(self._thread, self._read)
        except (PyJWTError, OSError, ValueError) as error:
            logger.warning("The keys that tokens are signed with cannot be read (%s).", type(error).__name__)
            return
        keys = [one for one in found.keys if one.algorithm_name in self._algorithms]
        keys = [one for one in keys if one.public_key_use in (None, "sig")]
        self._keys = {one.key_id: one for one in keys}
        if len(keys) == 1:
            self._keys[None] = keys[0]  # a token need not name the only one
        self._read_at = self._clock()


def keys_in(file: Path) -> Callable[[], PyJWKSet]:
    """Reads a JWKS from a file; raises OSError, PyJWTError or ValueError where there is none."""

    def read() -> PyJWKSet:
        found = json.loads(file.read_text("utf-8"))
        if not isinstance(found, dict):
            raise ValueError("A JWKS is an object.")
        return PyJWKSet.from_dict(found)

    return read


def keys_at(url: str) -> Callable[[], PyJWKSet]:
    """Reads a JWKS from an address; redirects are not followed."""
    client = PyJWKClient(url, cache_jwk_set=False, timeout=FETCH_SECONDS, headers={"user-agent": "clade"})
    return client.get_jwk_set
