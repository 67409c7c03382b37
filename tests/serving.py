"""Server of an application on a real socket, for tests over HTTP."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

START_SECONDS = 20
STOP_SECONDS = 20


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The URL of a server in a thread of this process, until the block ends."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="on", log_level="critical"))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        assert thread.is_alive(), "The server ended while it started."
        assert time.monotonic() < deadline, "The server does not start."
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(STOP_SECONDS)
        assert not thread.is_alive(), "The server does not end; which request does it wait for?"
