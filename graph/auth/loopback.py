"""Host check of a loopback address: requests that name another host are rejected.

A page can have its own name resolved to 127.0.0.1 and then asks as if it came from this machine (DNS rebinding); but
the request still carries that name as its host.
"""

import re
from collections.abc import Awaitable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.observability.request_info import KEY, RequestInfo

MESSAGE = (
    "Invalid Host header; use localhost or 127.0.0.1. For a proxy on this machine set CLADE_PRODUCTION=1, or have "
    "it send Host: localhost."
)

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


class LoopbackHosts:
    """An ASGI application that answers 403 at a loopback address unless the one header Host names such an address."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        server = scope.get("server")
        if server is not None and _is_own(server[0]) and scope["type"] == "http":
            observed: RequestInfo | None = scope.get(KEY)  # `Watch` has rejected a second Host
            headers = dict(scope["headers"]) if observed is None else observed.headers
            if not _is_loopback(headers.get(b"host", b"")):
                return _reject(send)
        return self._app(scope, receive, send)


async def _reject(send: Send) -> None:
    body = orjson.dumps({"errors": [{"message": MESSAGE, "extensions": {"code": "FORBIDDEN"}}]})
    headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def is_loopback(host: str) -> bool:
    """Whether a host, as the header Host names it with or without a port, can only be this machine."""
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match[1] or match[2]
    if name.lower() in ("localhost", "localhost."):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None  # of IPv4 at a socket for both
    return (mapped or address).is_loopback and (match[1] is not None) == isinstance(address, IPv6Address)


@lru_cache(64)
def _is_loopback(host: bytes) -> bool:
    return is_loopback(host.decode("latin-1"))


def listens_on_loopback(scope: Scope) -> bool:
    """Whether the connection came in at a loopback address; a server that tells none is behind a socket file."""
    server = scope.get("server")
    return server is not None and _is_own(server[0])


@lru_cache(64)
def _is_own(address: str) -> bool:
    """The same of one of the few addresses that this server has."""
    return is_loopback(address if ":" not in address else f"[{address}]")
