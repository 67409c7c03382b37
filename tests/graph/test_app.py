"""The application around the endpoint: security headers, health checks, lifespan, hosts, limits and shutdown."""

import asyncio
import socket
import threading
from urllib.parse import urlsplit

import httpx
import pytest
import strawberry

from graph.app import create_app
from graph.errors import STORE_MESSAGE
from graph.execution.operation import Execution
from graph.hosts import is_loopback
from graph.server.lifecycle import GracefulShutdown
from graph.server.sending import ConcurrencyLimiter
from tests.graph.small_app import Context, SmallStore, asking, small_app
from tests.serving import serving


@pytest.fixture(scope="module")
def store():
    return SmallStore()


@pytest.fixture(scope="module")
def client(store):
    with asking(store) as client:
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

    monkeypatch.setattr("graph.server.lifecycle.READY_SECONDS", 0.05)
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
                status = b"400" if hosts else b"403"  # two, or one that is invalid
                assert connection.recv(65_536).startswith(b"HTTP/1.1 " + status)


# -- what observes requests: the concurrency limit, and graceful shutdown ----------------------------------------------

SLOW = {"query": "{ slow }"}
may_go = threading.Event()


@strawberry.type
class Held:
    """Fields of which one waits until the test lets it go."""

    @strawberry.field
    async def slow(self) -> str:
        await asyncio.to_thread(may_go.wait, 60)
        return "at last"

    @strawberry.field
    def hello(self) -> str:
        return "Hello world!"


class Seen(list):
    """An observer that records status and codes."""

    def __call__(self, observed):
        self.append((observed.status, list(observed.codes)))


def test_requests_above_the_limit_are_503_with_retry_after():
    seen, gate = Seen(), ConcurrencyLimiter(2)
    execution = Execution(strawberry.Schema(Held), {}, Context)
    with serving(small_app(SmallStore(), execution=execution, limiter=gate, observers=[seen])) as url:
        statuses = asyncio.run(ask_at_once(url, 5, refusals=3))
        assert httpx.post(f"{url}/graphql", json={"query": "{ hello }"}).status_code == 200
    assert sorted(statuses) == [200, 200, 503, 503, 503]
    assert sorted(seen) == [(200, []), (200, []), (200, []), *[(503, ["OVERLOADED"])] * 3]
    assert gate.running == 0


async def ask_at_once(url, count, refusals):
    """The statuses of requests of which none is answered but by these refusals until those have come."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        coming = asyncio.as_completed([client.post("/graphql", json=SLOW) for _ in range(count)])
        refused = [await next(coming) for _ in range(refusals)]
        may_go.set()
        answers = [*refused, *[await one for one in coming]]
    assert all(answer.headers["retry-after"] == "1" for answer in refused)
    assert all(answer.json()["errors"][0]["extensions"] == {"code": "OVERLOADED"} for answer in refused)
    return [answer.status_code for answer in answers]


def test_probes_and_the_page_are_not_limited():
    with asking(limiter=ConcurrencyLimiter(0)) as client:
        assert client.post("/graphql", json={"query": "{ hello }"}).status_code == 503
        assert client.get("/readyz").status_code == 200
        assert client.get("/graphql", headers={"accept": "text/html"}).status_code == 200


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
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (sent[0]["status"], (b"connection", b"close") in sent[0]["headers"]) == (503, True)
    assert b"UNAVAILABLE" in sent[1]["body"]
    assert seen == [(503, ["UNAVAILABLE"])]
