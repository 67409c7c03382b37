"""Admission of requests over HTTP: mutations wait for their turn, and what is not begun in time is not executed."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import orjson
import pytest
import uvicorn
from uvicorn.server import ServerState

from commands.protocol import HTTPProtocol
from graph.auth.authentication import Authenticator
from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.server.lifecycle import GracefulShutdown
from graph.server.sending import WAITING_BYTES_EACH, ConcurrencyLimiter, MutationGate
from resolvers.access.callers import ApiKeyAuthenticator
from resolvers.session.request import Request
from store.writing.writer import Writer
from tests.abuse.test_connections import GET, post
from tests.connection import Connection
from tests.graph.small_app import small_app
from tests.model import Ground, Model
from tests.schemas import schema_of
from tests.stores import CountingStore
from tests.systems.asking import PATIENT
from tests.waiting import until

QUERY = '{ area(path: "a") { children { nodes { key } } } }'
BODY = orjson.dumps({"query": QUERY})
OVERLOADED = (503, "OVERLOADED")


def creation(key: str) -> bytes:
    created = f'createGround(input: {{parent: {{path: "a"}}, key: "{key}", name: "{key}", attributes: {{area: {{}}}}}})'
    return post(orjson.dumps({"query": f"mutation {{ {created} {{ node {{ key }} }} }}"}))


class Served(NamedTuple):
    """A server of a store whose commits can be held."""

    port: int
    store: CountingStore
    gate: MutationGate
    limiter: ConcurrencyLimiter
    writer: Writer

    async def send(self, sent: bytes) -> Connection:
        """Send a request on a connection of its own."""
        connection = await Connection.to(f"http://127.0.0.1:{self.port}")
        connection.writer.write(sent)
        return connection

    async def mutate(self, key: str, *, running: int = 1, waiting: int = 0) -> Connection:
        """Send a creation; so many run and wait then."""
        sent = await self.send(creation(key))
        await until(lambda: self.limiter.running == running and self.gate.waiting_bytes >= waiting * WAITING_BYTES_EACH)
        return sent

    async def keys(self) -> list[str]:
        """The keys of the nodes, read by a query."""
        status, data = await told(await self.send(post(BODY)))
        assert status == 200
        return [node["key"] for node in data["area"]["children"]["nodes"]]


async def told(sent: Connection) -> tuple[int, Any]:
    """The status of a response, and the data or the code of the error."""
    answer = await sent.answer()
    assert (answer.headers.get("retry-after") == "1") == (answer.status == 503)
    found = answer.json
    return answer.status, found["errors"][0]["extensions"]["code"] if "errors" in found else found["data"]


@asynccontextmanager
async def served(store, gate: MutationGate) -> AsyncIterator[Served]:
    """By the protocol of `clade serve`, in this event loop."""
    await Model("ground", {("a",): "AREA"}).plant(store)
    counted, drain, limiter = CountingStore(store), GracefulShutdown(), ConcurrencyLimiter(100, gate)
    (schema, types), definitions, writer = schema_of(Ground), {"ground": Ground.definition()}, Writer(counted)
    execution = Execution(schema, types, lambda: Context(Request(store, definitions, writer=writer)), limits=PATIENT)
    anyone = Authenticator(ApiKeyAuthenticator(store), local_writes=True)
    app = small_app(store, execution=execution, drain=drain, authenticator=anyone, limiter=limiter)
    config, state = uvicorn.Config(app, http=HTTPProtocol, log_level="critical"), ServerState()
    config.load()
    loop = asyncio.get_running_loop()
    with drain.started():
        async with await loop.create_server(lambda: HTTPProtocol(config, state, {}), "127.0.0.1", 0) as server:
            yield Served(server.sockets[0].getsockname()[1], counted, gate, limiter, writer)
            await until(lambda: limiter.running == gate.waiting_bytes == 0)


@pytest.mark.both_stores
async def test_what_was_not_begun_when_its_client_leaves_is_not_executed(store) -> None:
    async with served(store, MutationGate(2)) as server:
        server.store.open.clear()
        committed = await server.mutate("committed")
        await server.store.begun.wait()
        in_group = await server.mutate("in-group", running=2)
        at_gate = await server.mutate("at-gate", running=2, waiting=1)
        stays = await server.mutate("stays", running=2, waiting=2)
        assert await server.keys() == []  # a read passes
        await until(lambda: server.writer.waiting == 1)
        at_gate.writer.close()
        await until(lambda: server.gate.shed["left"] == 1)
        in_group.writer.close()
        await until(lambda: server.gate.waiting_bytes == 0)
        server.store.open.set()
        assert [(await told(one))[0] for one in (committed, stays)] == [200, 200]
        assert await server.keys() == ["committed", "stays"]
        assert server.gate.shed == {"age": 0, "bytes": 0, "left": 1}


async def test_what_leaves_at_once_is_not_executed(store) -> None:
    async with served(store, MutationGate()) as server:
        for number in range(20):
            (await server.send(creation(f"left-{number}"))).writer.close()
        await until(lambda: server.gate.shed["left"] == 20)
        assert (await told(await server.mutate("stays", running=0)))[0] == 200
        assert await server.keys() == ["stays"]


async def test_mutations_that_waited_too_long_are_503_and_not_executed(store) -> None:
    late = 0.0
    async with served(store, MutationGate(1, clock=lambda: time.monotonic() + late)) as server:
        server.store.open.clear()
        first = await server.mutate("first")
        second = await server.mutate("second", waiting=1)
        await server.store.begun.wait()
        late = 60.0
        server.store.open.set()
        assert [(await told(first))[0], await told(second)] == [200, OVERLOADED]
        assert (await told(await server.send(creation("third"))))[0] == 200
        # What follows a response on its connection waits for its turn, and is as old by this clock.
        for waits in (post(BODY), GET + b"\r\n"):
            waited = await server.send(post(BODY) + waits)
            assert [await told(waited) for _ in range(2)][1] == OVERLOADED
        assert await server.keys() == ["first", "third"]
        assert server.gate.shed == {"age": 3, "bytes": 0, "left": 0}


async def test_a_mutation_is_503_before_there_is_a_place_for_it(store) -> None:
    async with served(store, MutationGate(0, max_seconds=0.05)) as server:
        assert await told(await server.send(creation("one"))) == OVERLOADED
        assert server.gate.shed["age"] == 1


async def test_mutations_above_the_bytes_that_may_wait_are_503_at_once(store) -> None:
    async with served(store, MutationGate(1, max_bytes=WAITING_BYTES_EACH * 2)) as server:
        server.store.open.clear()
        running = await server.mutate("running")
        waiting = await server.mutate("waiting", waiting=1)
        assert await told(await server.send(creation("above"))) == OVERLOADED
        assert await server.keys() == []
        server.store.open.set()
        assert [(await told(one))[0] for one in (running, waiting)] == [200, 200]
        assert await server.keys() == ["running", "waiting"]
        assert server.gate.shed == {"age": 0, "bytes": 1, "left": 0}
