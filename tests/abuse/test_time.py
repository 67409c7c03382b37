"""Timeouts and disconnects: the work for a request ends with its time or its client."""

import asyncio
import gc
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import ClassVar
from urllib.parse import urlsplit
from weakref import WeakSet

import httpx
import orjson
import pytest

from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from graph.server.concurrency_limit import ConcurrencyLimiter
from resolvers.session.request import Request
from store.connect import open_store
from store.model.keys import node_key
from tests.graph.execution.test_response_cache import GROUND, SCHEMA, TYPES, plant
from tests.graph.small_app import SmallStore, small_app
from tests.proxy import Proxy
from tests.serving import serving
from tests.time_limits import Held, TimeLimits

PATH = '{ area(path: "a") { id } }'
BY_ID = '{ area(id: "%s") { key children { nodes { key } } } }'  # the node is read after its id


class Watched(Request):
    """A request that tells when it was stopped."""

    stopped = 0
    alive: ClassVar[WeakSet[Context]] = WeakSet()

    def stop(self) -> None:
        super().stop()
        Watched.stopped += 1


@asynccontextmanager
async def slow_engine(engine) -> AsyncIterator[SimpleNamespace]:
    """A store behind a proxy, with an area and its child, and the id of the area."""
    async with Proxy(engine.url) as proxy:
        address = engine.address(f"clade-{uuid.uuid4().hex}").replace(engine.url, proxy.url)
        async with open_store(address) as store:
            await store.create()
            await plant(store, "a", "a/b")
            answer = await execution(store).answer(GraphQLRequest(PATH), allow_mutations=False)
            node_id = orjson.loads(answer.content())["data"]["area"]["id"]
            yield SimpleNamespace(proxy=proxy, address=address, store=store, query=BY_ID % node_id)


def execution(store, *, seconds=10.0, planned=True, requests=None) -> Execution:
    def context() -> Context:
        request = Watched(store, {"ground": GROUND})
        if requests is not None:
            requests.append(request)
        context = Context(request, TYPES)
        Watched.alive.add(context)
        return context

    plans = PlanCache(core_schema(SCHEMA), TYPES, keep=10) if planned else None
    return Execution(SCHEMA, context, plans=plans, limits=DocumentLimits(request_seconds=seconds))


@pytest.mark.parametrize("planned", [True, False])
async def test_a_timeout_cancels_the_reads(engine, monkeypatch, planned):
    async with slow_engine(engine) as slow:
        limits, held = TimeLimits(monkeypatch), Held()
        slow.proxy.spoil("BatchGetItem", held)
        slow.proxy.calls.clear()
        requests = []
        execution_ = execution(slow.store, seconds=0.2, planned=planned, requests=requests)
        asked = asyncio.create_task(execution_.answer(GraphQLRequest(slow.query), allow_mutations=False))
        await held.arrived()
        await limits.run_out()
        answer = await asked
        assert answer.executed
        assert answer.body["data"] is None
        (error,) = answer.body["errors"]
        assert error["extensions"] == {"code": "TIMEOUT"}
        assert "0.2 seconds" in error["message"]
        assert "CLADE_REQUEST_SECONDS" in error["message"]
        held.may_go.set()
        await asyncio.sleep(0.1)  # the engine has answered by now, and nobody goes on from there
        assert slow.proxy.count("BatchGetItem") == 1
        assert slow.proxy.count("Query") == 0
        (request,) = requests
        with pytest.raises(asyncio.CancelledError):
            await request.state.node(node_key("ground", ("a",)))
        again = await execution(slow.store, planned=planned).answer(GraphQLRequest(slow.query), allow_mutations=False)
        assert "errors" not in again.body


async def test_a_disconnect_cancels_the_reads_and_leaves_nothing(engine):
    async with slow_engine(engine) as slow:
        held = Held()
        store = open_store(slow.address)  # which the server opens, in whose thread it lives
        Watched.alive.clear()
        with serving(small_app(store, execution=execution(store), limiter=ConcurrencyLimiter(1))) as url:
            slow.proxy.spoil("BatchGetItem", held)
            slow.proxy.calls.clear()
            before = Watched.stopped
            address = urlsplit(url)
            _, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(post(orjson.dumps({"query": slow.query})))
            await held.arrived()
            writer.close()
            await until(lambda: Watched.stopped == before + 1)
            held.may_go.set()
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                async with asyncio.timeout(60):
                    while (answer := await client.post("/graphql", json={"query": "{ __typename }"})).is_server_error:
                        pass  # the only place is free in a moment
                assert answer.json() == {"data": {"__typename": "Query"}}
            assert slow.proxy.count("BatchGetItem") == 1
            assert slow.proxy.count("Query") == 0
            await until(lambda: gc.collect() >= 0 and not Watched.alive)


def post(body: bytes, length: int | None = None) -> bytes:
    head = "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {length or len(body)}\r\n\r\n".encode() + body


async def until(holds) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  # another thread makes it so
            await asyncio.sleep(0.01)


def test_a_slow_body_is_408_and_closes_the_connection():
    with serving(small_app(SmallStore(), settings={"request_seconds": 0.2})) as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
            connection.sendall(post(b'{"query": ', length=1_000))
            told = b""
            while part := connection.recv(65_536):
                told += part
        assert told.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in told.lower()
        assert b'"The body was not received within 0.2 seconds."' in told
        assert httpx.post(f"{url}/graphql", json={"query": "{ hello }"}, timeout=60).status_code == 200
