"""Who sends a request, as its header Authorization tells: the holder of an API key, of a token, or anybody."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.types import Scope

from graph.loopback import listens_on_loopback
from graph.settings import Settings
from resolvers.caller import ANYONE, Caller
from resolvers.grants import Grants
from resolvers.keyring import Keyring, is_key

if TYPE_CHECKING:
    from graph.tokens import Tokens

MAX_CREDENTIAL_BYTES = 8_192
NOTHING = Grants.of([], [])

# A proxy on this machine hands on requests of the whole world; those that say so are none of this machine's.
_FORWARDED = (b"forwarded", b"via", b"x-real-ip")
_FORWARDED_MORE = b"x-forwarded-"  # for, host, proto, server and others


class Unauthenticated(Exception):
    """A credential that proves nothing. Why not is not told."""

    def __init__(self) -> None:
        super().__init__("The credential in the header Authorization is not valid, or not any more.")


class Callers:
    """Tells who calls, and what a caller may do under the settings.

    `open_reads` lets everybody read everything. `home_writes` lets whoever asks at an address that only this machine
    reaches read and write everything without a credential.
    """

    def __init__(
        self, keyring: Keyring, tokens: "Tokens | None" = None, *, open_reads: bool = True, home_writes: bool = False
    ) -> None:
        self._keyring = keyring
        self._tokens = tokens
        self._open_reads = open_reads
        self._home_writes = home_writes
        self._anonymous = Caller(reads=None if open_reads else NOTHING, writes=NOTHING)

    def at_once(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller | None:
        """Who sends a request that brings no credential; None where there is one."""
        scheme, _, _ = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":  # another scheme is for the proxy that stands before this server
            return None
        return ANYONE if self._home_writes and is_at_home(scope, headers) else self._anonymous

    async def of(self, headers: Mapping[bytes, bytes]) -> Caller:
        """Whose credential it is. Raises Unauthenticated, and Unavailable where that cannot be found out now."""
        _, _, credential = headers[b"authorization"].partition(b" ")
        if len(credential) > MAX_CREDENTIAL_BYTES or not credential.isascii():
            raise Unauthenticated
        text = credential.decode().strip()
        if is_key(text):
            found = await self._keyring.caller(text)
        else:
            found = await self._tokens.caller(text) if self._tokens is not None else None
        if found is None:
            raise Unauthenticated
        return replace(found, reads=None) if self._open_reads else found


def tokens_of(settings: Settings) -> "Tokens | None":
    """What checks tokens as the settings say, None where they trust no issuer. Raises BadInput."""
    if not (settings.jwt_secret or settings.jwt_secret_file or settings.jwt_keys):
        return None
    from graph import tokens  # its libraries take a while to load, and most servers need none of them

    return tokens.tokens_of(settings)


def is_at_home(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request came in at an address that only this machine reaches, and through no proxy that says so."""
    return listens_on_loopback(scope) and not any(
        name in _FORWARDED or name.startswith(_FORWARDED_MORE) for name in headers
    )
