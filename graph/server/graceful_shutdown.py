"""Graceful shutdown: after SIGTERM the server is not ready, serves for some seconds more, and then stops."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class GracefulShutdown:
    """The state of the shutdown. `seconds` is the time in which a load balancer notices."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.draining = False

    @contextmanager
    def on_sigterm(self) -> Iterator[None]:
        """Delay the server's handler of SIGTERM, which must be set; a second SIGTERM is handled at once.

        SIGINT is not changed: on a terminal there is no load balancer.
        """
        stop = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is not threading.main_thread() or not callable(stop):
            yield
            return
        loop = asyncio.get_running_loop()

        def begin() -> None:
            delay = 0.0 if self.draining else self.seconds
            self.draining = True
            loop.call_later(delay, stop, signal.SIGTERM, None)

        loop.add_signal_handler(signal.SIGTERM, begin)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, stop)
