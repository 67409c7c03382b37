"""Several processes that share one port."""

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
"""The garbage collector's thresholds: requests make much that is looked through and is in no cycle."""


class Workers(Multiprocess):
    """uvicorn's workers, of which none is left for new connections once they were told to stop.

    Each worker closes its own end of the listening socket, but the parent holds one too: who connected to that would
    wait for an answer that nobody is there to give.
    """

    def __init__(self, config: uvicorn.Config, sockets: Sequence[socket.socket], drain_seconds: float) -> None:
        super().__init__(config, list(sockets))
        self._drain_seconds = drain_seconds

    def terminate_all(self) -> None:
        super().terminate_all()
        threading.Timer(self._drain_seconds, self._refuse).start()

    def _refuse(self) -> None:
        for one in self.sockets:
            one.close()


def worker_app() -> Any:
    """The ASGI application of one worker, which stops when its parent is gone: killed, that could not tell it to."""
    from graph.app import create_app  # not in the parent: what is loaded there says where metrics are kept

    if parent := multiprocessing.parent_process():
        threading.Thread(target=_stop_after, args=(parent,), daemon=True).start()
    app = create_app()
    gc.freeze()  # all that was made so far stays
    gc.set_threshold(*COLLECT_AFTER)
    return app.asgi


def _stop_after(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
