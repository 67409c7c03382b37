"""Keys that tokens are checked with: a secret, or the public keys that an issuer publishes as a JWKS."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from jwt import PyJWK, PyJWKSet

from store.download import download
from store.errors import Unavailable

MAX_AGE_SECONDS = 300.0  # after which published keys are read again
COOLDOWN_SECONDS = 20.0  # between two attempts, whatever keys tokens name
FETCH_SECONDS = 3.0  # for the whole of a JWKS
MAX_BYTES = 1_000_000  # of a JWKS; usual ones have some thousand
MAX_WAITING = 100  # tokens that name unknown keys, while the keys are read

logger = logging.getLogger("clade")

Read = Callable[[], Awaitable[bytes]]
"""Reads the text of a JWKS, in bounded time; raises OSError or ValueError."""


class SigningKeys(Protocol):
    """Where the key of a token is found."""

    async def find(self, name: str | None) -> PyJWK | str | None:
        """The key that a token names, None where there is none. Raises Unavailable."""
        ...

    async def watch(self) -> None:
        """Keep the keys up to date until it is cancelled."""
        ...


class Secret:
    """One secret, which the issuer has too; the names that tokens give it do not matter."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def find(self, name: str | None) -> str:
        return self._secret

    async def watch(self) -> None:
        """A secret stays the same."""


class PublishedKeys:
    """The public keys of a JWKS, read in the background: every five minutes, and at a name that is not among them.

    Only tokens that name an unknown key wait for that. While the keys cannot be read the known ones are used.
    """

    def __init__(self, read: Read, algorithms: Collection[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Only keys of these algorithms are taken."""
        self._read = read
        self._algorithms = algorithms
        self._clock = clock
        self._keys: dict[str | None, PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._renewal: asyncio.Task[None] | None = None
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "signing-keys")  # not one of those that the store works with

    async def find(self, name: str | None) -> PyJWK | None:
        found = self._keys.get(name)
        if found is None and (renewal := self._renew_soon()) is not None:
            await self._wait_for(renewal)
            found = self._keys.get(name)
        if not self._keys:
            raise Unavailable("The keys that tokens are signed with cannot be read.")
        return found

    async def watch(self) -> None:
        while True:
            if (renewal := self._renew_soon()) is not None:
                await asyncio.wait([renewal])
            await asyncio.sleep(MAX_AGE_SECONDS if self._read_at >= self._tried_at else COOLDOWN_SECONDS)

    def _renew_soon(self) -> asyncio.Task[None] | None:
        """The attempt that runs now or has begun by this; None soon after the last one."""
        if self._renewal is not None and not self._renewal.done():
            return self._renewal
        if self._clock() - self._tried_at <= COOLDOWN_SECONDS:
            return None
        self._tried_at = self._clock()
        self._renewal = asyncio.create_task(self._renew())
        return self._renewal

    async def _wait_for(self, renewal: asyncio.Task[None]) -> None:
        if self._waiting >= MAX_WAITING:
            raise Unavailable("The keys that tokens are signed with are being read, and too many tokens wait for them.")
        self._waiting += 1
        try:
            await asyncio.wait([renewal])
        finally:
            self._waiting -= 1

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                content = await self._read()
            found = await asyncio.get_running_loop().run_in_executor(self._thread, parse, content)
        except Exception as error:  # whatever an issuer sends, the known keys stay
            logger.warning("The keys that tokens are signed with cannot be read (%s: %s).", type(error).__name__, error)
            return
        keys = [one for one in found.keys if one.algorithm_name in self._algorithms]
        keys = [one for one in keys if one.public_key_use in (None, "sig")]
        self._keys = {one.key_id: one for one in keys}
        if len(keys) == 1:
            self._keys[None] = keys[0]  # a token need not name the only one
        self._read_at = self._clock()


def parse(content: bytes) -> PyJWKSet:
    """The keys in a JWKS. Raises PyJWTError or ValueError where there are none."""
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("A JWKS is an object.")
    return PyJWKSet.from_dict(found)


def read_file(file: Path) -> bytes:
    """A file's content. Raises OSError, and ValueError for one that is too large."""
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"The file is larger than {MAX_BYTES:,} bytes.")
    return content


def keys_in(file: Path) -> Read:
    """Reads a JWKS from a file."""
    return lambda: asyncio.to_thread(read_file, file)


def keys_at(url: str) -> Read:
    """Reads a JWKS from an address; redirects are not followed."""
    return lambda: download(url, seconds=FETCH_SECONDS, max_bytes=MAX_BYTES)
