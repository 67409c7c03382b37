"""The application around the endpoint: security headers, health checks, lifespan, hosts, limits and shutdown."""

import asyncio

import httpx
import pytest

from graph.app import create_app
from graph.errors import STORE_MESSAGE
from graph.hosts import is_loopback
from graph.server.lifecycle import GracefulShutdown
from graph.server.sending import ConcurrencyLimiter
from graph.settings import Settings
from tests.graph.small_app import BEGUN, SmallStore, asking, small_app
from tests.serving import serving


@pytest.fixture(scope="module")
def store():
    return SmallStore()


@pytest.fixture(scope="module")
def client(store):
    with asking(store) as client:
        yield client


SECURE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


def test_every_response_has_the_security_headers(client):
    for method, path, status in (
        ("GET", "/healthz", 200),
        ("GET", "/nothing", 404),
        ("GET", "/graphql", 400),
        ("PUT", "/graphql", 405),
        ("GET", "/graphql?query={unwritable}", 500),
        ("POST", "/healthz", 405),
        ("GET", "/graphql/static/x/boot.js", 200),
        ("GET", "/explorer/static/x/main.js", 200),
    ):
        answer = client.request(method, path)
        assert answer.status_code == status
        assert {name: answer.headers.get(name) for name in SECURE} == SECURE, path


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

    monkeypatch.setattr("graph.server.lifecycle.READY_SECONDS", 0.05)
    monkeypatch.setattr(store, "health", silent)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "did not respond" in answer.json()["reason"]


# -- hosts: on a loopback address others are rejected, except in production mode ---------------------------------------


def test_the_names_of_this_machine_alone_are_loopback():
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "127.9.9.9", "[::1]", "[::1]:8"):
        assert is_loopback(host), host
    for host in (
        "localhost:80@evil.example", "localhost:", "localhost:x", "localhost:8000:1", "localhost:8000 evil.example",
        "[::1]evil.example", "[::1", "::1]", "[127.0.0.1]x:1", "127.0.0.1:8000@evil.example:80",
        "evil.example@localhost", "localhost/", " localhost", "localhost:123456",
        "", "evil.example", "evil.example:8000", "127.0.0.1.evil.example",
        "10.0.0.1", "[::2]", "::", "localhost.evil",
    ):  # fmt: skip
        assert not is_loopback(host), host


@pytest.mark.parametrize(("settings", "status"), [({"reads": "granted"}, 403), ({"production": True}, 200)])
def test_every_server_checks_the_host_except_in_production_mode(demo_store, settings, status):
    with serving(create_app(Settings(store=demo_store, **settings))) as url:
        question = {"query": "{ __typename }"}
        assert httpx.post(f"{url}/graphql", json=question).status_code == 200
        answer = httpx.post(f"{url}/graphql", json=question, headers={"host": "evil.example"})
        assert answer.status_code == status
        if status == 403:
            assert answer.json()["errors"][0]["extensions"] == {"code": "FORBIDDEN"}
            assert answer.headers["x-content-type-options"] == "nosniff"


# -- what observes requests: the concurrency limit, and graceful shutdown ----------------------------------------------


class Seen(list):
    """An observer that records status and codes."""

    def __call__(self, observed):
        self.append((observed.status, list(observed.codes)))


def test_requests_above_the_limit_are_503_with_retry_after_but_for_probes_and_the_page():
    """tests/abuse/test_time.py: the place of a request is free when it ends."""
    seen = Seen()
    with asking(limiter=ConcurrencyLimiter(0), observers=[seen]) as client:
        answer = client.post("/graphql", json={"query": "{ hello }"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["errors"][0]["extensions"] == {"code": "OVERLOADED"}
        assert client.get("/readyz").status_code == 200
        assert client.get("/graphql", headers={"accept": "text/html"}).status_code == 200
    assert seen[0] == (503, ["OVERLOADED"])


@pytest.mark.parametrize("path", ["/healthz", "/graphql?query={hello}"])
def test_a_draining_server_answers_and_closes_connections(path):
    drain = GracefulShutdown()
    with asking(drain=drain) as client:
        before = client.get(path)
        drain.draining = True
        after, ready = client.get(path), client.get("/readyz")
    assert (before.status_code, before.text) == (after.status_code, after.text)
    assert ("connection" in before.headers, after.headers["connection"]) == (False, "close")
    assert (ready.status_code, ready.json()) == (503, {"ready": False, "reason": "The server is stopping."})


async def test_a_cancelled_request_is_503_and_is_observed():
    seen, sent = Seen(), []
    drain = GracefulShutdown()
    app = small_app(SmallStore(), observers=[seen], drain=drain)
    BEGUN.clear()
    scope = {
        "type": "http", "method": "GET", "path": "/graphql", "raw_path": b"/graphql",
        "headers": [(b"host", b"localhost")],
        "query_string": b"query={slow}", "root_path": "", "scheme": "http", "server": ("127.0.0.1", 80),
    }  # fmt: skip

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    with drain.started():
        task = asyncio.create_task(app(scope, receive, send))
        while not BEGUN:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (sent[0]["status"], (b"connection", b"close") in sent[0]["headers"]) == (503, True)
    assert b"UNAVAILABLE" in sent[1]["body"]
    assert seen == [(503, ["UNAVAILABLE"])]
