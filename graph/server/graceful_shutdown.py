"""Graceful shutdown: after SIGTERM the server is not ready, serves for some seconds more, and then stops.

A server waits for its running requests before it stops, so event streams have to be ended first.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import Any


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
        with ExitStack() as handlers:
            for number in numbers:
                if callable(handler := signal.getsignal(number)):
                    handlers.callback(signal.signal, number, handler)
                    signal.signal(number, partial(self._before, loop, handler))
            yield

    def _before(
        self, loop: asyncio.AbstractEventLoop, handler: Callable[[int, FrameType | None], object], *received: Any
    ) -> None:
        loop.call_soon_threadsafe(self.stop)
        handler(*received)

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
