"""The end of a server without loss: it says that it is not ready, serves a little longer, and only then stops."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class GracefulShutdown:
    """Whether this process is about to end. `seconds` is how long a load balancer has to notice."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.draining = False

    @contextmanager
    def on_sigterm(self) -> Iterator[None]:
        """Delay the server's own answer to SIGTERM, which is there already; a second SIGTERM is taken at once.

        SIGINT stays as it is: at a terminal nobody waits for a load balancer.
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
