"""The outermost layer of the application: it gives each request its id, and tells what became of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import BAD_REQUEST, UNCERTAIN
from graph.observability.request_info import (
    GONE,
    KEY,
    REQUEST_ID,
    RequestInfo,
)
from graph.server.graceful_shutdown import GracefulShutdown
from store.errors import UNCERTAIN_HINT, Unavailable

PROBES = frozenset({"/healthz", "/readyz"})
"""Asked every few seconds by machines, about the process and not of the data: never observed."""

SINGLE = ("Authorization", "Content-Type", "Host", "Origin")
"""Headers of one value: of two, a proxy might look at the one and Clade at the other."""

CLOSE = (b"connection", b"close")

Observer = Callable[[RequestInfo], None]


class RequestObserver:
    """An ASGI application that shows each request to another to all observers, when it is over.

    `marking` is shown it earlier, when its answer begins.
    """

    def __init__(
        self, app: ASGIApp, observers: Sequence[Observer], drain: GracefulShutdown, marking: Observer | None = None
    ) -> None:
        self._app = app
        self._observers = observers
        self._marking = marking
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        observed = scope[KEY] = RequestInfo.of(scope)
        app = self._app
        if len(observed.headers) < len(scope["headers"]) and (name := repeated(scope["headers"])):
            app = Repeated(name)

        def send_with_id(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                observed.status = message["status"]
                if self._marking is not None:
                    self._marking(observed)
                headers = message["headers"] = list(message["headers"])
                headers.append((REQUEST_ID, observed.id.encode()))
                if self._drain.draining:  # who comes again shall come to another server
                    headers.append(CLOSE)
            return send(message)

        try:
            await app(scope, receive, send_with_id)
        except asyncio.CancelledError:  # the server's time to stop is over
            if observed.status == GONE:
                observed.codes = (Unavailable.code,)
                await _tell_stopping(send_with_id, may_be_made=observed.kind == "mutation")
            raise
        finally:
            if scope["path"] not in PROBES:
                observed.seconds = time.perf_counter() - observed.began
                for observer in self._observers:
                    observer(observed)


class Repeated:
    """An ASGI application that answers 400 to a request with two headers of a name that has one value."""

    def __init__(self, name: str) -> None:
        self._message = f"The request has more than one header {name}; send one."

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = orjson.dumps({"errors": [{"message": self._message, "extensions": {"code": BAD_REQUEST}}]})
        headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body)), CLOSE]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def repeated(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The header of one value that a request has more than once."""
    names = [name for name, _ in headers]
    return next((single for single in SINGLE if names.count(single.lower().encode()) > 1), None)


async def _tell_stopping(send: Send, *, may_be_made: bool) -> None:
    message = f"The server stops, and the request was ended. {UNCERTAIN_HINT if may_be_made else 'Send it again.'}"
    extensions = {"code": Unavailable.code, **(UNCERTAIN if may_be_made else {})}
    body = orjson.dumps({"errors": [{"message": message, "extensions": extensions}]})
    headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body)), CLOSE]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
