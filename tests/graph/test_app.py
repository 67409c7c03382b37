"""The application around the endpoint: security headers, health checks, lifespan and hosts."""

import asyncio
import socket
from urllib.parse import urlsplit

import httpx
import pytest

from graph.app import create_app
from graph.auth.loopback import is_loopback
from graph.errors import STORE_MESSAGE
from graph.server import health
from tests.graph.small_app import SmallStore, small_app
from tests.serving import serving


@pytest.fixture(scope="module")
def store():
    return SmallStore()


@pytest.fixture(scope="module")
def client(store):
    with serving(small_app(store)) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/nothing", 404),
        ("GET", "/graphql", 400),
        ("PUT", "/graphql", 405),
        ("GET", "/graphql?query={unwritable}", 500),
        ("POST", "/healthz", 405),
        ("GET", "/graphql/static/x/boot.js", 200),
        ("GET", "/explorer/static/x/main.js", 200),
    ],
)
def test_every_response_has_the_security_headers(client, method, path, status):
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_readiness_follows_the_store_and_liveness_does_not_use_it(client, store):
    assert (client.get("/readyz").status_code, client.get("/readyz").json()) == (200, {"ready": True})
    store.down = True
    answer, alive = client.get("/readyz"), client.get("/healthz")
    store.down = False
    assert (alive.status_code, alive.text) == (200, "ok")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "reason": STORE_MESSAGE}
    assert client.get("/readyz").status_code == 200


def test_a_store_that_does_not_respond_is_not_ready(client, store, monkeypatch):
    async def silent():
        await asyncio.Event().wait()

    monkeypatch.setattr(health, "READY_SECONDS", 0.05)
    monkeypatch.setattr(store, "health", silent)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "did not respond" in answer.json()["reason"]


def test_the_store_is_open_while_the_application_runs():
    store = SmallStore()
    with serving(small_app(store)):
        assert store.is_open
    assert not store.is_open


# -- hosts: on a loopback address others are rejected, except in production mode ---------------------------------------


def test_loopback_hosts():
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "127.9.9.9", "[::1]", "[::1]:8"):
        assert is_loopback(host), host


def test_other_hosts_are_not_loopback():
    for host in (
        "localhost:80@evil.example", "localhost:", "localhost:x", "localhost:8000:1", "localhost:8000 evil.example",
        "[::1]evil.example", "[::1", "::1]", "[127.0.0.1]x:1", "127.0.0.1:8000@evil.example:80",
        "evil.example@localhost", "localhost/", " localhost", "localhost:123456",
        "", "evil.example", "evil.example:8000", "127.0.0.1.evil.example",
        "10.0.0.1", "[::2]", "::", "localhost.evil",
    ):  # fmt: skip
        assert not is_loopback(host), host


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
