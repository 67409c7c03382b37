"""The outermost layer of the application: it gives each request its id, and tells what became of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.drain import Drain
from graph.errors import UNCERTAIN
from graph.observed import GONE, KEY, REQUEST_ID, Observed
from store.errors import NOT_KNOWN, Unavailable

PROBES = frozenset({"/healthz", "/readyz"})
"""Asked every few seconds by machines, about the process and not of the data: never observed."""

CLOSE = (b"connection", b"close")

Observer = Callable[[Observed], None]


class Watch:
    """An ASGI application that shows each request to another to all observers, when it is over.

    `marking` is shown it earlier, when its answer begins.
    """

    def __init__(
        self, app: ASGIApp, observers: Sequence[Observer], drain: Drain, marking: Observer | None = None
    ) -> None:
        self._app = app
        self._observers = observers
        self._marking = marking
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        observed = scope[KEY] = Observed.of(scope)

        def send_with_id(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                observed.status = message["status"]
                if self._marking is not None:
                    self._marking(observed)
                message["headers"] = [*message["headers"], (REQUEST_ID, observed.id.encode())]
                if self._drain.draining:  # who comes again shall come to another server
                    message["headers"].append(CLOSE)
            return send(message)

        try:
            await self._app(scope, receive, send_with_id)
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


async def _tell_stopping(send: Send, *, may_be_made: bool) -> None:
    message = f"The server stops, and the request was ended. {NOT_KNOWN if may_be_made else 'Send it again.'}"
    extensions = {"code": Unavailable.code, **(UNCERTAIN if may_be_made else {})}
    body = orjson.dumps({"errors": [{"message": message, "extensions": extensions}]})
    headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body)), CLOSE]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
