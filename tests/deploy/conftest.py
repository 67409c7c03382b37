"""Fixtures of the deployment's tests."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.engines import free_port


@pytest.fixture
def unused_port() -> int:
    return free_port()


class _Unavailable(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stopping_server() -> Iterator[int]:
    """The port of a server that answers 503."""
    with HTTPServer(("127.0.0.1", 0), _Unavailable) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
