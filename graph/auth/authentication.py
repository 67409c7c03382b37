"""Callers, by the header Authorization: the holder of an API key, the subject of a token, or nobody known."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from graphql import FieldNode, OperationDefinitionNode
from starlette.types import Scope

from graph.auth.loopback import listens_on_loopback
from graph.settings import Settings
from resolvers.access.api_key_auth import ApiKeyAuthenticator, is_key
from resolvers.access.caller import ANYONE, Caller
from resolvers.access.grants import Grants

if TYPE_CHECKING:
    from graph.auth.jwt_tokens import Tokens

MAX_CREDENTIAL_BYTES = 8_192
NOTHING = Grants.of([], [])
WITHOUT_DATA = frozenset({"__typename", "__schema", "__type", "_service"})

Header = tuple[bytes, bytes]

# A proxy on this machine hands on requests of the whole world; those that say so are none of this machine's.
_FORWARDED = (b"forwarded", b"via", b"x-real-ip")
_FORWARDED_MORE = b"x-forwarded-"  # for, host, proto, server and others


class Unauthenticated(Exception):
    """A credential that is missing or not accepted; the message goes to the client."""

    challenge: Header = (b"www-authenticate", b'Bearer realm="clade"')


class Invalid(Unauthenticated):
    """An invalid credential. The reason is deliberately not disclosed."""

    challenge = (b"www-authenticate", b'Bearer realm="clade", error="invalid_token"')

    def __init__(self) -> None:
        super().__init__("The credential in the header Authorization is not valid, or not any more.")


class WrongScheme(Unauthenticated):
    """A header Authorization that is not of the scheme Bearer; taken for none, it would silently show too little."""

    def __init__(self) -> None:
        super().__init__(
            'Invalid Authorization header; send "Authorization: Bearer KEY", with an API key or a token. '
            "A proxy that takes another scheme must remove the header."
        )


class Missing(Unauthenticated):
    """A request for data without a credential, where reading needs one."""

    def __init__(self) -> None:
        super().__init__('Reading needs a credential; send "Authorization: Bearer KEY", with an API key or a token.')


class Authenticator:
    """Tells who calls, and what a caller may do under the settings.

    `open_reads` lets everybody read everything. `home_writes` lets whoever asks at an address that only this machine
    reaches read and write everything without a credential.
    """

    def __init__(
        self,
        keyring: ApiKeyAuthenticator,
        tokens: "Tokens | None" = None,
        *,
        open_reads: bool = True,
        home_writes: bool = False,
    ) -> None:
        self._keyring = keyring
        self._tokens = tokens
        self._open_reads = open_reads
        self._home_writes = home_writes
        self._anonymous = Caller(reads=None if open_reads else NOTHING, writes=NOTHING)

    async def watch(self) -> None:
        """Keep what credentials are checked with up to date, until it is cancelled."""
        if self._tokens is not None:
            await self._tokens.watch()

    def at_once(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller | None:
        """The caller of a request without a credential; None where there is one."""
        if headers.get(b"authorization"):
            return None
        return ANYONE if self._home_writes and is_at_home(scope, headers) else self._anonymous

    async def of(self, headers: Mapping[bytes, bytes], gate: AbstractContextManager[object]) -> Caller:
        """Whose credential it is. Raises Unauthenticated, Unavailable where that cannot be found out now, and Full.

        Keys that somebody has made up are reads of the table, so they pass the gate. Tokens are not: who waits for
        an issuer's keys takes no place.
        """
        scheme, _, credential = headers[b"authorization"].partition(b" ")
        if scheme.lower() != b"bearer":
            raise WrongScheme
        if len(credential) > MAX_CREDENTIAL_BYTES or not credential.isascii():
            raise Invalid
        text = credential.decode().strip()
        if is_key(text):
            with gate:
                found = await self._keyring.caller(text)
        else:
            found = await self._tokens.caller(text) if self._tokens is not None else None
        if found is None:
            raise Invalid
        return replace(found, reads=None) if self._open_reads else found


def tokens_of(settings: Settings) -> "Tokens | None":
    """What checks tokens as the settings say, None where they trust no issuer. Raises BadInput."""
    if not (settings.jwt_secret or settings.jwt_secret_file or settings.jwt_keys):
        return None
    from graph.auth import jwt_tokens  # its libraries take a while to load, and most servers need none of them

    return jwt_tokens.tokens_of(settings)


def needs_credential(caller: Caller, operation: OperationDefinitionNode) -> bool:
    """Whether an operation reads or changes data for a caller who has no credential and may read nothing.

    The schema and `_service` are for everybody: gateways and code generators ask for them without a credential.
    """
    if caller.reads is not NOTHING:
        return False
    fields = operation.selection_set.selections
    return not all(isinstance(field, FieldNode) and field.name.value in WITHOUT_DATA for field in fields)


def is_at_home(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request came in at an address that only this machine reaches, through no proxy that says so, and from
    no page of another origin.
    """
    if not listens_on_loopback(scope) or not is_own_origin(scope, headers):
        return False
    return not any(name in _FORWARDED or name.startswith(_FORWARDED_MORE) for name in headers)


def is_own_origin(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request is of no page, or of one that this server has sent."""
    origin = headers.get(b"origin")
    return origin is None or origin == scope["scheme"].encode() + b"://" + headers.get(b"host", b"")
