"""Request observer: the outermost middleware, which gives each request an id and reports it when it has ended."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import UNAVAILABLE, UNCERTAIN, UNCERTAIN_HINT
from graph.observability.request_info import KEY, REQUEST_ID, STATUS_CLIENT_CLOSED, RequestInfo
from graph.server.graceful_shutdown import GracefulShutdown
from graph.server.response_sender import CLOSE, send_error

PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that load balancers request every few seconds; these requests are not observed."""

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
