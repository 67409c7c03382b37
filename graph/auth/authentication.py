"""Authentication: the caller of a request by its Authorization header, an API key, a token or anonymous."""

import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.types import Scope

from graph.errors import UNAUTHENTICATED, RequestRejected
from graph.hosts import listens_on_loopback
from graph.observability.logs import cut
from graph.settings import Settings
from resolvers.access.callers import ANYONE, ApiKeyAuthenticator, Caller, InvalidCredential, is_key
from resolvers.access.grants import Grants
from store.cache import BoundedCache

if TYPE_CHECKING:
    from graph.auth.tokens import Tokens

logger = logging.getLogger("clade")

MAX_CREDENTIAL_BYTES = 8_192
MAX_WARNED = 1_000  # callers without useful grants that are remembered, so that each is logged once
NO_GRANTS = Grants.of([], [])

# Headers of proxies: a proxy on this machine forwards requests of other machines.
_FORWARDED = re.compile(rb"^(?:(?:forwarded|via|x-real-ip)$|x-forwarded-)", re.MULTILINE)


class Unauthenticated(RequestRejected):
    """A request whose credential is missing or invalid."""

    def __init__(self, message: str, reason: str, error: bytes = b"") -> None:
        """`reason` is for the log alone; `error` is appended to the challenge."""
        super().__init__(401, message, (b"www-authenticate", b'Bearer realm="clade"' + error), code=UNAUTHENTICATED)
        self.reason = reason


class MissingCredential(Unauthenticated):
    """A request for data without a credential, on a server where reading needs one."""

    def __init__(self) -> None:
        message = 'Missing credential; send "Authorization: Bearer KEY", with an API key or a token.'
        super().__init__(message, "The request has no credential.")


class Authenticator:
    """Finds the caller of a request, with its grants.

    `open_reads` lets everyone read everything. `local_writes` lets clients on this machine read and write everything
    without a credential.
    """

    def __init__(
        self,
        api_keys: ApiKeyAuthenticator,
        tokens: "Tokens | None" = None,
        *,
        open_reads: bool = True,
        local_writes: bool = False,
        hierarchies: Iterable[str] = (),
    ) -> None:
        """`hierarchies` are those that are served: a caller without grants for any of them is logged."""
        self._api_keys = api_keys
        self._tokens = tokens
        self._open_reads = open_reads
        self._local_writes = local_writes
        self._hierarchies = frozenset(hierarchies)
        self._warned: BoundedCache[str, int] = BoundedCache("logged", MAX_WARNED, bytes_each=200)
        self._anonymous = Caller(reads=None if open_reads else NO_GRANTS, writes=NO_GRANTS)

    def without_credential(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller | None:
        """The caller of a request without a credential; None if it has one."""
        if headers.get(b"authorization"):
            return None
        return ANYONE if self._local_writes and is_local(scope, headers) else self._anonymous

    async def by_credential(self, headers: Mapping[bytes, bytes], limiter: AbstractContextManager[object]) -> Caller:
        """The caller of this credential. Raises RequestRejected and Unavailable.

        Looking up an API key is a read of the table, so it counts for the limiter. Checking a token does not: a token
        may wait for the keys of its issuer.
        """
        scheme, _, credential = headers[b"authorization"].partition(b" ")
        if scheme.lower() != b"bearer":  # if it were ignored, nodes would be missing silently
            raise Unauthenticated(
                'Invalid Authorization header; send "Authorization: Bearer KEY", with an API key or a token. '
                "A proxy that uses another scheme must remove the header.",
                "The Authorization header has another scheme than Bearer.",
            )
        try:
            found = await self._find(credential, limiter)
        except InvalidCredential as invalid:
            message = "Invalid or expired credential in the Authorization header; use another API key or token."
            raise Unauthenticated(message, str(invalid), b', error="invalid_token"') from None
        if self._open_reads:
            return replace(found, reads=None)
        self._warn_of_useless(found)
        return found

    async def _find(self, credential: bytes, limiter: AbstractContextManager[object]) -> Caller:
        """The caller of an API key or a token. Raises InvalidCredential, RequestRejected and Unavailable."""
        if len(credential) > MAX_CREDENTIAL_BYTES or not credential.isascii():
            raise InvalidCredential(f"The credential is longer than {MAX_CREDENTIAL_BYTES:,} bytes or not ASCII.")
        text = credential.decode().strip()
        if is_key(text):
            with limiter:
                return await self._api_keys.caller(text)
        if self._tokens is None:
            raise InvalidCredential("It is not an API key, and tokens need CLADE_JWT_SECRET or CLADE_JWT_KEYS.")
        return await self._tokens.caller(text)

    def _warn_of_useless(self, caller: Caller) -> None:
        """Log once that the grants of a caller let it read nothing, as its lists are empty without an error."""
        served = self._hierarchies
        granted = served if caller.reads is None else caller.reads.read.keys()
        if not served or not served.isdisjoint(granted) or self._warned.get(caller.id):
            return
        self._warned.put(caller.id, 1)
        has = f"only grants for {cut(', '.join(sorted(granted)))}" if granted else "no grants"
        message = "%s has %s, so it sees nothing; add a grant such as read:%s, for one of %s."
        logger.warning(message, cut(caller.id), has, min(served), ", ".join(sorted(served)))


def tokens_of(settings: Settings) -> "Tokens | None":
    """The token verifier of the settings; None if no tokens are accepted. Raises BadInput."""
    if not (settings.jwt_secret or settings.jwt_secret_file or settings.jwt_keys):
        return None
    from graph.auth import tokens  # its libraries are slow to import, and most servers do not need them

    return tokens.tokens_of(settings)


def is_local(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request came in at a loopback address, not from a proxy, and not from a page of another origin."""
    server = scope.get("server")  # None for a Unix socket, behind which a proxy is
    if server is None or not listens_on_loopback(server[0]) or _FORWARDED.search(b"\n".join(headers)):
        return False
    origin = headers.get(b"origin")
    return origin is None or origin == scope["scheme"].encode() + b"://" + headers.get(b"host", b"")
