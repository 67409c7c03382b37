"""JSON Web Tokens: signature, issuer, audience and expiry are verified; the result is a caller with grants."""

import hashlib
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt

from graph.auth.jwks import PublishedKeys, keys_at, keys_in, parse, read_file
from graph.auth.loopback import is_loopback
from graph.settings import Settings
from resolvers.access.callers import Caller, InvalidCredential
from resolvers.access.grants import Grants
from store.cache import ExpiringCache
from store.errors import BadInput

SYMMETRIC = "HS256"
MIN_SECRET_BYTES = 32  # the size of its signature
MAX_SUBJECT_CHARACTERS = 256
LEEWAY_SECONDS = 10.0  # for clocks that differ
KEPT_SECONDS = 10.0  # how long a token that was verified is not verified again
MOST_KEPT = 10_000
KEPT_BYTES = 2_000  # what one takes in memory

# Errors that decoding an arbitrary text can raise.
_INVALID = (jwt.PyJWTError, BadInput, ValueError, TypeError, ArithmeticError, RecursionError)

_EXPIRED = "The token has expired."
_REASONS: dict[type[Exception], str] = {
    jwt.ExpiredSignatureError: _EXPIRED,
    jwt.ImmatureSignatureError: "The token is not valid yet.",
    jwt.InvalidIssuerError: "The token is from another issuer than CLADE_JWT_ISSUER.",
    jwt.InvalidAudienceError: "The token is for another audience than CLADE_JWT_AUDIENCE.",
    jwt.InvalidSignatureError: "The signature of the token does not match its content and key.",
    jwt.InvalidAlgorithmError: "The token is signed by an algorithm that is not accepted.",
}


class Tokens:
    """Verifies tokens. A verified token is cached for a short time, but not beyond its expiry."""

    def __init__(
        self,
        keys: PublishedKeys | str,
        issuer: str | None,
        audience: str | None,
        claim: str = "grants",
    ) -> None:
        """`keys` are public keys or a shared secret; any issuer and audience are accepted where None is required."""
        self._keys = keys
        self._claim = claim
        self._required: dict[str, Any] = {
            "issuer": issuer,
            "audience": audience,
            "leeway": LEEWAY_SECONDS,
            "options": {"require": ["exp", "sub"], "verify_aud": audience is not None},
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

    async def _key_of(self, token: str) -> jwt.PyJWK | str:
        """The secret, or the published key that the token names. Raises InvalidCredential and Unavailable."""
        if isinstance(self._keys, str):
            return self._keys
        header = jwt.get_unverified_header(token)
        key = await self._keys.find(header.get("kid"), header.get("alg"))
        if key is None:
            raise InvalidCredential("No published key has the key id of the token and fits its algorithm.")
        return key

    def _verify(self, token: str, key: jwt.PyJWK | str) -> tuple[Caller, float]:
        # The algorithm is that of the key, whatever the token says.
        algorithm = SYMMETRIC if isinstance(key, str) else key.algorithm_name
        claims = jwt.decode(token, key, algorithms=[algorithm], **self._required)
        subject, texts = claims["sub"], claims.get(self._claim, [])
        if not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS or not subject.isprintable():
            raise BadInput("The subject of the token is too long or not printable.")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise BadInput("The grants of the token are not a list of strings.")
        grants = Grants.parse(texts)
        return Caller(f"sub:{subject}", subject, grants, grants), float(claims["exp"])


def _reason(error: Exception) -> str:
    """Why a token is invalid, in words that repeat nothing of a token whose signature does not match."""
    if isinstance(error, BadInput):
        return str(error)
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"The token has no claim {error.claim}."
    return next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), "The token is malformed.")


def tokens_of(settings: Settings) -> Tokens:
    """The token verifier of the settings, which have a secret or public keys. Raises BadInput."""
    secret, published = _secret(settings), settings.jwt_keys
    issuer, audience = settings.jwt_issuer or None, settings.jwt_audience or None
    if not published:
        if len(secret.encode()) < MIN_SECRET_BYTES:
            raise BadInput(f"CLADE_JWT_SECRET is shorter than {MIN_SECRET_BYTES} bytes; use a longer secret.")
        return Tokens(secret, issuer, audience, settings.jwt_grants_claim)
    if secret:
        raise BadInput("CLADE_JWT_SECRET and CLADE_JWT_KEYS are both set; unset one of them.")
    if issuer is None or audience is None:
        # An issuer signs tokens for many servers; without these, tokens for others would be valid here.
        raise BadInput("CLADE_JWT_KEYS needs CLADE_JWT_ISSUER and CLADE_JWT_AUDIENCE; set both.")
    return Tokens(_published(published), issuer, audience, settings.jwt_grants_claim)


def _secret(settings: Settings) -> str:
    if not settings.jwt_secret_file:
        return settings.jwt_secret
    if settings.jwt_secret:
        raise BadInput("CLADE_JWT_SECRET and CLADE_JWT_SECRET_FILE are both set; unset one of them.")
    try:
        return Path(settings.jwt_secret_file).read_text("utf-8").strip()
    except (OSError, ValueError):
        raise BadInput(f"CLADE_JWT_SECRET_FILE is {settings.jwt_secret_file}, which cannot be read.") from None


def _published(place: str) -> PublishedKeys:
    if "://" in place:
        parts = urlsplit(place)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.netloc)):
            raise BadInput("CLADE_JWT_KEYS must be a file, an https URL, or an http URL of this machine.")
        return PublishedKeys(keys_at(place))
    try:
        keys = parse(read_file(Path(place)))
    except (OSError, ValueError):
        raise BadInput(f"CLADE_JWT_KEYS is {place}, which is not a readable JWKS; name a JSON Web Key Set.") from None
    if not keys:
        raise BadInput(f"CLADE_JWT_KEYS is {place}, which has no public key for signatures; add one.")
    return PublishedKeys(keys_in(Path(place)))
