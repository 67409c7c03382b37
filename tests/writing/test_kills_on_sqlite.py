"""Servers and imports on an SQLite file, killed at each boundary of what they write: all of it is done, or nothing."""

import contextlib
from functools import partial

import httpx
import pytest

from store.stores import open_store
from tests.servers import Server
from tests.wandering import HERE, THERE, Subtree, Watchers
from tests.writing.killing import die_at_statement
from tests.writing.whole import assert_whole

# BEGIN, the first and the last row, COMMIT, and after it: the subtree has 43 nodes, each of them written twice and
# deleted once, beside a few stamps and counts.
STATEMENTS = (1, 2, 40, 90, 120, 10_000)


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_move_killed_at_any_statement_is_made_or_not(tmp_path, statement):
    subtree, url = Subtree(6, 6), f"sqlite:///{tmp_path / 'clade.db'}"
    async with open_store(url) as store:
        await store.create()
        await subtree.plant(store)
    reading = Server(tmp_path, "reading", store=url)
    writing = Server(tmp_path, "writing", store=url, writes="on")
    async with reading, writing:
        writing.kill()
        await writing.start(partial(die_at_statement, statement))
        async with Watchers(subtree, [reading]) as watchers:
            with contextlib.suppress(httpx.TransportError):
                await subtree.move(writing, THERE, key="once")
            assert await writing.died()
            place = await subtree.seen_by(reading)
            assert place == (THERE if statement == max(STATEMENTS) else HERE)
            await writing.start()
            assert await subtree.seen_by(writing) == place
            answer = await subtree.move(writing, THERE, key="once")
            assert answer == {"data": {"changed": {"node": {"path": THERE}}}}
        assert watchers.seen[place] > 0
    await assert_whole(url, subtree, THERE)
