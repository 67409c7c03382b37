"""Request observer: request ids, the concurrency limit and graceful shutdown."""

import asyncio

import httpx
import pytest

from graph.server.admission import ConcurrencyLimiter
from graph.server.lifecycle import GracefulShutdown
from tests.graph.small_app import SmallStore, small_app
from tests.serving import serving

SLOW = {"query": "{ slow }"}


class Seen(list):
    """An observer that records status and codes."""

    def __call__(self, observed):
        self.append((observed.status, list(observed.codes)))


def test_requests_above_the_limit_are_503_with_retry_after():
    seen, gate = Seen(), ConcurrencyLimiter(2)
    with serving(small_app(SmallStore(), limiter=gate, observers=[seen])) as url:
        statuses = asyncio.run(ask_at_once(url, 5))
        assert httpx.post(f"{url}/graphql", json={"query": "{ hello }"}).status_code == 200
    assert sorted(statuses) == [200, 200, 503, 503, 503]
    assert sorted(seen) == [(200, []), (200, []), (200, []), *[(503, ["OVERLOADED"])] * 3]
    assert gate.running == 0


async def ask_at_once(url, count):
    """The statuses of requests that are all sent before the first is answered."""
    async with httpx.AsyncClient(base_url=url) as client:
        answers = await asyncio.gather(*[client.post("/graphql", json=SLOW) for _ in range(count)])
    refused = [answer for answer in answers if answer.status_code == 503]
    assert all(answer.headers["retry-after"] == "1" for answer in refused)
    assert all(answer.json()["errors"][0]["extensions"] == {"code": "OVERLOADED"} for answer in refused)
    return [answer.status_code for answer in answers]


def test_probes_and_the_page_are_not_limited():
    with serving(small_app(SmallStore(), limiter=ConcurrencyLimiter(0))) as url:
        assert httpx.post(f"{url}/graphql", json={"query": "{ hello }"}).status_code == 503
        assert httpx.get(f"{url}/readyz").status_code == 200
        assert httpx.get(f"{url}/graphql", headers={"accept": "text/html"}).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/graphql?query={hello}", "/nothing"])
def test_a_draining_server_answers_and_closes_connections(path):
    drain = GracefulShutdown()
    with serving(small_app(SmallStore(), drain=drain)) as url:
        before = httpx.get(url + path)
        drain.draining = True
        after = httpx.get(url + path)
        ready = httpx.get(f"{url}/readyz")
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
