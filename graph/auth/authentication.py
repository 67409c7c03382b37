"""Authentication: the caller of a request by its Authorization header, an API key, a token or anonymous."""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from graphql import FieldNode, OperationDefinitionNode
from starlette.types import Scope

from graph.auth.loopback import listens_on_loopback
from graph.errors import UNAUTHENTICATED, RequestRejected
from graph.settings import Settings
from resolvers.access.api_key_auth import ApiKeyAuthenticator, is_key
from resolvers.access.caller import ANYONE, Caller
from resolvers.access.grants import Grants

if TYPE_CHECKING:
    from graph.auth.jwt_tokens import Tokens

MAX_CREDENTIAL_BYTES = 8_192
NO_GRANTS = Grants.of([], [])
PUBLIC_FIELDS = frozenset({"__typename", "__schema", "__type", "_service"})

# Headers of proxies: a proxy on this machine forwards requests of other machines.
_FORWARDED = re.compile(rb"(forwarded|via|x-real-ip)\Z|x-forwarded-")


class Unauthenticated(RequestRejected):
    """A request whose credential is missing or invalid."""

    def __init__(self, message: str, error: bytes = b"") -> None:
        """`error` is appended to the challenge."""
        super().__init__(401, message, (b"www-authenticate", b'Bearer realm="clade"' + error), code=UNAUTHENTICATED)


class MissingCredential(Unauthenticated):
    """A request for data without a credential, on a server where reading needs one."""

    def __init__(self) -> None:
        super().__init__('Missing credential; send "Authorization: Bearer KEY", with an API key or a token.')


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
    ) -> None:
        self._api_keys = api_keys
        self._tokens = tokens
        self._open_reads = open_reads
        self._local_writes = local_writes
        self._anonymous = Caller(reads=None if open_reads else NO_GRANTS, writes=NO_GRANTS)

    async def watch(self) -> None:
        """Keep the signing keys up to date, until cancelled."""
        if self._tokens is not None:
            await self._tokens.watch()

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
                "A proxy that uses another scheme must remove the header."
            )
        is_readable = len(credential) <= MAX_CREDENTIAL_BYTES and credential.isascii()
        text = credential.decode().strip() if is_readable else ""
        found = None
        if is_key(text):
            with limiter:
                found = await self._api_keys.caller(text)
        elif self._tokens is not None:
            found = await self._tokens.caller(text)
        if found is None:  # the reason is deliberately not disclosed
            message = "Invalid or expired credential in the Authorization header; use another API key or token."
            raise Unauthenticated(message, b', error="invalid_token"')
        return replace(found, reads=None) if self._open_reads else found


def tokens_of(settings: Settings) -> "Tokens | None":
    """The token verifier of the settings; None if no tokens are accepted. Raises BadInput."""
    if not (settings.jwt_secret or settings.jwt_secret_file or settings.jwt_keys):
        return None
    from graph.auth import jwt_tokens  # its libraries are slow to import, and most servers do not need them

    return jwt_tokens.tokens_of(settings)


def needs_credential(caller: Caller, operation: OperationDefinitionNode) -> bool:
    """Whether an operation of an anonymous caller without read access needs a credential.

    The schema and `_service` are public: gateways and code generators request them without a credential.
    """
    if caller.reads is not NO_GRANTS:
        return False
    fields = operation.selection_set.selections
    return not all(isinstance(field, FieldNode) and field.name.value in PUBLIC_FIELDS for field in fields)


def is_local(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request came in at a loopback address, not from a proxy, and not from a page of another origin."""
    if not listens_on_loopback(scope) or any(map(_FORWARDED.match, headers)):
        return False
    origin = headers.get(b"origin")
    return origin is None or origin == scope["scheme"].encode() + b"://" + headers.get(b"host", b"")
