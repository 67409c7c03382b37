"""Start and graceful shutdown, and the health checks of load balancers: liveness `/healthz`, readiness `/readyz`.

After SIGTERM the server is not ready, serves for some seconds more, and then stops. A server waits for its running
requests before it stops, so event streams have to be ended first.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from graph.errors import STORE_MESSAGE, log_unavailable
from store.engine import Store
from store.errors import Unavailable

READY_SECONDS = 2.0
"""Maximum time of a store's health check."""

NOT_STARTED = (
    "The application runs without its lifespan, so its store is not open; enter `lifespan` of the application "
    "in the lifespan of its host, as docs/mounting.md shows."
)


class GracefulShutdown:
    """The state of the shutdown. `seconds` is the time in which a load balancer notices."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.has_started = False
        """Whether the lifespan of the application runs; without it the store is not open."""
        self.draining = False
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

    def stop(self) -> None:
        """End what would run for ever."""
        self.draining = True
        for end in self.on_stop:
            end()

    @contextmanager
    def on_signals(self, *numbers: signal.Signals) -> Iterator[None]:
        """Call `stop` at these signals, before the handlers that the server has set for them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()

        def stop_and_call(handler: Callable[..., object], *received: Any) -> None:
            loop.call_soon_threadsafe(self.stop)
            handler(*received)

        with ExitStack() as handlers:
            for number in numbers:
                if callable(handler := signal.getsignal(number)):
                    handlers.callback(signal.signal, number, handler)
                    signal.signal(number, partial(stop_and_call, handler))
            yield

    @contextmanager
    def on_sigterm(self) -> Iterator[None]:
        """Delay the server's handler of SIGTERM, which must be set; a second SIGTERM is handled at once.

        SIGINT is not delayed: on a terminal there is no load balancer.
        """
        stop = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is not threading.main_thread() or not callable(stop):
            yield
            return
        loop = asyncio.get_running_loop()

        def end() -> None:
            self.stop()
            stop(signal.SIGTERM, None)

        def begin() -> None:
            delay = 0.0 if self.draining else self.seconds
            self.draining = True
            loop.call_later(delay, end)

        loop.add_signal_handler(signal.SIGTERM, begin)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, stop)


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
            log_unavailable(error)
            reason = STORE_MESSAGE
        except TimeoutError:
            reason = f"The store did not respond within {READY_SECONDS:g} seconds."
    return JSONResponse({"ready": False, "reason": reason}, 503) if reason else JSONResponse({"ready": True})
