"""Request observer: the outermost middleware, which gives each request an id and reports it when it has ended."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import BAD_REQUEST, UNAVAILABLE, UNCERTAIN, UNCERTAIN_HINT
from graph.observability.request_info import KEY, REQUEST_ID, STATUS_CLIENT_CLOSED, RequestInfo
from graph.server.graphql_over_http import CLOSE, send_error
from graph.server.lifecycle import GracefulShutdown

PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that load balancers request every few seconds; these requests are not observed."""

SINGLE = ("Authorization", "Content-Type", "Host", "Origin")
"""Headers that a request may have once: of two, a proxy might read one and Clade the other."""

Observer = Callable[[RequestInfo], None]


class RequestObserver:
    """ASGI middleware that passes each finished request to all observers, in their order."""

    def __init__(self, app: ASGIApp, observers: Sequence[Observer], drain: GracefulShutdown) -> None:
        self._app = app
        self._observers = observers
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        info = scope[KEY] = RequestInfo.of(scope)
        app = self._app
        if len(info.headers) < len(scope["headers"]) and (name := repeated(scope["headers"])):
            app = partial(send_repeated, name)

        def send_with_id(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                info.status = message["status"]
                headers = message["headers"] = list(message["headers"])
                headers.append((REQUEST_ID, info.id.encode()))
                if self._drain.draining:  # the client's next connection goes to another server
                    headers.append(CLOSE)
            return send(message)

        try:
            await app(scope, receive, send_with_id)
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


async def send_repeated(name: str, scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI application that answers 400 to a request which repeats this header."""
    await send_error(send, 400, f"The request has more than one {name} header; send one.", BAD_REQUEST, [CLOSE])


def repeated(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The first of the SINGLE headers that a request repeats."""
    names = [name for name, _ in headers]
    return next((single for single in SINGLE if names.count(single.lower().encode()) > 1), None)
