"""Servers that are killed while they move or delete a subtree: it is whole at one place, whoever reads, whenever.

With CLADE_TEST_KILLS=1000 so many kills come at random moments, during moves of some 5,000 nodes.
"""

import asyncio
import contextlib
import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random

import httpx
import pytest

from store.dynamodb.retries import REST_SECONDS
from tests import engines
from tests.conftest import CLADE
from tests.moving_subtree import HERE, NOWHERE, THERE, MovingSubtree, Watchers
from tests.proxy import Proxy, passed
from tests.writing.killing import KILLS, die_at_statement, killing
from tests.writing.scene import Scene, outcome, scene

LONGEST_SECONDS = 0.3  # between two kills; in the long form as long as a move takes
MOVED = {"data": {"changed": {"node": {"path": THERE}}}}

# Of a move or deletion of 43 nodes on SQLite: its BEGIN, some of its rows, its COMMIT, and after that.
STATEMENTS = (1, 2, 60, 110, 10_000)
EACH = [pytest.param(one, marks=pytest.mark.thorough if one != 60 else []) for one in STATEMENTS]


TRANSACTIONS = 10  # of a journaled move of 43 nodes, some of them to prolong its lease


def other(place: str) -> str:
    return THERE if place == HERE else HERE


@pytest.mark.parametrize("statement", EACH)
async def test_on_sqlite_a_move_killed_at_any_statement_is_made_or_not(tmp_path, statement):
    dying = partial(die_at_statement, statement)
    async with scene(tmp_path, f"sqlite:///{tmp_path / 'clade.db'}", MovingSubtree(6, 6), dying) as played:
        async with Watchers(played.subtree, [played.reading]) as watchers:
            with contextlib.suppress(httpx.TransportError):
                await played.subtree.move(played.writing, THERE, key="once")
            assert await played.writing.died()
            place = await played.subtree.seen_by(played.reading)
            assert place == (THERE if statement == max(STATEMENTS) else HERE)
            await played.restart()
            assert await played.subtree.seen_by(played.writing) == place
            assert await played.subtree.move(played.writing, THERE, key="once") == MOVED
        assert watchers.seen[place] > 0
        await played.check(THERE)


@pytest.mark.parametrize("statement", STATEMENTS[-1:])
async def test_on_sqlite_a_cascade_killed_at_any_statement_is_made_or_not(tmp_path, statement):
    dying = partial(die_at_statement, statement)
    async with scene(tmp_path, f"sqlite:///{tmp_path / 'clade.db'}", MovingSubtree(6, 6), dying) as played:
        async with Watchers(played.subtree, [played.reading]):
            with contextlib.suppress(httpx.TransportError):
                await played.subtree.delete(played.writing, key="once")
            assert await played.writing.died()
            place = await played.subtree.seen_by(played.reading)
            assert place == (NOWHERE if statement == max(STATEMENTS) else HERE)
            await played.check(place)
            await played.restart()
            assert "errors" not in await played.subtree.delete(played.writing, key="once")
        await played.check(NOWHERE)


async def wander_killed(played: Scene, kills: int, longest: float) -> None:
    """Move to and fro, and kill the server after random times, so often in all."""
    place, random, left = HERE, Random(kills), kills  # noqa: S311
    while left:
        key, to = f"{left}", other(place)
        asking = asyncio.create_task(played.subtree.move(played.writing, to, key=key))
        while True:
            await asyncio.sleep(random.uniform(0, longest))
            await played.restart()
            left -= 1
            if not left or random.random() < 0.5 or not await played.is_moving():
                break
        answer = await outcome(asking)
        await played.rest()
        found = await played.subtree.seen_by(played.writing)
        assert found in ((to,) if answer else (place, to)), key
        assert "errors" not in await played.subtree.move(played.writing, to, key=key)
        await played.rest()
        place = to
        if left % 20 == 0:
            await played.check(place)
    await played.check(place)


@pytest.mark.thorough
async def test_servers_killed_at_random_moments_leave_a_complete_subtree(store_url, tmp_path):
    subtree = MovingSubtree(50, 100) if KILLS else MovingSubtree(3, 12)
    async with scene(tmp_path, store_url, subtree) as played:
        longest = LONGEST_SECONDS
        if KILLS:
            began = asyncio.get_running_loop().time()
            await subtree.move(played.writing, THERE)
            await played.rest()
            await subtree.move(played.writing, HERE)
            await played.rest()
            longest = 0.6 * (asyncio.get_running_loop().time() - began)
        async with Watchers(subtree, [played.reading], pause=0.5 if KILLS else 0.02) as watchers:
            await wander_killed(played, KILLS or 3, longest)
        print(f"{KILLS or 3} kills, {watchers.seen.total()} answers, {watchers.pages} pages", watchers.seen)
        assert watchers.seen[HERE] > 0
        assert watchers.pages > 0
    assert subprocess.run([CLADE, "check", "--store", store_url], timeout=300).returncode == 0  # noqa: ASYNC221


@asynccontextmanager
async def behind_a_proxy(engine, folder: Path, subtree: MovingSubtree) -> AsyncIterator[tuple[Scene, Proxy]]:
    """A scene on a table whose writer reaches the engine through a proxy."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    address = engine.address(f"kills-{uuid.uuid4().hex}")
    async with Proxy(engine.url) as proxy:
        through = address.replace(engine.url, proxy.url)
        async with scene(folder, address, subtree, through=through) as played:
            yield played, proxy


@pytest.mark.parametrize("done", [pytest.param(False, marks=pytest.mark.thorough), True])
async def test_on_dynamodb_a_small_move_killed_at_its_transaction_is_made_or_not(engine, tmp_path, done):
    async with behind_a_proxy(engine, tmp_path, MovingSubtree(2, 6)) as (played, proxy):
        proxy.spoil("TransactWriteItems", killing(played.writing.kill, done=done))
        with contextlib.suppress(httpx.TransportError):
            await played.subtree.move(played.writing, THERE, key="once")
        place = await played.subtree.seen_by(played.reading)
        assert place == (THERE if done else HERE)
        await played.check(place)
        await played.restart()
        assert await played.subtree.move(played.writing, THERE, key="once") == MOVED
        await played.check(THERE)


async def journaled(engine, folder: Path, number: int, *, done: bool, cascade: bool) -> bool:
    """A journaled move or cascade whose server is killed at its so many-th transaction; whether there was one."""
    async with behind_a_proxy(engine, folder, MovingSubtree(6, 6)) as (played, proxy):
        target = NOWHERE if cascade else THERE
        change = played.subtree.delete if cascade else partial(played.subtree.move, to=THERE)
        faults = [passed] * (number - 1)
        proxy.spoil("TransactWriteItems", *faults, killing(played.writing.kill, done=done))
        async with Watchers(played.subtree, [played.reading]) as watchers:
            with contextlib.suppress(httpx.TransportError):
                await change(played.writing, key="once")
            await played.rest()
            killed = not played.writing.is_alive
            await played.restart()
            assert "errors" not in await change(played.writing, key="once")
            await played.rest()
        assert watchers.seen.total() > 0
        assert await played.subtree.seen_by(played.writing) == target
        await played.check(target)
        return killed


@pytest.mark.thorough
@pytest.mark.parametrize("cascade", [False, True])
async def test_on_dynamodb_a_background_move_killed_at_any_transaction_is_finished(engine, tmp_path, cascade):
    boundaries = [(number, done) for number in range(1, TRANSACTIONS) for done in (False, True)]
    chosen = boundaries if KILLS else boundaries[:: 6 if cascade else 4]
    kills = [
        journaled(engine, tmp_path / f"{number}{done}", number, done=done, cascade=cascade) for number, done in chosen
    ]
    killed = await asyncio.gather(*kills)
    assert sum(killed) >= len(chosen) // 2


@pytest.mark.thorough
async def test_an_engine_killed_repeatedly_during_a_background_move_ends_in_a_complete_subtree(tmp_path):
    engine = engines.find(tmp_path / "engine.db")
    if not engine.command or engine.name != "dynoxide":
        pytest.skip("only dynoxide keeps its tables when it is killed")
    with engine:
        async with scene(tmp_path, engine.address("kills"), MovingSubtree(6, 6)) as played:
            async with Watchers(played.subtree, [played.reading]) as watchers:
                assert "errors" not in await played.subtree.move(played.writing, THERE, key="once")
                for seconds in (0.2, 0.7, 0.9, 0.6):
                    await asyncio.sleep(seconds)
                    await asyncio.to_thread(engine.kill)
                    await asyncio.to_thread(engine.start)
                await asyncio.sleep(2 * REST_SECONDS)  # until a store that has given it up asks it again
                await played.rest()
                assert "errors" not in await played.subtree.move(played.writing, THERE, key="once")
            assert watchers.seen.total() > 0
            await played.check(THERE)
