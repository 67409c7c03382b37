"""Large moves and deletions in SQLite, which take several transactions, asked of servers that may be killed."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from graph.hierarchies.categories import CategoryNode
from store.checking.check import Check
from store.connect import open_store
from store.edits import reader
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.servers import Server
from tests.traced_statements import trace_statements
from tests.writing.killing import hasten

CATEGORY = CategoryNode.definition()
NODES = 3_000
MOST = 500
POLLS = 600  # for the end of a move
KILLED_AT = 3  # the second commit that copies
MOVE = 'mutation { moveCategoryNode(input: {node: {path: "A/x"}, to: {parent: {path: "B"}}}) { move { id state } } }'
DELETE = 'mutation { deleteCategoryNode(input: {node: {path: "B/x"}, policy: CASCADE}) { move { id state } } }'
MOVES = "{ moves(hierarchy: CATEGORY, first: 1) { id state written } }"
STATE = "query ($id: ID!) { move(id: $id) { state } }"
COUNTS = '{ a: category(path: "A") { descendantCount } b: category(path: "B") { descendantCount } }'


def bound() -> None:
    """Have this process make smaller transactions than it would anywhere else."""
    hasten()
    reader.MAX_NODES = MOST


def die_at_commit(number: int) -> None:
    """Have this process be killed right before the so many-th commit."""
    commits = count(1)

    def traced(statement: str) -> None:
        if statement == "COMMIT" and next(commits) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    trace_statements(traced)


@asynccontextmanager
async def served(path: Path) -> AsyncIterator[Server]:
    """A server of a subtree of many nodes."""
    url, wanted = f"sqlite:///{path}", ImportPlan(CATEGORY)
    rows = ["A", "B", "A/x", *[f"A/x/{n}" for n in range(NODES - 1)]]
    for number, row in enumerate(rows):
        wanted.take(Row(number, parse_path(row), [Part("CATEGORY")]))
    async with open_store(url) as store:
        await store.create()
        await load(store, wanted, LoadResult())
    server = Server(path.parent, "server", store=url, writes="on")
    try:
        yield server
    finally:
        await server.close()


async def ended(server: Server, move_id: str) -> None:
    for _ in range(POLLS):
        if (await server.ask(STATE, id=move_id))["data"]["move"]["state"] == "DONE":
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the move does not end")


async def counts(server: Server) -> list[int]:
    answer = await server.ask(COUNTS)
    return [answer["data"][name]["descendantCount"] for name in "ab"]


@pytest.mark.thorough
async def test_a_large_move_or_cascade_continues_after_its_server_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    async with served(path) as server:
        await server.start(bound, partial(die_at_commit, KILLED_AT))
        with contextlib.suppress(httpx.TransportError):
            await server.ask(MOVE)
        assert await server.died()
        reading = Server(tmp_path, "reading", store=f"sqlite:///{path}")  # continues no move
        await reading.start()
        (move,) = (await reading.ask(MOVES))["data"]["moves"]
        assert 0 < move["written"] < NODES
        assert await counts(reading) == [NODES, 0]
        await reading.close()
        await server.start(bound)
        await ended(server, move["id"])
        assert await counts(server) == [0, NODES]
        gone = (await server.ask(DELETE))["data"]["deleteCategoryNode"]["move"]
        await ended(server, gone["id"])
        assert await counts(server) == [0, 0]
    async with open_store(f"sqlite:///{path}") as store:
        checked = Check(store, {"category": CATEGORY}, "2026-01-01T00:00:00.000Z")
        assert [str(one) async for one in checked.findings()] == []
