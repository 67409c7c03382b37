"""Fixtures of the deployment's tests."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pytest

from tests.ports import closed_port
from tests.serving import handling


@pytest.fixture
def unused_port() -> int:
    return closed_port()


class _Unavailable(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()


@pytest.fixture
def stopping_server() -> Iterator[int]:
    """The port of a server that answers 503."""
    with handling(_Unavailable) as url:
        port = urlsplit(url).port
        assert port is not None
        yield port
