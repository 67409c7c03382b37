"""Host check: on a loopback address other hosts are rejected, except in production mode."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from graph.app import create_app
from graph.auth.loopback import is_loopback
from tests.serving import serving


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "127.9.9.9", "[::1]", "[::1]:8"]
)
def test_loopback_hosts(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "localhost:80@evil.example", "localhost:", "localhost:x", "localhost:8000:1", "localhost:8000 evil.example",
        "[::1]evil.example", "[::1", "::1]", "[127.0.0.1]x:1", "127.0.0.1:8000@evil.example:80",
        "evil.example@localhost", "localhost/", " localhost", "localhost:123456",
        "", "evil.example", "evil.example:8000", "127.0.0.1.evil.example",
        "10.0.0.1", "[::2]", "::", "localhost.evil",
    ],
)  # fmt: skip
def test_other_hosts_are_not_loopback(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("settings", "status"),
    [({"WRITES": "on"}, 403), ({"WRITES": "off"}, 403), ({"WRITES": "granted"}, 403), ({"READS": "granted"}, 403),
     ({"PRODUCTION": "1"}, 200)],
)  # fmt: skip
def test_every_server_checks_the_host_except_in_production_mode(demo_store, monkeypatch, settings, status):
    monkeypatch.setenv("CLADE_STORE", demo_store)
    for name, value in settings.items():
        monkeypatch.setenv(f"CLADE_{name}", value)
    with serving(create_app()) as url:
        question = {"query": "{ __typename }"}
        assert httpx.post(f"{url}/graphql", json=question).status_code == 200
        answer = httpx.post(f"{url}/graphql", json=question, headers={"host": "evil.example"})
        assert answer.status_code == status
        if status == 403:
            assert answer.json()["errors"][0]["extensions"] == {"code": "FORBIDDEN"}
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_second_host_header_is_rejected(demo_store, monkeypatch):
    monkeypatch.setenv("CLADE_STORE", demo_store)
    with serving(create_app()) as url:
        address = urlsplit(url)
        for hosts in (["evil.example", "localhost"], ["localhost", "evil.example"], ["localhost:80@evil.example"], []):
            with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
                named = "".join(f"host: {one}\r\n" for one in hosts)
                connection.sendall(f"GET /healthz HTTP/1.0\r\n{named}\r\n".encode())
                status = b"400" if len(hosts) > 1 else b"403"
                assert connection.recv(65_536).startswith(b"HTTP/1.1 " + status)
