"""Start and graceful shutdown, and the health checks of load balancers: liveness `/healthz`, readiness `/readyz`.

After SIGTERM the server is not ready, serves for some seconds more, and then stops. A server waits for its running
requests before it stops, so event streams have to be ended first.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from graph.errors import REPAIR_HINT, STORE_MESSAGE, log_unreadable
from graph.hierarchies.registry import undefined_text
from resolvers.roots import undefined_hierarchies
from resolvers.search.finder import missing_items
from store.engine import ReadUsage, Store
from store.errors import CladeError, Unavailable
from store.model.hierarchy import Hierarchy

READY_SECONDS = 2.0
"""Maximum time of a store's health check."""

NOT_STARTED = (
    "The application runs without its lifespan, so its store is not open; enter `lifespan` of the application "
    "in the lifespan of its host, as docs/mounting.md shows."
)

logger = logging.getLogger("clade")


class GracefulShutdown:
    """The state of the shutdown, and its two lines in the log. `seconds` is the time in which a load balancer notices.

    `running` is the number of requests that are being answered, `cancelled` of those that were given up.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.has_started = False
        """Whether the lifespan of the application runs; without it the store is not open."""
        self.draining = False
        self.running = self.cancelled = 0
        self.on_stop: list[Callable[[], None]] = []
        """Called when the server stops, before it waits for running requests."""

    @contextmanager
    def started(self) -> Iterator[None]:
        """The time in which requests can be served."""
        self.has_started = True
        try:
            yield
        finally:
            self.has_started = False

    def begin(self, seconds: float) -> None:
        """Be no longer ready; `stop` follows after `seconds`."""
        if not self.draining:
            self.draining = True
            log("The server is stopping.", drain_seconds=seconds, running=self.running)

    def stop(self) -> None:
        """End what would run for ever."""
        self.begin(0.0)
        for end in self.on_stop:
            end()

    @contextmanager
    def on_signals(self, *, delay: bool) -> Iterator[None]:
        """Call `stop` at SIGINT and SIGTERM, before the handlers that the server has set for them.

        With `delay`, SIGTERM is handled only after `seconds`, a second one at once. SIGINT is not delayed: on a
        terminal there is no load balancer.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()

        def stop_and_call(handler: Callable[..., object], *received: Any) -> None:
            loop.call_soon_threadsafe(self.stop)
            handler(*received)

        def end(handler: Callable[..., object]) -> None:
            self.stop()
            handler(signal.SIGTERM, None)

        def begin(handler: Callable[..., object]) -> None:
            seconds = 0.0 if self.draining else self.seconds
            self.begin(seconds)
            loop.call_later(seconds, end, handler)

        with ExitStack() as handlers:
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(handler := signal.getsignal(number)):
                    handlers.callback(signal.signal, number, handler)
                    if delay and number == signal.SIGTERM:
                        loop.add_signal_handler(number, begin, handler)
                        handlers.callback(loop.remove_signal_handler, number)
                    else:
                        signal.signal(number, partial(stop_and_call, handler))
            yield


def log(message: str, **fields: float) -> None:
    """Log a line of this process: each worker has its own."""
    logger.info(message, extra={"fields": {"process": os.getpid(), **fields}})


async def log_missing_items(store: Store, hierarchies: Iterable[Hierarchy]) -> None:
    """Log at the start which searches are an error until their items are written; all else is served, so the server is
    ready. A store that cannot be read is told by the first requests.
    """
    with suppress(CladeError):
        for text in await missing_items(store, hierarchies):
            logger.warning("%s %s", text, REPAIR_HINT)


async def log_undefined(store: Store, hierarchies: Container[str]) -> None:
    """Log at the start which hierarchies are stored and not served: after a change of a name all seem to be empty."""
    with suppress(CladeError):
        for name in await undefined_hierarchies(store, hierarchies, ReadUsage()):
            logger.warning(undefined_text(name))


async def alive(request: Request) -> Response:
    """200 as long as the process serves requests; without I/O, so an unavailable store restarts no server."""
    return PlainTextResponse("ok")


async def ready(store: Store, drain: GracefulShutdown, request: Request) -> Response:
    """200 if the store can be read and the server is not stopping, else 503 with the reason."""
    reason = None
    if not drain.has_started:
        reason = NOT_STARTED
    elif drain.draining:
        reason = "The server is stopping."
    else:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await store.health()
        except Unavailable as error:
            log_unreadable(error)
            reason = STORE_MESSAGE
        except TimeoutError:
            reason = f"The store did not respond within {READY_SECONDS:g} seconds."
    return JSONResponse({"ready": False, "reason": reason}, 503) if reason else JSONResponse({"ready": True})
