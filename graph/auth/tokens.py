"""JSON Web Tokens: signature, issuer, audience and expiry are verified; the result is a caller with grants.

A shared secret verifies them, or the public keys of their issuer (JWKS), in a file or by HTTP, each for the algorithms
that fit its type.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import jwt
from jwt import PyJWK, PyJWTError

from graph.hosts import is_loopback
from graph.settings import Settings
from resolvers.access.callers import Caller, InvalidCredential
from resolvers.access.grants import Grants
from store.cache import BoundedCache, ExpiringCache
from store.errors import BadInput, Unavailable, shorten, shown_address

SYMMETRIC = "HS256"
MIN_SECRET_BYTES = 32  # the size of its signature
MAX_SUBJECT_CHARACTERS = 256
LEEWAY_SECONDS = 10.0  # for clocks that differ
KEPT_SECONDS = 10.0  # how long a token that was verified is not verified again
MOST_KEPT = 10_000
KEPT_BYTES = 2_000  # what one takes in memory
MAX_IGNORED = 20  # words of one subject that look like mistyped grants and are logged, and as many others
MOST_IGNORED = 10_000  # words and subjects that are remembered, so that a word is logged once

ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split()
"""Those of published keys. None is symmetric: a shared secret in a JWKS would be public."""
MAX_AGE_SECONDS = 300.0  # then published keys are read again
COOLDOWN_SECONDS = 20.0  # between two attempts, whatever key ids tokens have
FETCH_SECONDS = 3.0  # for a whole JWKS
MAX_BYTES = 1_000_000  # of a JWKS; usual are some thousand
PART_BYTES = 65_536
MAX_WAITING = 100  # tokens with unknown key ids that wait while the keys are read
HEADERS = {"user-agent": "clade", "accept-encoding": "identity"}

logger = logging.getLogger("clade")

Keys = Mapping[tuple[str | None, str | None], PyJWK]
"""Keys by their ids (`kid`) and algorithms, of which each key has exactly one: PyJWT verifies by no other."""

# Errors that decoding an arbitrary text can raise.
_INVALID = (PyJWTError, BadInput, ValueError, TypeError, ArithmeticError, RecursionError)

_EXPIRED = "The token has expired."
_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: _EXPIRED,
    jwt.ImmatureSignatureError: "The token is not valid yet.",
    jwt.InvalidIssuerError: "The token is from another issuer than CLADE_JWT_ISSUER.",
    jwt.InvalidAudienceError: "The token is for another audience than CLADE_JWT_AUDIENCE.",
    jwt.InvalidSignatureError: "The signature of the token does not match its content and key.",
    jwt.InvalidAlgorithmError: "The token is signed by an algorithm that is not accepted.",
}


def tokens_of(settings: Settings) -> "Tokens":
    """The token verifier of the settings, which have a secret or public keys. Raises BadInput."""
    secret, published = _secret(settings), settings.jwt_keys
    if not published:
        if len(secret.encode()) < MIN_SECRET_BYTES:
            raise BadInput(f"CLADE_JWT_SECRET is shorter than {MIN_SECRET_BYTES} bytes; use a longer secret.")
        return Tokens(secret, settings)
    if secret:
        raise BadInput("CLADE_JWT_SECRET and CLADE_JWT_KEYS are both set; unset one of them.")
    if not (settings.jwt_issuer and settings.jwt_audience):
        # An issuer signs tokens for many servers; without these, tokens for others would be valid here.
        raise BadInput("CLADE_JWT_KEYS needs CLADE_JWT_ISSUER and CLADE_JWT_AUDIENCE; set both.")
    return Tokens(_published(published), settings)


def _secret(settings: Settings) -> str:
    if not settings.jwt_secret_file:
        return settings.jwt_secret
    if settings.jwt_secret:
        raise BadInput("CLADE_JWT_SECRET and CLADE_JWT_SECRET_FILE are both set; unset one of them.")
    try:
        return Path(settings.jwt_secret_file).read_text("utf-8").strip()
    except (OSError, ValueError):
        raise BadInput(f"CLADE_JWT_SECRET_FILE is {settings.jwt_secret_file}, which cannot be read.") from None


def _published(place: str) -> "PublishedKeys":
    if "://" in place:
        parts = urlsplit(place)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.netloc)):
            raise BadInput("CLADE_JWT_KEYS must be a file, an https URL, or an http URL of this machine.")
        return PublishedKeys(partial(download, place))
    try:
        keys = parse_jwks(read_file(place))
    except (OSError, ValueError):
        raise BadInput(f"CLADE_JWT_KEYS is {place}, which is not a readable JWKS; name a JSON Web Key Set.") from None
    if not keys:
        raise BadInput(f"CLADE_JWT_KEYS is {place}, which has no public key for signatures; add one.")
    return PublishedKeys(partial(asyncio.to_thread, read_file, place))


class Tokens:
    """Verifies tokens. A verified token is cached for a short time, but not beyond its expiry."""

    def __init__(self, keys: "PublishedKeys | str", settings: Settings) -> None:
        """`keys` are public keys or a shared secret; any issuer and audience are accepted where none is set."""
        self._keys = keys
        self._settings = settings
        self._audiences = frozenset(map(str.strip, settings.jwt_audience.split(","))) - {""}
        self._ignored: BoundedCache[Hashable, int] = BoundedCache("logged", MOST_IGNORED, bytes_each=200)
        self._required: dict[str, Any] = {
            "issuer": settings.jwt_issuer or None,
            "leeway": LEEWAY_SECONDS,
            "options": {"require": ["exp", "sub"], "verify_aud": False},  # PyJWT knows no other claim than aud
        }
        self._verified: ExpiringCache[bytes, tuple[Caller, float]] = ExpiringCache(
            "tokens", MOST_KEPT, KEPT_SECONDS, entry_bytes=KEPT_BYTES
        )

    async def watch(self) -> None:
        """Keep public keys up to date, until cancelled."""
        if isinstance(self._keys, PublishedKeys):
            await self._keys.watch()

    async def caller(self, token: str) -> Caller:
        """The caller of a token, with its grants. Raises InvalidCredential and Unavailable."""
        digest = hashlib.sha256(token.encode(errors="replace")).digest()
        verified = self._verified.get(digest)
        if verified is None:
            try:
                verified = self._verify(token, await self._key_of(token))
                self._verified.put(digest, verified)
            except _INVALID as error:
                raise InvalidCredential(_reason(error)) from None
        caller, expires = verified
        if time.time() >= expires + LEEWAY_SECONDS:
            raise InvalidCredential(_EXPIRED)
        return caller

    async def _key_of(self, token: str) -> PyJWK | str:
        """The secret, or the published key that the token names. Raises InvalidCredential and Unavailable."""
        if isinstance(self._keys, str):
            return self._keys
        header = jwt.get_unverified_header(token)
        key = await self._keys.find(header.get("kid"), header.get("alg"))
        if key is None:
            raise InvalidCredential("No published key has the key id of the token and fits its algorithm.")
        return key

    def _verify(self, token: str, key: PyJWK | str) -> tuple[Caller, float]:
        # The algorithm is that of the key, whatever the token says.
        algorithm = SYMMETRIC if isinstance(key, str) else key.algorithm_name
        claims = jwt.decode(token, key, algorithms=[algorithm], **self._required)
        self._check_audience(claims)
        subject = claims["sub"]
        if not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS or not subject.isprintable():
            raise BadInput("The subject of the token is too long or not printable.")
        grants = self._grants(claims)
        return Caller(f"sub:{subject}", subject, grants, grants), float(claims["exp"])

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        """Raise BadInput or InvalidAudienceError unless the token is for one of the audiences, or none is required."""
        if not self._settings.jwt_audience:
            return
        name = self._settings.jwt_audience_claim
        if (found := claims.get(name)) is None:
            raise BadInput(f"The token has no claim {name}; CLADE_JWT_AUDIENCE_CLAIM names that of the audience.")
        audiences = found if isinstance(found, list) else [found]
        if not all(isinstance(audience, str) for audience in audiences) or self._audiences.isdisjoint(audiences):
            raise jwt.InvalidAudienceError

    def _grants(self, claims: Mapping[str, Any]) -> Grants:
        """The grants of a token. Its issuer may write other words beside them, which give no rights and are logged."""
        name = self._settings.jwt_grants_claim
        words = _nested(claims, name)
        if isinstance(words, str):
            words = words.split()  # as OAuth's `scope` (RFC 6749, section 3.3)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise BadInput("The grants of the token are neither a list of strings nor a string.")
        granted = []
        for word in words:
            try:
                Grants.parse([word])
            except BadInput as error:
                self._log_ignored(claims["sub"], word, error)
            else:
                granted.append(word)
        return Grants.parse(granted)

    def _log_ignored(self, subject: str, word: str, error: BadInput) -> None:
        """Log a word that is no grant, unless it or too many of its subject are: no subject uses up those of others."""
        level = logging.WARNING if word.lower().startswith(("read:", "write:")) else logging.INFO
        count, known = self._ignored.get((subject, level)) or 0, hash(word)  # a word may be long
        if count < MAX_IGNORED and known not in self._ignored:
            self._ignored.put((subject, level), count + 1)
            self._ignored.put(known, 1)
            name = self._settings.jwt_grants_claim
            logger.log(level, 'Tokens have "%s" in %s, which gives no rights: %s', shorten(word), name, error)


def _nested(claims: Any, name: str) -> Any:
    """The value of a claim; where none has the whole name, dots lead into objects. An empty list without one."""
    head = name
    while head and isinstance(claims, dict):
        if head in claims:
            return claims[head] if head == name else _nested(claims[head], name[len(head) + 1 :])
        head = head.rpartition(".")[0]
    return []


def _reason(error: Exception) -> str:
    """Why a token is invalid, in words that repeat nothing of a token whose signature does not match."""
    if isinstance(error, BadInput):
        return str(error)
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"The token has no claim {error.claim}."
    return next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), "The token is malformed.")


class PublishedKeys:
    """The public keys of a JWKS, read in the background every five minutes, and for an unknown key id.

    Only tokens with an unknown key id wait for that. If the keys cannot be read, the last ones are used. PyJWT's
    PyJWKClient is not used: its responses may have any size and take any time, and keys that have expired are not used
    while the issuer is down.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], *, clock: Callable[[], float] = time.monotonic) -> None:
        """`read` returns the JSON of a JWKS in bounded time, and raises OSError or ValueError."""
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
            self._keys = await asyncio.get_running_loop().run_in_executor(self._thread, parse_jwks, content)
        except Exception as error:  # whatever an issuer sends, the last keys stay
            logger.warning("The signing keys of tokens cannot be read (%s: %s).", type(error).__name__, error)
            return
        self._read_at = self._clock()


def parse_jwks(content: bytes) -> Keys:
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


def read_file(file: str) -> bytes:
    """The JWKS in a file. Raises OSError, and ValueError for a file that is too large."""
    with open(file, "rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"The file is larger than {MAX_BYTES:,} bytes.")
    return content


async def download(url: str) -> bytes:
    """The JWKS at a URL, received whole with the status 200 within FETCH_SECONDS; redirects are not followed.

    Raises OSError for any other status, for a body of more than MAX_BYTES, and where there is no response in time.
    """
    body, timeout = bytearray(), aiohttp.ClientTimeout(total=FETCH_SECONDS)
    session = aiohttp.ClientSession(timeout=timeout, trust_env=True, auto_decompress=False, raise_for_status=True)
    try:
        async with session, session.get(url, allow_redirects=False, headers=HEADERS) as response:
            if response.status != 200:
                location = response.headers.get("location")
                hint = f"; its location is {shown_address(location)}" if location else ""
                raise OSError(f"the status is {response.status}, expected 200{hint}")
            async for part in response.content.iter_chunked(PART_BYTES):
                body += part
                if len(body) > MAX_BYTES:
                    raise OSError(f"the response is larger than {MAX_BYTES:,} bytes")
    except aiohttp.ClientResponseError as error:
        raise OSError(f"the status is {error.status}, expected 200") from error  # without the address and its secrets
    except (aiohttp.InvalidURL, ValueError) as error:
        raise OSError("the address is invalid") from error  # as above
    except aiohttp.ClientError as error:
        raise OSError(str(error) or type(error).__name__) from error
    return bytes(body)
