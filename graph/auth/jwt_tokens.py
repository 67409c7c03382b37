"""JSON Web Tokens: who sends one, and what it grants, if it was signed by whom the settings trust."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt

from graph.auth.jwks import (
    PublishedKeys,
    Secret,
    SigningKeys,
    keys_at,
    keys_in,
    parse,
    read_file,
)
from graph.auth.loopback import is_loopback
from graph.settings import Settings
from resolvers.access.caller import Caller
from resolvers.access.grants import Grants
from store.bounded_cache import ExpiringCache
from store.errors import BadInput

MIN_SECRET_BYTES = 32  # as long as what HS256 makes of it
MAX_SUBJECT_CHARACTERS = 256
LEEWAY_SECONDS = 10.0  # how far clocks may differ
KEPT_SECONDS = 10.0  # how long a token that was proven is not proven again
MOST_KEPT = 10_000
KEPT_BYTES = 2_000  # what one takes in memory

ASYMMETRIC = frozenset("RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA".split())

# What a stranger's text can make the parts of a token's reading raise, down to numbers that are none.
_UNREADABLE = (jwt.PyJWTError, BadInput, ValueError, TypeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Terms:
    """What tokens must hold: algorithms they may be signed with, issuer and audience (None: any), the grants' claim."""

    algorithms: Sequence[str]
    issuer: str | None = None
    audience: str | None = None
    claim: str = "grants"


class Tokens:
    """Tells who sends a token. One that was proven is known for a short time, never past its own."""

    def __init__(self, keys: SigningKeys, terms: Terms) -> None:
        self._keys = keys
        self._terms = terms
        self.watch = keys.watch
        self._proven: ExpiringCache[bytes, tuple[Caller, float]] = ExpiringCache(
            "tokens", MOST_KEPT, KEPT_SECONDS, entry_bytes=KEPT_BYTES
        )

    async def caller(self, token: str) -> Caller | None:
        """Who sends a token, with all that it grants; None for one that proves nothing. Raises Unavailable."""
        digest = hashlib.sha256(token.encode(errors="replace")).digest()
        proven = self._proven.get(digest)
        if proven is None:
            try:
                header = jwt.get_unverified_header(token)
                key = await self._keys.find(header.get("kid"))
                if key is None:
                    return None
                proven = self._proven_by(token, key)
                self._proven.put(digest, proven)
            except _UNREADABLE:
                return None
        caller, expires = proven
        return caller if time.time() < expires + LEEWAY_SECONDS else None

    def _proven_by(self, token: str, key: jwt.PyJWK | str) -> tuple[Caller, float]:
        terms = self._terms
        claims = jwt.decode(
            token,
            key,
            algorithms=terms.algorithms,
            issuer=terms.issuer,
            audience=terms.audience,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "sub"], "verify_aud": terms.audience is not None},
        )
        subject = claims["sub"]
        if not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS or not subject.isprintable():
            raise BadInput("The token's subject cannot be stored.")
        grants = Grants.parse(_texts(claims.get(terms.claim, [])))
        return Caller(f"sub:{subject}", subject, grants, grants), float(claims["exp"])


def _texts(claim: Any) -> list[str]:
    if not isinstance(claim, list) or not all(isinstance(one, str) for one in claim):
        raise BadInput("The token's grants are no list of texts.")
    return claim


def tokens_of(settings: Settings) -> Tokens | None:
    """What checks tokens as the settings say, None where they trust no issuer. Raises BadInput."""
    secret, published = _secret(settings), settings.jwt_keys
    if secret and published:
        raise BadInput("CLADE_JWT_SECRET and CLADE_JWT_KEYS are both set; tokens are checked with one of them.")
    issuer, audience = settings.jwt_issuer or None, settings.jwt_audience or None
    if secret:
        if len(secret.encode()) < MIN_SECRET_BYTES:
            raise BadInput(f"The secret for tokens is shorter than {MIN_SECRET_BYTES} bytes and could be guessed.")
        return Tokens(Secret(secret), Terms(["HS256"], issuer, audience, settings.jwt_grants_claim))
    if not published:
        return None
    if issuer is None or audience is None:
        # An issuer signs for many; without these its tokens for others would open this server too.
        raise BadInput("CLADE_JWT_KEYS needs CLADE_JWT_ISSUER and CLADE_JWT_AUDIENCE beside it.")
    terms = Terms(_algorithms(settings.jwt_algorithms), issuer, audience, settings.jwt_grants_claim)
    return Tokens(_published(published, terms.algorithms), terms)


def _secret(settings: Settings) -> str:
    if not settings.jwt_secret_file:
        return settings.jwt_secret
    if settings.jwt_secret:
        raise BadInput("CLADE_JWT_SECRET and CLADE_JWT_SECRET_FILE are both set; one of them is enough.")
    try:
        return Path(settings.jwt_secret_file).read_text("utf-8").strip()
    except (OSError, ValueError):
        raise BadInput(f"CLADE_JWT_SECRET_FILE names {settings.jwt_secret_file}, which cannot be read.") from None


def _algorithms(words: str) -> list[str]:
    found = words.replace(",", " ").split()
    if not found or not ASYMMETRIC.issuperset(found):
        raise BadInput(f'CLADE_JWT_ALGORITHMS cannot be "{words}"; there are {", ".join(sorted(ASYMMETRIC))}.')
    return found


def _published(place: str, algorithms: Sequence[str]) -> PublishedKeys:
    if "://" in place:
        parts = urlsplit(place)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.netloc)):
            raise BadInput("CLADE_JWT_KEYS must be an https address, or one of this machine: others could be forged.")
        return PublishedKeys(keys_at(place), algorithms)
    try:
        parse(read_file(Path(place)))
    except (OSError, ValueError, jwt.PyJWTError):
        raise BadInput(f"CLADE_JWT_KEYS names {place}, which is no JWKS that can be read.") from None
    return PublishedKeys(keys_in(Path(place)), algorithms)
