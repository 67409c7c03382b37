"""The application around the endpoint: security headers, health checks and lifespan."""

import asyncio

import httpx
import pytest

from graph.errors import STORE_MESSAGE
from graph.server import lifecycle
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


def test_an_error_500_has_the_security_headers(client):
    answer = client.post("/graphql", json={"query": "mutation { unwritable }"})
    assert (answer.status_code, answer.headers["x-content-type-options"]) == (500, "nosniff")


def test_liveness_does_not_use_the_store(client, store):
    store.down = True
    answer = client.get("/healthz")
    store.down = False
    assert (answer.status_code, answer.text) == (200, "ok")


def test_readiness_follows_the_store(client, store):
    assert (client.get("/readyz").status_code, client.get("/readyz").json()) == (200, {"ready": True})
    store.down = True
    answer = client.get("/readyz")
    store.down = False
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "reason": STORE_MESSAGE}
    assert client.get("/readyz").status_code == 200


def test_a_store_that_does_not_respond_is_not_ready(client, store, monkeypatch):
    async def silent():
        await asyncio.Event().wait()

    monkeypatch.setattr(lifecycle, "READY_SECONDS", 0.05)
    monkeypatch.setattr(store, "health", silent)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "did not respond" in answer.json()["reason"]


def test_the_store_is_open_while_the_application_runs():
    store = SmallStore()
    with serving(small_app(store)):
        assert store.is_open
    assert not store.is_open
