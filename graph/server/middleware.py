"""ASGI middleware around everything: ids and reports of requests, security headers, and requests that are rejected
before the application sees them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import OVERLOADED, UNAVAILABLE, UNCERTAIN, UNCERTAIN_HINT, RequestRejected
from graph.hosts import has_loopback_host, listens_on_loopback
from graph.observability.logs import KEY, PROBES, REQUEST_ID, STATUS_CLIENT_CLOSED, RequestInfo
from graph.server.lifecycle import GracefulShutdown
from graph.server.sending import CLOSE, RETRY_AFTER, send_error
from store.errors import Forbidden

Observer = Callable[[RequestInfo], None]

POLICY = b"content-security-policy"

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
HEADERS_AND_POLICY = [*HEADERS, (POLICY, b"default-src 'none'; frame-ancestors 'none'")]

MAX_CONNECTIONS = 4_096  # of one process, far above the requests that it can answer at a time; each takes a descriptor
MAX_HEAD_BYTES = 65_536
MAX_PIPELINED = 32  # requests of one connection that wait for earlier ones: each takes 3 KB, for 20 bytes that are sent
MAX_IGNORED_BYTES = 1_000_000  # of bodies that go on after their responses, such as one of 413

REJECTED = "clade.rejected"
"""The key in the ASGI scope of the rejection of a request that the server could not read; None for all others."""

SINGLE = ("Authorization", "Content-Encoding", "Content-Type", "Host", "Origin")
"""Headers that a request may have once: of two, a proxy might read one and Clade the other."""

WRONG_HOST = RequestRejected(
    403,
    "Invalid Host header; use localhost or 127.0.0.1. For a proxy on this machine set CLADE_PRODUCTION=1, or have "
    "it send Host: localhost.",
    code=Forbidden.code,
)
NOT_HTTP = RequestRejected(400, "The request is not valid HTTP/1.1.", CLOSE)
PIPELINED = RequestRejected(
    400, f"More than {MAX_PIPELINED} requests wait on this connection; wait for responses first.", CLOSE
)
HEAD_TOO_LARGE = RequestRejected(
    431, f"The request head is larger than {MAX_HEAD_BYTES:,} bytes; send the query in the body of a POST.", CLOSE
)
TOO_MANY = RequestRejected(
    503,
    f"The server has its maximum of {MAX_CONNECTIONS:,} connections; retry later.",
    CLOSE,
    RETRY_AFTER,
    code=OVERLOADED,
)


class RequestObserver:
    """The outermost middleware: each request gets an id, and is passed to all observers, in their order, at its end."""

    def __init__(self, app: ASGIApp, observers: Sequence[Observer], drain: GracefulShutdown) -> None:
        self._app = app
        self._observers = observers
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        info = scope[KEY] = RequestInfo.of(scope)

        def send_with_id(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                info.status = message["status"]
                headers = message["headers"] = list(message["headers"])
                headers.append((REQUEST_ID, info.id.encode()))
                if self._drain.draining:  # the client's next connection goes to another server
                    headers.append(CLOSE)
            return send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # the time for running requests is over
            if info.status == STATUS_CLIENT_CLOSED:
                info.codes = (UNAVAILABLE,)
                hint, extensions = (UNCERTAIN_HINT, UNCERTAIN) if info.kind == "mutation" else ("Retry.", {})
                message = f"The server is stopping, and the request was cancelled. {hint}"
                await send_error(send_with_id, 503, message, UNAVAILABLE, [CLOSE], extensions)
            raise
        finally:
            if scope["path"] not in PROBES:
                info.seconds = time.perf_counter() - info.started
                for observer in self._observers:
                    observer(info)


class SecurityHeaders:
    """Middleware in RequestObserver that adds the headers to all responses, including errors.

    A response keeps its own content security policy; without one it may load nothing. With `check_hosts`, requests at a
    loopback address whose Host header names another host are answered by 403: a web page can have its own name resolved
    to 127.0.0.1 (DNS rebinding), but its requests still have that name as their host.
    """

    def __init__(self, app: ASGIApp, *, check_hosts: bool = False) -> None:
        self._app = app
        self._check_hosts = check_hosts

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._app(scope, receive, send)

        def send_with_headers(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                added = HEADERS_AND_POLICY
                for name, _ in headers:
                    if name == POLICY:
                        added = HEADERS
                message["headers"] = [*headers, *added]
            return send(message)

        info: RequestInfo = scope[KEY]
        if (rejected := self._rejection(scope, info)) is not None:
            info.codes, info.reason = (rejected.code,), str(rejected)
            return send_error(send_with_headers, rejected.status, str(rejected), rejected.code, rejected.headers)
        return self._app(scope, receive, send_with_headers)

    def _rejection(self, scope: Scope, info: RequestInfo) -> RequestRejected | None:
        if (rejected := scope.get(REJECTED)) is not None:
            return cast(RequestRejected, rejected)
        if len(info.headers) < len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            for single in SINGLE:
                if names.count(single.lower().encode()) > 1:
                    return RequestRejected(400, f"The request has more than one {single} header; send one.", CLOSE)
        if self._check_hosts and listens_on_loopback(scope) and not has_loopback_host(info.headers):
            return WRONG_HOST
        return None
