"""Request observer: request ids, the concurrency limit and graceful shutdown."""

import asyncio
import threading

import httpx
import pytest
import strawberry

from graph.execution.operation import Execution
from graph.server.concurrency_limit import ConcurrencyLimiter
from graph.server.graceful_shutdown import GracefulShutdown
from tests.graph.small_app import Context, SmallStore, small_app
from tests.serving import serving

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
    execution = Execution(strawberry.Schema(Held), Context)
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
    with serving(small_app(SmallStore(), limiter=ConcurrencyLimiter(0))) as url:
        assert httpx.post(f"{url}/graphql", json={"query": "{ hello }"}).status_code == 503
        assert httpx.get(f"{url}/readyz").status_code == 200
        assert httpx.get(f"{url}/graphql", headers={"accept": "text/html"}).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/graphql?query={hello}"])
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
