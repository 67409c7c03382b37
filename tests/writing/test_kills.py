"""Servers that are killed in the middle of a move: it is made or not, and its idempotency key settles which.

Kills at random moments, also during large moves, are tried from outside: tests/outside/faults.
"""

import contextlib
import os
import signal
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from graph.hierarchies.registry import hierarchies
from store.checking.check import Check
from store.connect import open_store
from tests import invariants
from tests.proxy import Call, Fault, Forward, Proxy
from tests.servers import Server
from tests.store.kinds.probe import register
from tests.store.transfer.test_load import imported

pytestmark = pytest.mark.usefixtures("probes")

SUBTREE = ["x", "x/0", "x/1", *[f"x/{n}/{m}" for n in range(2) for m in range(6)]]  # fits into one transaction
MOVE = """mutation {
  moveCategoryNode(input: {node: {path: "r/here/x"}, to: {parent: {path: "r/there"}}}, idempotencyKey: "once")
    { node { path } }
}"""
MOVED = {"data": {"moveCategoryNode": {"node": {"path": "r/there/x"}}}}
READ = '{ category(path: "r") { descendants(first: 900) { nodes { path } } } }'

_WRITES = ("BEGIN IMMEDIATE", "INSERT", "DELETE", "COMMIT")
AFTER = 10_000  # more statements than a move has: the server is killed after its COMMIT


def die_at_statement(number: int) -> None:
    """Have this process be killed right before the so many-th statement of SQLite that writes, or after a commit."""
    connect, written, committed = sqlite3.connect, count(1), False

    def traced(statement: str) -> None:
        nonlocal committed
        if committed or (statement.startswith(_WRITES) and next(written) == number):
            os.kill(os.getpid(), signal.SIGKILL)
        committed = statement == "COMMIT"

    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(traced)
        return connection

    sqlite3.connect = connect_traced


def killing(kill: Callable[[], None], *, done: bool) -> Fault:
    """Whoever calls the engine is killed, before it hears of the call or when it has `done` it."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        if done:
            await forward(call.body)
        kill()
        raise ConnectionAbortedError

    return fault


@asynccontextmanager
async def killed_in_a_move(
    folder: Path, url: str, through: str, *prepare: Callable[[], None], is_made: bool
) -> AsyncIterator[Server]:
    """A server of a subtree, which is killed by what the block or `prepare` does; afterwards the move is made once."""
    server = Server(folder, "writing", store=through, writes="on")
    async with open_store(url) as store:
        await store.create()
        category = hierarchies()["category"]
        paths = ["r", "r/here", "r/there", *[f"r/here/{path}" for path in SUBTREE]]
        await imported(store, [(path, "CATEGORY") for path in paths], category)
        try:
            await server.start(register, *prepare)
            yield server
            with contextlib.suppress(OSError):
                await server.ask(MOVE)
            assert await server.died()
            await server.start(register)
            for place in ("there" if is_made else "here", "there"):
                nodes = (await server.ask(READ))["data"]["category"]["descendants"]["nodes"]
                below = [f"r/{place}/{path}" for path in SUBTREE]
                assert sorted(node["path"] for node in nodes) == sorted(["r/here", "r/there", *below])
                assert await server.ask(MOVE) == MOVED
        finally:
            server.kill()
        await invariants.check(store)
        assert [one async for one in Check(store, hierarchies(), "2026-11-20T00:00:00.000Z").findings()] == []


@pytest.mark.parametrize("statement", [20, pytest.param(AFTER, marks=pytest.mark.thorough)])
async def test_on_sqlite_a_move_killed_at_a_statement_is_made_or_not(tmp_path: Path, statement: int) -> None:
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    dying = partial(die_at_statement, statement)
    async with killed_in_a_move(tmp_path, url, url, dying, is_made=statement == AFTER):
        pass


@pytest.mark.parametrize("done", [pytest.param(False, marks=pytest.mark.thorough), True])
async def test_on_dynamodb_a_move_killed_at_its_transaction_is_made_or_not(engine, tmp_path: Path, done: bool) -> None:
    url = engine.address(f"kills-{uuid.uuid4().hex}")
    async with Proxy(engine.url) as proxy:
        through = url.replace(engine.url, proxy.url)
        async with killed_in_a_move(tmp_path, url, through, is_made=done) as server:
            proxy.spoil("TransactWriteItems", killing(server.kill, done=done))
