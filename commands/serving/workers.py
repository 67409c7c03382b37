"""Worker processes that share one port."""

import gc
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Sequence
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

COLLECT_AFTER = (50_000, 20, 100)
"""Thresholds of the garbage collector: a request makes many objects and hardly any cycles."""


class Workers(Multiprocess):
    """uvicorn's supervisor of workers, which also closes the parent's listening socket when the workers stop.

    Each worker closes its own copy of the socket. The kernel would still accept connections for the parent's copy, and
    nobody would answer them.
    """

    def __init__(self, config: uvicorn.Config, sockets: Sequence[socket.socket], drain_seconds: float) -> None:
        super().__init__(config, list(sockets))
        self._drain_seconds = drain_seconds

    def terminate_all(self) -> None:
        super().terminate_all()
        threading.Timer(self._drain_seconds, self._close_sockets).start()

    def _close_sockets(self) -> None:
        for listener in self.sockets:
            listener.close()


def worker_app() -> Any:
    """The ASGI application of one worker; the worker stops when its parent ends, also when that was killed."""
    from graph.app import create_app  # in the worker only: importing the metrics fixes their directory

    if parent := multiprocessing.parent_process():
        threading.Thread(target=_stop_with, args=(parent,), daemon=True).start()
    app = create_app()
    gc.freeze()  # objects of the start live until the end
    gc.set_threshold(*COLLECT_AFTER)
    return app.asgi


def _stop_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
