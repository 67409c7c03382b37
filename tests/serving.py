"""Servers on a real socket, for tests over HTTP: of an application, and of a handler of the standard library."""

import functools
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

START_SECONDS = 60
STOP_SECONDS = 60


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


def await_ready(url: str, process: subprocess.Popen | None = None, seconds: float = START_SECONDS) -> None:
    """Wait until a server says that it is ready, or its process has ended; before that it may say that it is not."""
    end = time.monotonic() + seconds
    while process is None or process.poll() is None:
        with suppress(httpx.TransportError):
            if httpx.get(url).status_code == 200:
                return
        assert time.monotonic() < end, f"There is nothing ready at {url}."
        time.sleep(0.05)


@contextmanager
def handling(handler: type[BaseHTTPRequestHandler], **options: Any) -> Iterator[str]:
    """The URL of a server without a log, whose requests this class handles, until the block ends.

    Its threads end with the process: a handler may still wait when the block ends. `options` are passed to the class.
    """
    quiet = type("Quiet", (handler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, **options)) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
