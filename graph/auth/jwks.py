"""JWKS: the public keys of an issuer of tokens."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jwt import PyJWK, PyJWKSet

from store.download import download
from store.errors import Unavailable

MAX_AGE_SECONDS = 300.0  # then published keys are read again
COOLDOWN_SECONDS = 20.0  # between two attempts, whatever key ids tokens have
FETCH_SECONDS = 3.0  # for a whole JWKS
MAX_BYTES = 1_000_000  # of a JWKS; usual are some thousand
MAX_WAITING = 100  # tokens with unknown key ids that wait while the keys are read

logger = logging.getLogger("clade")

Read = Callable[[], Awaitable[bytes]]
"""Reads the JSON of a JWKS in bounded time. Raises OSError or ValueError."""


class PublishedKeys:
    """The public keys of a JWKS, read in the background every five minutes, and for an unknown key id.

    Only tokens with an unknown key id wait for that. If the keys cannot be read, the last ones are used.
    """

    def __init__(self, read: Read, algorithms: Collection[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Keys of other algorithms are ignored."""
        self._read = read
        self._algorithms = algorithms
        self._clock = clock
        self._keys: dict[str | None, PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._renewal: asyncio.Task[None] | None = None
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "signing-keys")  # its own thread, not one of the store's

    async def find(self, key_id: str | None) -> PyJWK | None:
        """The key with this id (`kid`), or None. Raises Unavailable."""
        found = self._keys.get(key_id)
        if found is None and (renewal := self._renew_soon()) is not None:
            if self._waiting >= MAX_WAITING:
                raise Unavailable("Too many tokens wait for the signing keys; retry later.")
            self._waiting += 1
            try:
                await asyncio.wait([renewal])
            finally:
                self._waiting -= 1
            found = self._keys.get(key_id)
        if not self._keys:
            raise Unavailable("The signing keys of tokens cannot be read; retry later.")
        return found

    async def watch(self) -> None:
        """Keep the keys up to date, until cancelled."""
        while True:
            if (renewal := self._renew_soon()) is not None:
                await asyncio.wait([renewal])
            await asyncio.sleep(MAX_AGE_SECONDS if self._read_at >= self._tried_at else COOLDOWN_SECONDS)

    def _renew_soon(self) -> asyncio.Task[None] | None:
        """The running attempt, or a new one; None soon after the last one."""
        if self._renewal is not None and not self._renewal.done():
            return self._renewal
        if self._clock() - self._tried_at <= COOLDOWN_SECONDS:
            return None
        self._tried_at = self._clock()
        self._renewal = asyncio.create_task(self._renew())
        return self._renewal

    async def _renew(self) -> None:
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                content = await self._read()
            found = await asyncio.get_running_loop().run_in_executor(self._thread, parse, content)
        except Exception as error:  # whatever an issuer sends, the last keys stay
            logger.warning("The signing keys of tokens cannot be read (%s: %s).", type(error).__name__, error)
            return
        may_sign = [key for key in found.keys if key.public_key_use in (None, "sig")]
        keys = [key for key in may_sign if key.algorithm_name in self._algorithms]
        self._keys = {key.key_id: key for key in keys}
        if len(keys) == 1:
            self._keys[None] = keys[0]  # a token need not have the id of the only key
        self._read_at = self._clock()


def parse(content: bytes) -> PyJWKSet:
    """The keys of a JWKS. Raises PyJWTError or ValueError if it has none."""
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("A JWKS must be a JSON object.")
    return PyJWKSet.from_dict(found)


def read_file(file: Path) -> bytes:
    """The content of a file. Raises OSError, and ValueError for a file that is too large."""
    with file.open("rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"The file is larger than {MAX_BYTES:,} bytes.")
    return content


def keys_in(file: Path) -> Read:
    """The reader of a JWKS file."""
    return lambda: asyncio.to_thread(read_file, file)


def keys_at(url: str) -> Read:
    """The reader of a JWKS at a URL; redirects are not followed."""
    return lambda: download(url, seconds=FETCH_SECONDS, max_bytes=MAX_BYTES)
