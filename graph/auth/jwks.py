"""JWKS: the public keys of an issuer of tokens, each for the algorithms that fit its type.

PyJWT's PyJWKClient is not used: its responses may have any size and take any time, and keys that have expired are not
used while the issuer is down.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from jwt import PyJWK, PyJWTError

from store.download import download
from store.errors import Unavailable

MAX_AGE_SECONDS = 300.0  # then published keys are read again
COOLDOWN_SECONDS = 20.0  # between two attempts, whatever key ids tokens have
FETCH_SECONDS = 3.0  # for a whole JWKS
MAX_BYTES = 1_000_000  # of a JWKS; usual are some thousand
ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split()
"""None is symmetric: a shared secret in a JWKS would be public."""
MAX_WAITING = 100  # tokens with unknown key ids that wait while the keys are read

logger = logging.getLogger("clade")

Read = Callable[[], Awaitable[bytes]]
"""Reads the JSON of a JWKS in bounded time. Raises OSError or ValueError."""

Keys = Mapping[tuple[str | None, str | None], PyJWK]
"""Keys by their ids (`kid`) and algorithms, of which each key has exactly one: PyJWT verifies by no other."""


class PublishedKeys:
    """The public keys of a JWKS, read in the background every five minutes, and for an unknown key id.

    Only tokens with an unknown key id wait for that. If the keys cannot be read, the last ones are used.
    """

    def __init__(self, read: Read, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._keys: Keys = {}
        self._read_at = self._tried_at = float("-inf")
        self._renewal: asyncio.Task[None] | None = None
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "signing-keys")  # its own thread, not one of the store's

    async def find(self, key_id: str | None, algorithm: str | None) -> PyJWK | None:
        """The key with this id (`kid`) for this algorithm, or None. Raises Unavailable."""
        wanted = key_id, algorithm
        found = self._keys.get(wanted)
        if found is None and (renewal := self._renew_soon()) is not None:
            if self._waiting >= MAX_WAITING:
                raise Unavailable("Too many tokens wait for the signing keys; retry later.")
            self._waiting += 1
            try:
                await asyncio.wait([renewal])
            finally:
                self._waiting -= 1
            found = self._keys.get(wanted)
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
            self._keys = await asyncio.get_running_loop().run_in_executor(self._thread, parse, content)
        except Exception as error:  # whatever an issuer sends, the last keys stay
            logger.warning("The signing keys of tokens cannot be read (%s: %s).", type(error).__name__, error)
            return
        self._read_at = self._clock()


def parse(content: bytes) -> Keys:
    """The keys of a JWKS that verify signatures; others are ignored. Raises ValueError for anything else."""
    found = json.loads(content)
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not listed:
        raise ValueError("A JWKS must be a JSON object with a list of keys.")
    usable = [keys for jwk in listed if (keys := _keys_of(jwk))]
    if len(usable) == 1:  # a token need not have the id of the only key
        usable.append({(None, algorithm): key for (_, algorithm), key in usable[0].items()})
    return {name: key for keys in usable for name, key in keys.items()}


def _keys_of(jwk: Any) -> Keys:
    """A JWK for each of its algorithms; nothing for one that is not public, is for encryption, or is damaged."""
    if not isinstance(jwk, dict) or "d" in jwk or jwk.get("use") not in (None, "sig"):
        return {}
    key_id = jwk.get("kid")
    if not isinstance(key_id, str | None):
        return {}
    keys: dict[tuple[str | None, str | None], PyJWK] = {}
    for algorithm in ALGORITHMS:
        if jwk.get("alg") in (None, algorithm):
            with suppress(PyJWTError):  # the key is of another type
                key = PyJWK(jwk, algorithm)
                key.Algorithm.prepare_key(key.key)  # raises InvalidKeyError for another curve, which PyJWK does not
                keys[key_id, algorithm] = key
    return keys


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
