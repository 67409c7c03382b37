"""Servers in a thread of this process: of an application, and of a handler of the standard library."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tests.processes import STOP_SECONDS
from tests.waiting import eventually


@contextmanager
def serving(app: ASGIApp, **options: Any) -> Iterator[str]:
    """The URL of a server, until the block ends; `options` are uvicorn's."""
    with listening(app, **options) as server:
        yield "http://{}:{}".format(*address_of(server))


def address_of(server: uvicorn.Server) -> tuple[str, int]:
    host, port = server.servers[0].sockets[0].getsockname()
    return host, port


@contextmanager
def listening(app: ASGIApp, **options: Any) -> Iterator[uvicorn.Server]:
    """A server with its application's lifespan, until the block ends."""
    given = {"host": "127.0.0.1", "port": 0, "lifespan": "on", "log_level": "critical", **options}
    server = uvicorn.Server(uvicorn.Config(app, **given))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    eventually(lambda: server.started or not thread.is_alive())
    assert thread.is_alive(), "The server ended while it started."
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(STOP_SECONDS)
        assert not thread.is_alive(), "The server does not end; which request does it wait for?"


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
