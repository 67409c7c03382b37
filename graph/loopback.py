"""Who may talk to a server that writes and listens on this machine alone: pages from elsewhere may not.

A page can have its own name resolved to 127.0.0.1 and then reads and writes as if it came from here (DNS rebinding);
but the request still carries that name as its host.
"""

from functools import lru_cache
from ipaddress import ip_address

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send


class LoopbackHosts:
    """An ASGI application that answers 403 on a loopback address unless the header Host names a loopback address."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not listens_on_loopback(scope) or is_loopback(_host(scope)):
            await self._app(scope, receive, send)
            return
        told = {"message": "Ask for localhost or 127.0.0.1 by name.", "extensions": {"code": "FORBIDDEN"}}
        body = orjson.dumps({"errors": [told]})
        headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def is_loopback(host: str) -> bool:
    """Whether a host, as the header Host names it with or without a port, can only be this machine."""
    name = host[1 : host.find("]")] if host.startswith("[") else host.rpartition(":")[0] or host
    if name.lower() in ("localhost", "localhost."):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def listens_on_loopback(scope: Scope) -> bool:
    """Whether the connection came in at a loopback address; a server that tells none is behind a socket file."""
    server = scope.get("server")
    return server is not None and _is_own(server[0])


@lru_cache(64)
def _is_own(address: str) -> bool:
    """The same of one of the few addresses that this server has."""
    return is_loopback(address if ":" not in address else f"[{address}]")


def _host(scope: Scope) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
