"""The application of ASGI around everything: ids and reports of requests, headers of security and of CORS, and what is
answered by the head alone.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import cast

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import (
    BAD_REQUEST,
    OVERLOADED,
    UNAVAILABLE,
    UNCERTAIN,
    UNCERTAIN_HINT,
    Header,
    RequestRejected,
    error_body,
)
from graph.hosts import ANY, MAX_HOST_BYTES, is_host, is_loopback, listens_on_loopback, nameable_origin
from graph.observability.logs import KEY, PROBES, REQUEST_ID, STATUS_CLIENT_CLOSED, RequestInfo
from graph.server.lifecycle import NOT_STARTED, GracefulShutdown
from graph.server.sending import CLOSE, RETRY_AFTER, send_error
from store.errors import Forbidden

logger = logging.getLogger("clade")

GRAPHQL_PATH = "/graphql"

Observer = Callable[[RequestInfo], None]

# The resource policy is for what pages embed; browsers read responses by CORS without it
# (https://fetch.spec.whatwg.org/#concept-http-fetch checks it for opaque responses only).
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
POLICY: Header = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")

ORIGIN = b"origin"
ALLOW_ORIGIN = b"access-control-allow-origin"
BY_ORIGIN: Header = (b"vary", ORIGIN)
EXPOSED: Header = (b"access-control-expose-headers", b"etag, retry-after, x-request-id, allow, www-authenticate")
"""Headers that scripts may read in addition to those of the Fetch standard, such as Cache-Control and Content-Type."""
PREFLIGHT = {
    "access-control-allow-methods": "GET, HEAD, POST",
    "access-control-max-age": "7200",  # of seconds; Chromium's maximum
    "cache-control": "no-store",
    "vary": "access-control-request-headers",
}

MAX_CONNECTIONS = 4_096  # of one process, far above the requests that it can answer at a time; each takes a descriptor
MAX_HEAD_BYTES = 65_536
MAX_PIPELINED = 32  # requests of one connection that wait for earlier ones: each takes 3 KB, for 20 bytes that are sent
MAX_IGNORED_BYTES = 1_000_000  # of bodies that go on after their responses, such as one of 413

REJECTED = "clade.rejected"
"""The key in the ASGI scope of the rejection of a request that the server could not read; None for all others."""

SINGLE = ("Authorization", "Content-Type", "Host", "Origin")
"""Headers that a request may have once: of two, a proxy might read one and Clade the other."""

WRONG_HOST = RequestRejected(
    403,
    "Invalid Host header; use localhost or 127.0.0.1. For a proxy on this machine set CLADE_PRODUCTION=1, or have "
    "it send Host: localhost.",
    code=Forbidden.code,
)
NO_ORIGIN_HINT = "serve the page at an address of its own, whose origin CLADE_CORS_ORIGINS can name."
NO_HOST = RequestRejected(400, "The Host header is missing or invalid; send the host of the address.", CLOSE)
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


class CORS:
    """The headers by which pages of these origins, as in `graph.hosts.cors_origins`, may read responses.

    All responses vary by Origin, unless any is allowed: a cache would send one that was made without it to pages, too.
    https://fetch.spec.whatwg.org/#http-cors-protocol
    """

    def __init__(self, origins: Sequence[str]) -> None:
        names = [origin.encode() for origin in origins]
        self._allowed = {name: [(ALLOW_ORIGIN, name), EXPOSED, BY_ORIGIN] for name in names}
        self._others = [(ALLOW_ORIGIN, b"*"), EXPOSED] if self._allowed.pop(ANY.encode(), None) else [BY_ORIGIN]

    def headers(self, scope: Scope) -> list[Header]:
        """The headers of a response. Of several Origin headers none is allowed."""
        headers = scope[KEY].headers
        if len(headers) < len(scope["headers"]) and [name for name, _ in scope["headers"]].count(ORIGIN) > 1:
            return self._others
        return self._allowed.get(headers.get(ORIGIN, b""), self._others)

    def preflight(self, scope: Scope) -> Response | None:
        """The response to a preflight, which allows all headers that it asks for; None for other requests."""
        info: RequestInfo = scope[KEY]
        if not is_preflight(info):
            return None
        if ALLOW_ORIGIN not in dict(self.headers(scope)):
            message = wrong_origin(info, has_others=True)
            info.codes, info.reason = (BAD_REQUEST,), message
            return Response(error_body(message, BAD_REQUEST), 400, media_type="application/json")
        asked = info.headers.get(b"access-control-request-headers", b"").decode("latin-1")
        return Response(headers={**PREFLIGHT, "access-control-allow-headers": asked})


def is_preflight(info: RequestInfo) -> bool:
    """Whether a browser asks by this request what a page of another origin may send."""
    return info.method == "OPTIONS" and {ORIGIN, b"access-control-request-method"} <= info.headers.keys()


def wrong_origin(info: RequestInfo, *, has_others: bool) -> str:
    """Why the preflight of a page is rejected, and the way out; `has_others` is whether CLADE_CORS_ORIGINS is set."""
    origin = nameable_origin(info.headers[ORIGIN])
    if origin is None:
        return f"Pages of this Origin may not read responses; {NO_ORIGIN_HINT}"
    hint = "add it to CLADE_CORS_ORIGINS" if has_others else f"start the server with CLADE_CORS_ORIGINS={origin}"
    return f"Pages of {origin} may not read responses; {hint}."


class RequestHandler:
    """The application of ASGI: each request gets an id, is checked, answered, and passed to all observers at its end.

    A request for the endpoint runs from its head to its response without a wait where all that it needs is there, so a
    server may run it before it makes a task (`commands/protocol.py`). While the lifespan does not run, all but health
    checks get 503 with the way out, since hosts start no lifespan of an application that they mount.

    All responses have the headers of security, an id, and those of `cors`. A response keeps its own content security
    policy; without one it may load nothing. With `check_hosts`, requests at a loopback address whose Host header names
    another host are answered by 403: a web page can have its own name resolved to 127.0.0.1 (DNS rebinding), but its
    requests still have that name as their host. With `cors`, preflights are answered here, for all paths.
    """

    def __init__(
        self,
        endpoint: ASGIApp,
        others: ASGIApp,
        observers: Sequence[Observer],
        drain: GracefulShutdown,
        *,
        cors: CORS | None = None,
        check_hosts: bool = False,
    ) -> None:
        """`others` is the application of all other paths, and of the lifespan."""
        self._endpoint, self._others = endpoint, others
        self._observers = observers
        self._drain = drain
        self._cors = cors
        self._check_hosts = check_hosts
        self._has_logged = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._others(scope, receive, send)
            return
        info = scope[KEY] = RequestInfo.of(scope)

        def send_complete(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                self._complete(message, scope, info)
            return send(message)

        self._drain.running += 1
        try:
            if (rejected := self._rejection(scope, info)) is not None:
                info.codes, info.reason = (rejected.code,), str(rejected)
                await send_error(send_complete, rejected.status, str(rejected), rejected.code, rejected.headers)
            elif self._cors is not None and (preflight := self._cors.preflight(scope)) is not None:
                await preflight(scope, receive, send_complete)
            elif not (self._drain.has_started or scope["path"].endswith(PROBES)):
                info.codes = (UNAVAILABLE,)
                self._log_not_started()
                await send_error(send_complete, 503, NOT_STARTED, UNAVAILABLE)
            else:
                await (self._endpoint if is_endpoint(scope) else self._others)(scope, receive, send_complete)
        except asyncio.CancelledError:  # the time for running requests is over
            self._drain.cancelled += 1
            if info.status == STATUS_CLIENT_CLOSED:
                info.codes = (UNAVAILABLE,)
                hint, extensions = (UNCERTAIN_HINT, UNCERTAIN) if info.kind == "mutation" else ("Retry.", {})
                message = f"The server is stopping, and the request was cancelled. {hint}"
                await send_error(send_complete, 503, message, UNAVAILABLE, [CLOSE], extensions)
            if not self._drain.draining:  # else uvicorn would log its own cancellation as an exception
                raise
        finally:
            self._drain.running -= 1
            if not scope["path"].endswith(PROBES):
                info.seconds = time.perf_counter() - info.started
                for observer in self._observers:
                    observer(info)

    def _log_not_started(self) -> None:
        if not self._has_logged:
            self._has_logged = True
            logger.error("%s", NOT_STARTED)

    def _complete(self, message: Message, scope: Scope, info: RequestInfo) -> None:
        """Add to the start of a response what all responses have."""
        info.status = message["status"]
        headers = message["headers"] = [*message["headers"], *HEADERS, (REQUEST_ID, info.id.encode())]
        if POLICY[0] not in dict(headers):
            headers.append(POLICY)
        if self._cors is not None:
            headers += self._cors.headers(scope)
        # The client's next connection goes to another server.
        if self._drain.draining and CLOSE not in headers:
            headers.append(CLOSE)

    def _rejection(self, scope: Scope, info: RequestInfo) -> RequestRejected | None:
        """Why a request is rejected by its head, whatever it asks for."""
        if (rejected := scope.get(REJECTED)) is not None:
            return cast(RequestRejected, rejected)
        if len(info.headers) < len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            for single in SINGLE:
                if names.count(single.lower().encode()) > 1:
                    return RequestRejected(400, f"The request has more than one {single} header; send one.", CLOSE)
        host, server = (
            info.headers.get(b"host", b"" if scope.get("http_version") == "1.1" else b"none"),
            scope["server"],
        )
        if len(host) > MAX_HOST_BYTES:
            return NO_HOST
        return host_rejection(host, server[0] if server and self._check_hosts else None)


@lru_cache(256)
def host_rejection(host: bytes, server: str | None) -> RequestRejected | None:
    """Why a Host header is rejected; `server` is the address of the connection, None where its host may be any."""
    if not is_host(host):
        return NO_HOST
    if server is not None and listens_on_loopback(server) and not is_loopback(host.decode("latin-1")):
        return WRONG_HOST
    return None


def is_endpoint(scope: Scope) -> bool:
    """Whether a request is for the endpoint, perhaps below the path of a mount."""
    path: str = scope["path"]
    return path == GRAPHQL_PATH or path == scope.get("root_path", "") + GRAPHQL_PATH
