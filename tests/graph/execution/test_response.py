"""Response cache: a response is served while its data have not changed, also behind indexes that lag."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from graph.execution.operation import Execution
from graph.execution.response import ResponseCache
from graph.operation.context import Context
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import Store
from tests.answers import answer_to
from tests.model import Ground
from tests.schemas import schema_of
from tests.systems import asking
from tests.tables import late_stores

GROUND = Ground.definition()
LIST = '{ area(path: "a") { childCount children { nodes { key } } } }'


def server(
    store: Store, settle: float = 0.3, clock: Callable[[], float] = time.monotonic, max_bytes: int = 1_000_000
) -> Execution:
    """What one server process has: plans, kept pages and a cache of its own."""
    kept, cache = PageCache(1_000_000, TreeVersionCache(settle, clock=clock)), ResponseCache(max_bytes)

    def context() -> Context:
        return Context(Request(store, {"ground": GROUND}, page_cache=kept))

    return Execution(*schema_of(Ground), context, cache=cache)


async def ask(execution: Execution, query: str = LIST) -> tuple[Any, dict[str, Any]]:
    """The data of an answer, and what it cost."""
    answer = await answer_to(execution, query, allow_mutations=False, report_reads=True)
    body = orjson.loads(answer.content())
    return body["data"], body["extensions"]["reads"]


async def plant(store: Store, *paths: str) -> None:
    """Bring areas into the table as an import does."""
    await asking.plant(store, Ground, [(path.split("/"), "AREA") for path in paths])


@asynccontextmanager
async def two(url: str) -> AsyncIterator[tuple[Store, Store]]:
    """One table, opened twice, as by two server processes."""
    async with open_store(url) as one, open_store(url) as other:
        await one.create()
        await plant(one, "a", "a/b", "a/c")
        yield one, other


async def until_kept(execution: Execution) -> dict[str, Any]:
    """Ask again and again until the answer is a kept one; what that cost."""
    for _ in range(100):
        _, reads = await ask(execution)
        if reads["cached"]:
            return reads
        await asyncio.sleep(0.05)
    raise AssertionError("the answer was never kept")


async def test_a_hit_reads_nothing_on_sqlite_and_tree_versions_on_dynamodb(store_url):
    async with two(store_url) as (one, _):
        reads = await until_kept(server(one))
        sqlite = store_url.startswith("sqlite")
        assert (reads["requests"], reads["items"]) == ((0, 0) if sqlite else (1, 1))


async def test_a_write_to_another_tree_leaves_the_entry_current_on_dynamodb(engine):
    async with two(engine.address(f"clade-{uuid.uuid4().hex}")) as (one, other):
        execution = server(one)
        await until_kept(execution)
        await plant(other, "z", "z/y")
        _, reads = await ask(execution)
        assert reads["cached"]


async def test_a_new_query_reads_nothing_more_for_the_cache(engine):
    async with two(engine.address(f"clade-{uuid.uuid4().hex}")) as (one, _):
        execution = server(one)
        for _ in range(2):
            _, reads = await ask(execution)
            assert (reads["requests"], reads["cached"]) == (2, False)


async def test_a_response_without_proof_is_not_cached(engine):
    """An id that is nowhere, and what is cheaper than its proof."""
    async with two(engine.address(f"clade-{uuid.uuid4().hex}")) as (one, _):
        execution = server(one, settle=0)
        for query in ('{ node(id: "ground:nowhere") { id } area(path: "a") { name } }', "{ __typename }"):
            assert [(await ask(execution, query))[1]["cached"] for _ in range(4)] == [False] * 4


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)  # on DynamoDB this list costs less than its proof
async def test_the_roots_of_a_hierarchy_are_cached_until_they_change(store_url):
    async with two(store_url) as (one, other):
        execution, query = server(one, settle=0), "{ grounds { nodes { key childCount } } }"
        for paths, root in ((["r"], {"key": "r", "childCount": 0}), (["r", "r/x"], {"key": "r", "childCount": 1})):
            await plant(other, *paths)
            answers = [await ask(execution, query) for _ in range(3)]
            assert [root in data["grounds"]["nodes"] for data, _ in answers] == [True] * 3
            assert answers[-1][1]["cached"]


async def test_an_entry_expires_after_a_minute_on_dynamodb(engine):
    now = [0.0]
    async with two(engine.address(f"clade-{uuid.uuid4().hex}")) as (one, _):
        execution = server(one, settle=2, clock=lambda: now[0])
        cached = []
        for now[0] in (0.0, 1.0, 4.0, 4.1, 59.9, 64.1, 64.2):
            _, reads = await ask(execution)
            cached.append(reads["cached"])
        assert cached == [False, False, False, True, True, False, True]


async def test_the_cache_is_bounded_in_bytes(tmp_path):
    async with two(f"sqlite:///{tmp_path}/clade.db") as (one, _):
        execution = server(one, max_bytes=10_000)
        queries = [f'{{ area(path: "a") {{ x{number}: childCount }} }}' for number in range(20)]
        for query in queries:
            await ask(execution, query)
        assert 2 < sum([(await ask(execution, query))[1]["cached"] for query in reversed(queries)]) < 10


# -- indexes that lag --------------------------------------------------------------------------------------------------

LAG = 0.25


@asynccontextmanager
async def behind_late_indexes(settle: float) -> AsyncIterator[tuple[Store, list[Execution]]]:
    """A writer, and two servers that settle for so long."""
    async with late_stores(3, LAG) as (writer, *others), asyncio.timeout(120):
        await plant(writer, "a", "a/b")
        yield writer, [server(one, settle) for one in others]


async def test_no_response_from_a_lagging_index_is_cached():
    async with behind_late_indexes(2 * LAG) as (writer, servers):
        for number in range(2):
            await plant(writer, f"a/n{number}")
            waiting = servers  # for an answer that was kept since
            while waiting:
                answers = [(one, *await ask(one)) for one in servers]
                kept = [(one, data["area"]["children"]["nodes"]) for one, data, reads in answers if reads["cached"]]
                assert all({"key": f"n{number}"} in nodes for _, nodes in kept)
                waiting = [one for one in waiting if one not in [server for server, _ in kept]]
