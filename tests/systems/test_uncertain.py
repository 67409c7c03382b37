"""Clients are told whether a mutation was made, was not made, or may have been made, and it is true each time."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from aiohttp import web

from graph.app import create_app
from store.concurrency import RetryPolicy
from store.connect import open_store
from store.engine import REQUEST_PATIENCE, ReadUsage, Store
from store.model.keys import node_key
from store.model.paths import parse_path
from tests.engines import Engine
from tests.model import Ground
from tests.proxy import Call, Fault, Forward, Proxy, cancelled, dropped, refused, status, throttled
from tests.serving import serving
from tests.systems.asking import plant
from tests.time_limits import Held, TimeLimits
from tests.user_errors import take_user_errors, with_user_errors
from tests.waiting import until

WRITES, READS, ALL = "TransactWriteItems", "BatchGetItem", 1000
CREATE = """mutation($key: String!, $once: String, $parent: GroundBy) {
  createGround(input: {key: $key, name: "new", parent: $parent, attributes: {area: {}}},
    idempotencyKey: $once) {
    node { path revision parent { name } }
  }
}"""
ASKED = with_user_errors(CREATE)
FAULTS: dict[str, Fault] = {
    "503": status(503),
    "502 of a balancer": status(502),
    "InternalServerError": refused("InternalServerError", 500),
    "connection lost": dropped,
    "throttled": throttled,
    "credentials expired": refused("ExpiredTokenException"),
    "in progress": refused("TransactionInProgressException"),
    "met another": cancelled("TransactionConflict"),
}
NOT_MADE = {"throttled": "UNAVAILABLE", "credentials expired": "UNAVAILABLE", "met another": "CONFLICT"}
"""Faults that prove of the attempt that meets them that nothing came of it, and the code that tells so."""
SAID_NO = NOT_MADE.keys()


@dataclass
class Scene:
    """A server behind HTTP, whose store is behind the proxy, looked at past it."""

    client: httpx.AsyncClient
    proxy: Proxy
    past: Store

    async def create(self, key: str, once: str | None = None, parent: str | None = None) -> dict[str, Any]:
        variables = {"key": key, "once": once, "parent": parent and {"path": parent}}
        body: dict[str, Any] = (
            await self.client.post("/graphql", json={"query": ASKED, "variables": variables})
        ).json()
        if faults := take_user_errors(body.get("data")):
            body["errors"] = [{"extensions": {"code": one["code"]}, "message": one["message"]} for one in faults]
        return body

    async def is_made(self, key: str) -> bool:
        (found,) = await self.past.get([node_key("ground", parse_path(key))], ReadUsage(), strong=True)
        return found is not None


@contextlib.asynccontextmanager
async def served(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    for name, value in {"STORE": url, "HIERARCHIES": "tests.model", "WRITES": "on"}.items():
        monkeypatch.setenv(f"CLADE_{name}", value)
    server = serving(create_app())
    base = await asyncio.to_thread(server.__enter__)
    try:
        async with httpx.AsyncClient(base_url=base, timeout=60) as client:
            yield client
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> TimeLimits:
    return TimeLimits(monkeypatch)


@pytest.fixture
async def scene(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr("graph.app.REQUEST_PATIENCE", replace(REQUEST_PATIENCE, read_seconds=60.0, attempts=2))
    monkeypatch.setattr("store.dynamodb.client.RETRIES", RetryPolicy(0.0, 0.0))
    monkeypatch.setattr("store.dynamodb.transaction.RETRIES", RetryPolicy(0.0005, 0.01, attempts=3))
    monkeypatch.setattr("store.writing.writer.RETRIES", RetryPolicy(0.01, 0.01, attempts=2))
    past = engine.address(f"uncertain-{uuid.uuid4().hex}")
    async with Proxy(engine.url) as proxy, open_store(past) as store:
        await store.create()
        async with served(past.replace(engine.url, proxy.url), monkeypatch) as client:
            yield Scene(client, proxy, store)


def made(then: Fault) -> Fault:
    """The engine does as it is told, and the fault hides its answer."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        await forward(call.body)
        return await then(call, forward)

    return fault


CASES = [
    (name, hidden, reads, has_key)
    for name in FAULTS
    for hidden in (True, False)
    for reads, has_key in ((True, False), (False, False), (False, True))
]


async def test_what_a_client_is_told_of_a_mutation_is_true_and_with_its_key_it_is_made_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = []
    for number, (name, hidden, reads, has_key) in enumerate(CASES):
        key, fault = f"k{number}", FAULTS[name]
        first = made(dropped if name in SAID_NO else fault) if hidden else fault
        scene.proxy.spoil(WRITES, before(first, scene.proxy, READS, 0 if reads else ALL), *[fault] * ALL)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "clade"):
            body = await scene.create(key, key if has_key else None)
        assert await scene.is_made(key) == hidden
        told, logged = told_by(body), any("unknown whether" in line for line in caplog.messages)
        uncertain = hidden or name not in SAID_NO
        expected = "made" if hidden and reads else "UNAVAILABLE?" if uncertain else NOT_MADE[name]
        if expected == "CONFLICT" and not reads:
            expected = "UNAVAILABLE"  # it is drafted anew, which takes reads
        if (told, logged) != (expected, expected.endswith("?")):
            wrong.append((name, "made" if hidden else "not made", reads, has_key, told, logged))
        scene.proxy.mend()
        if has_key:
            body = await scene.create(key, key)
            assert body == {"data": {"createGround": {"node": {"path": key, "revision": 1, "parent": None}}}}, name
        else:
            assert told_by(await scene.create(f"{key}-")) == "made"  # which also closes the circuit
    assert wrong == []


def before(fault: Fault, proxy: Proxy, operation: str, times: int) -> Fault:
    """A fault, from which on another operation fails too."""

    async def spoil(call: Call, forward: Forward) -> web.Response:
        proxy.spoil(operation, *[status(503)] * times)
        return await fault(call, forward)

    return spoil


def told_by(body: dict[str, Any]) -> str:
    """What an answer says: `made`, or the code of its error, with `?` where that is uncertain."""
    if "errors" not in body:
        assert body["data"]["createGround"]["node"]["revision"] == 1
        return "made"
    (error,) = body["errors"]
    assert (body["data"] or {"createGround": {}})["createGround"].get("node") is None
    uncertain = error["extensions"].get("uncertain", False)
    assert not uncertain or "idempotencyKey" in error["message"]
    assert "uncertain-" not in error["message"]  # the name of the table
    return error["extensions"]["code"] + "?" * uncertain


async def test_a_value_that_the_engine_rejects_is_the_clients_mistake(scene: Scene) -> None:
    scene.proxy.spoil(WRITES, cancelled("ValidationError", "None", "None"))
    (error,) = (await scene.create("a"))["errors"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT"}
    assert not await scene.is_made("a")


async def test_an_error_below_the_mutation_is_of_reading_what_was_made(scene: Scene) -> None:
    await scene.create("a")

    async def then_reads_fail(call: Call, forward: Forward) -> web.Response:
        scene.proxy.spoil(READS, *[status(503)] * ALL)
        return await forward(call.body)

    scene.proxy.spoil(WRITES, then_reads_fail)
    body = await scene.create("b", parent="a")
    assert await scene.is_made("a/b")
    (error,) = body["errors"]
    assert error["path"] == ["createGround", "node", "parent"]
    assert error["extensions"] == {"code": "UNAVAILABLE"}


async def test_a_mutation_that_is_ended_may_have_been_made(scene: Scene, limits: TimeLimits) -> None:
    held = Held()
    scene.proxy.spoil(WRITES, held)
    first = asyncio.create_task(scene.create("a", "once"))
    await held.arrived()
    await limits.run_out()
    (error,) = (await first)["errors"]
    assert error["extensions"] == {"code": "TIMEOUT", "uncertain": True}
    assert "idempotencyKey" in error["message"]
    again = asyncio.create_task(scene.create("a", "once"))  # it waits for the first
    held.may_go.set()
    assert (await again)["data"]["createGround"]["node"]["revision"] == 1


# -- outages -----------------------------------------------------------------------------------------------------------

QUERY = {"query": '{ __typename area(path: "a") { key children { nodes { key } } } }'}


async def test_an_outage_is_told_and_ends_without_a_restart(
    lasting_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lasting_engine as engine:
        url = engine.address("clade")
        async with open_store(url) as store:
            await store.create()
            await plant(store, Ground, [(("a",), "AREA"), (("a", "b"), "AREA")])
        async with served(url, monkeypatch) as client:
            assert (await client.get("/readyz")).status_code == 200
            fine = (await client.post("/graphql", json=QUERY)).json()
            assert fine["data"]["area"]["children"]["nodes"] == [{"key": "b"}]

            engine.stop()
            assert (await client.get("/healthz")).status_code == 200
            ready = await client.get("/readyz")
            assert (ready.status_code, "127.0.0.1" in ready.text) == (503, False)
            broken = (await client.post("/graphql", json=QUERY)).json()
            assert broken["data"] == {"__typename": "Query", "area": None}
            assert [error["extensions"]["code"] for error in broken["errors"]] == ["UNAVAILABLE"]
            assert "127.0.0.1" not in broken["errors"][0]["message"]

            engine.start()

            async def is_ready() -> bool:
                return (await client.get("/readyz")).status_code == 200

            await until(is_ready)
            assert (await client.post("/graphql", json=QUERY)).json() == fine


async def test_a_table_that_is_not_there_is_told_too(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(engine.address("missing"), monkeypatch) as client:
        assert (await client.get("/readyz")).status_code == 503
        body = (await client.post("/graphql", json=QUERY)).json()
        assert [error["extensions"]["code"] for error in body["errors"]] == ["UNAVAILABLE"]
        assert "missing" not in body["errors"][0]["message"]


async def test_a_dry_run_that_is_ended_was_not_made(scene: Scene, limits: TimeLimits) -> None:
    held = Held()
    scene.proxy.spoil(READS, held)
    given = '{key: "a", name: "a", attributes: {area: {}}}'
    asked = f"mutation {{ createGround(input: {given}, dryRun: true) {{ plan {{ nodes }} }} }}"
    first = asyncio.create_task(scene.client.post("/graphql", json={"query": asked}))
    await held.arrived()
    await limits.run_out()
    (error,) = (await first).json()["errors"]
    assert error["extensions"] == {"code": "TIMEOUT"}
    held.may_go.set()
