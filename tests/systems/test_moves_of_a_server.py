"""A server that writes takes up the moves that others have left, and leaves its own to others when it stops."""

import asyncio
import time
import uuid
from pathlib import Path

import httpx
import pytest

from graph.app import create_app
from store.connect import open_store
from store.engine.protocol import Store
from store.metadata.move_record import MoveState
from tests.engines import Engine
from tests.serving import serving
from tests.store.background_moves import journaled

SECONDS = 20.0
CATEGORIES = '''
from clade import Node


class CategoryNode(Node, hierarchy="category", many="categories"):
    """A node of a hierarchy that is not searched, as the one that the trees are planted with."""


class Category(CategoryNode, under=[None, "self"]):
    """A category."""
'''
MOVE = 'mutation { moveCategoryNode(path: "r/a", to: "o") { node { path } } }'

AWAY = 'mutation($to: Path!) { moveCategoryNode(path: "r/a", to: $to) { move { id state reason } } }'
WHY = "query($id: ID!) { move(id: $id) { state reason } }"


@pytest.fixture
def store_url(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table that servers serve, which wait as little as they can."""
    hierarchies = tmp_path / "plain_categories.py"
    hierarchies.write_text(CATEGORIES)
    url = engine.address(f"moving-{uuid.uuid4().hex}")
    for name, value in {
        "STORE": url, "HIERARCHIES": str(hierarchies), "WRITES": "on", "REQUEST_SECONDS": "3",
        "SETTLE_SECONDS": "0",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"CLADE_{name}", value)
    monkeypatch.setattr("store.background_moves.timing.MARGIN_SECONDS", -2.9)
    return url


async def ended(store: Store, state: MoveState = MoveState.DONE) -> None:
    """Wait for the end of the only move, and see that nothing is left of it."""
    end = time.monotonic() + SECONDS
    while (await journaled.only_move(store)).ended_at is None:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
    await journaled.has_ended(store, state)


async def test_a_server_takes_up_at_its_start_what_another_has_left(store_url: str) -> None:
    async with open_store(store_url) as store:
        await store.create()
        await journaled.plant(store)
        await journaled.halted(store, journaled.move("r/a", "o/p/a"), MoveState.COPYING)
        await journaled.lapse(store)
        with serving(create_app()):
            await ended(store)


async def test_a_server_that_stops_leaves_its_moves_to_the_next_one(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(store_url) as store:
        await store.create()
        await journaled.plant(store, *[f"r/a/m{n}" for n in range(40)])
        with monkeypatch.context() as patch:
            patch.setattr("store.background_moves.timing.MARGIN_SECONDS", 60)
            with serving(create_app()) as url:
                async with httpx.AsyncClient(timeout=SECONDS) as client:
                    answer = await client.post(f"{url}/graphql", json={"query": MOVE})
                assert answer.json() == {"data": {"moveCategoryNode": {"node": {"path": "o/a"}}}}
        assert ((found := await journaled.only_move(store)).state, found.lease) == (MoveState.COPYING, 0)
        with serving(create_app()):
            await ended(store)
        assert "r/a" not in await journaled.paths(store)


async def test_a_move_that_came_to_nothing_after_its_answer_says_why(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.edits.move.MAX_CHECKED_NODES", 10)  # more nodes are only looked at while they are copied
    monkeypatch.setattr("store.background_moves.timing.MARGIN_SECONDS", 0.0)  # so that the answer comes before the copy
    long = "m" * 500
    async with open_store(store_url) as store:
        await store.create()
        await journaled.plant(
            store, f"o/{long}", f"r/a/{long}", f"r/a/{long}/{'n' * 20}", *[f"r/a/m{n}" for n in range(60)]
        )
        before = await journaled.paths(store)
        with serving(create_app()) as url:
            async with httpx.AsyncClient(base_url=url, timeout=SECONDS) as client:
                answer = await client.post("/graphql", json={"query": AWAY, "variables": {"to": f"o/{long}"}})
                told = answer.json()["data"]["moveCategoryNode"]["move"]
                assert (told["state"], told["reason"]) == ("COPYING", None)
                await ended(store, MoveState.UNDONE)
                answer = await client.post("/graphql", json={"query": WHY, "variables": {"id": told["id"]}})
                found = answer.json()["data"]["move"]
        assert found["state"] == "UNDONE"
        assert found["reason"].startswith(f'"{"n" * 20}" would lie 5 segments deep under a key of 1026 bytes; at most')
        assert await journaled.paths(store) == before
