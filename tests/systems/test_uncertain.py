"""Clients are told whether a mutation was made, was not made, or may have been made, and it is true each time."""

import asyncio
import contextlib
import logging
import sqlite3
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from graph.app import create_app
from store.connect import open_store
from store.engine.protocol import REQUEST_PATIENCE, Store
from store.engine.usage import ReadUsage
from store.model.keys import node_key
from store.model.paths import parse_path
from store.retry import RetryPolicy
from tests.engines import Engine
from tests.proxy import Call, Fault, Forward, Proxy, cancelled, delayed, dropped, refused, status, throttled
from tests.serving import serving

WRITES, READS, ALL = "TransactWriteItems", "BatchGetItem", 1000
CREATE = """mutation($key: String!, $once: String, $parent: GroundBy) {
  createGround(input: {key: $key, name: "new", parent: $parent, attributes: {area: {}}}, idempotencyKey: $once) {
    node { path revision parent { name } }
    userErrors { code message }
  }
}"""
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
        answer = await self.client.post("/graphql", json={"query": CREATE, "variables": variables})
        body: dict[str, Any] = answer.json()
        return body

    async def is_made(self, key: str) -> bool:
        (found,) = await self.past.get([node_key("ground", parse_path(key))], ReadUsage(), strong=True)
        return found is not None


@contextlib.asynccontextmanager
async def served(url: str, monkeypatch: pytest.MonkeyPatch, **settings: str) -> AsyncIterator[httpx.AsyncClient]:
    for name, value in {"STORE": url, "HIERARCHIES": "tests.model", "WRITES": "on", **settings}.items():
        monkeypatch.setenv(f"CLADE_{name}", value)
    server = serving(create_app())
    base = await asyncio.to_thread(server.__enter__)
    try:
        async with httpx.AsyncClient(base_url=base, timeout=60) as client:
            yield client
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)


@pytest.fixture
async def scene(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr("graph.app.REQUEST_PATIENCE", replace(REQUEST_PATIENCE, attempts=2))  # whose delays are long
    monkeypatch.setattr("store.dynamodb.retries.BUSY", RetryPolicy(0.0005, 0.01, attempts=3))
    monkeypatch.setattr("store.writer.group_commit.RETRIES", RetryPolicy(0.01, 0.01, attempts=2))
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


async def test_what_a_client_is_told_of_a_mutation_is_true(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
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
        payload = body["data"]["createGround"]
        if payload["userErrors"]:
            (fault,) = payload["userErrors"]
            assert payload["node"] is None
            return fault["code"]
        assert payload["node"]["revision"] == 1
        return "made"
    (error,) = body["errors"]
    assert body["data"] is None
    uncertain = error["extensions"].get("uncertain", False)
    assert not uncertain or "idempotencyKey" in error["message"]
    assert "uncertain-" not in error["message"]  # the name of the table
    return error["extensions"]["code"] + "?" * uncertain


async def test_repeated_with_its_key_a_mutation_is_made_once(scene: Scene) -> None:
    for number, (name, hidden, reads, _) in enumerate([case for case in CASES if case[-1]]):
        key, fault = f"k{number}", FAULTS[name]
        first = made(dropped) if hidden else fault
        scene.proxy.spoil(WRITES, before(first, scene.proxy, READS, 0 if reads else ALL), *[fault] * ALL)
        await scene.create(key, key)
        scene.proxy.mend()
        body = await scene.create(key, key)
        node = {"path": key, "revision": 1, "parent": None}
        assert body == {"data": {"createGround": {"node": node, "userErrors": []}}}, name


@pytest.mark.thorough
async def test_an_update_that_is_in_progress_is_not_made_a_second_time(scene: Scene) -> None:
    await scene.create("a")
    in_progress = refused("TransactionInProgressException")
    scene.proxy.spoil(WRITES, made(in_progress), *[in_progress] * ALL)
    update = 'mutation { updateGround(input: {node: {path: "a"}, name: "other"}) { node { name revision } } }'
    body = (await scene.client.post("/graphql", json={"query": update})).json()
    assert body == {"data": {"updateGround": {"node": {"name": "other", "revision": 2}}}}


async def test_a_value_that_the_engine_rejects_is_the_clients_mistake(scene: Scene) -> None:
    scene.proxy.spoil(WRITES, cancelled("ValidationError", "None", "None"))
    payload = (await scene.create("a"))["data"]["createGround"]
    assert payload["node"] is None
    assert [fault["code"] for fault in payload["userErrors"]] == ["BAD_USER_INPUT"]
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


async def test_a_mutation_that_is_ended_may_have_been_made(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    past = engine.address(f"uncertain-{uuid.uuid4().hex}")
    async with Proxy(engine.url) as proxy, open_store(past) as store:
        await store.create()
        url = past.replace(engine.url, proxy.url)
        async with served(url, monkeypatch, REQUEST_SECONDS="0.3") as client:
            scene = Scene(client, proxy, store)
            proxy.spoil(WRITES, delayed(1))
            check_ended(await scene.create("a", "once"))
            body = await scene.create("a", "once")
            while "errors" in body:  # it waits for the first
                check_ended(body)
                body = await scene.create("a", "once")
            assert body["data"]["createGround"]["node"]["revision"] == 1


def check_ended(body: dict[str, Any]) -> None:
    (error,) = body["errors"]
    assert error["extensions"] == {"code": "TIMEOUT", "uncertain": True}
    assert "idempotencyKey" in error["message"]


async def test_on_sqlite_a_mutation_that_is_ended_may_have_been_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clade.db"
    async with open_store(f"sqlite:///{file}") as store:
        await store.create()
        async with served(f"sqlite:///{file}", monkeypatch, REQUEST_SECONDS="0.3") as client:
            other = sqlite3.connect(file, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            scene = Scene(client, None, store)  # type: ignore[arg-type]
            check_ended(await scene.create("a", "once"))
            assert not await scene.is_made("a")
            other.execute("ROLLBACK")
            other.close()
            assert (await scene.create("a", "once"))["data"]["createGround"]["node"]["revision"] == 1


async def test_a_query_that_is_ended_is_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    past = engine.address(f"uncertain-{uuid.uuid4().hex}")
    async with Proxy(engine.url) as proxy, open_store(past) as store:
        await store.create()
        async with served(past.replace(engine.url, proxy.url), monkeypatch, REQUEST_SECONDS="0.3") as client:
            proxy.spoil(READS, delayed(1))
            body = (await client.post("/graphql", json={"query": '{ ground(path: "a") { name } }'})).json()
    assert [error["extensions"] for error in body["errors"]] == [{"code": "TIMEOUT"}]
