"""Timeouts and disconnects over HTTP: the work for a request ends with its time or its client."""

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import orjson

from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.server.sending import ConcurrencyLimiter
from resolvers.session.request import Request
from resolvers.sorting.values import folded
from store.connect import open_store
from store.engine import Store
from store.kinds.words import MAX_READ_CHARACTERS, fold
from tests.abuse.door import door
from tests.abuse.test_connections import post
from tests.graph.small_app import SmallStore, small_app
from tests.model import Ground, Model
from tests.proxy import Proxy
from tests.schemas import schema_of
from tests.serving import serving
from tests.systems.asking import PATIENT
from tests.time_limits import Held
from tests.waiting import until

MODEL = Model("ground", {("a",): "AREA", ("a", "b"): "AREA"})
QUERY = f'{{ area(id: "{MODEL.nodes["a",].id}") {{ key children {{ nodes {{ key }} }} }} }}'  # read after its id
ANSWER = {"data": {"area": {"key": "a", "children": {"nodes": [{"key": "b"}]}}}}


class Slow(NamedTuple):
    """A store behind a proxy that holds its first BatchGetItem."""

    proxy: Proxy
    held: Held
    address: str
    store: Store

    async def check_that_nothing_else_is_read(self) -> None:
        self.held.may_go.set()
        await until(lambda: self.proxy.running == 0)  # the engine has answered, and nobody goes on from there
        assert self.proxy.count("BatchGetItem") <= 1
        assert self.proxy.count("Query") == 0


@asynccontextmanager
async def slow_store(engine) -> AsyncIterator[Slow]:
    async with Proxy(engine.url) as proxy:
        address = engine.address(f"clade-{uuid.uuid4().hex}").replace(engine.url, proxy.url)
        async with open_store(address) as store:
            await store.create()
            await MODEL.plant(store)
            held = Held()
            proxy.spoil("BatchGetItem", held)
            proxy.calls.clear()
            yield Slow(proxy, held, address, store)


async def test_a_timeout_cancels_the_reads(engine):
    async with slow_store(engine) as slow:
        limits = replace(PATIENT, request_seconds=0.5)
        async with door(slow.store, Ground, limits=limits) as ask:
            body = (await ask(QUERY)).json()
        (error,) = body["errors"]
        assert (body["data"], error["extensions"]) == (None, {"code": "TIMEOUT"})
        assert "0.5 seconds" in error["message"]
        assert "CLADE_REQUEST_SECONDS" in error["message"]
        await slow.check_that_nothing_else_is_read()
        async with door(slow.store, Ground) as ask:
            assert (await ask(QUERY)).json() == ANSWER


async def test_a_disconnect_cancels_the_reads_and_frees_its_place(engine):
    async with slow_store(engine) as slow:
        store = open_store(slow.address)  # which the server opens, in whose thread it lives
        schema, types = schema_of(Ground)
        definitions = {"ground": Ground.definition()}
        execution = Execution(schema, types, lambda: Context(Request(store, definitions)), limits=PATIENT)
        with serving(small_app(store, execution=execution, limiter=ConcurrencyLimiter(1))) as url:
            address = urlsplit(url)
            _, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(post(orjson.dumps({"query": QUERY})))
            await slow.held.arrived()
            writer.close()
            async with httpx.AsyncClient(base_url=url) as client, asyncio.timeout(60):
                while (answer := await client.post("/graphql", json={"query": "{ __typename }"})).is_server_error:
                    pass  # the only place is free in a moment
            assert answer.json() == {"data": {"__typename": "Query"}}
            await slow.check_that_nothing_else_is_read()


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
        assert httpx.post(f"{url}/graphql", json={"query": "{ hello }"}).status_code == 200


def test_long_texts_are_folded_without_their_marks_and_for_a_search_only_their_beginning():
    """Normalizing a run of n combining marks takes n²."""
    marks = "\u0301\u0316" * 8_000  # of two classes in turns, which normalizing has to sort
    assert folded(f"Olá{marks}!") == folded("ola!")
    assert fold(f"Olá{marks}!") == fold("ola")
    assert fold("é" * 10_000) == "e" * MAX_READ_CHARACTERS
    assert fold("a " * 10_000).count("a") == MAX_READ_CHARACTERS // 2
