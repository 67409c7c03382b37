"""Warm reads of DynamoDB: what a tree's version proves is read no more, whatever the query looks like."""

import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from resolvers.access.grants import Grants
from resolvers.lookup import find_nodes
from resolvers.planning.relations import NoSelection
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from resolvers.session.tree_version_cache import TreeVersionCache
from store.connect import open_store
from store.edits.create_update import Update
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.keys import node_key
from store.model.paths import parse_path
from store.model.records import derived_id
from store.writer.request import EditOptions
from store.writer.writer import Writer
from tests.model import Ground
from tests.systems.asking import Client, plant

NODES = {("r",): "AREA"} | {("r", f"a{area}"): "AREA" for area in range(10)}
NODES |= {("r", f"a{area}", f"p{plot:02}"): "PLOT" for area in range(10) for plot in range(10)}
NODES |= {("s",): "AREA", ("s", "b"): "AREA"}
SETTLE = 2.0
Table = Callable[[], AbstractAsyncContextManager[Store]]
NODE_ID = f"ground:{derived_id('ground', ('r', 'a3', 'p04'))}"

QUERIES = {
    "nested": '{ area(path: "r") { name children { nodes { path children { nodes { path name } } } } } }',
    "flat": '{ area(path: "r") { descendants { nodes { path } } } }',
    "levels": '{ area(path: "r") { descendants(level: PLOT) { totalCount nodes { path } } } }',
    "page": '{ area(path: "r/a3") { children(first: 3) { nodes { path } pageInfo { endCursor } } } }',
    "breadcrumb": '{ plot(path: "r/a3/p04") { name ancestors { name } parent { childCount } } }',
    "siblings": '{ plot(path: "r/a3/p04") { parent { children { nodes { key } } } } }',
    "by id": f'{{ node(id: "{NODE_ID}") {{ ... on Plot {{ path parent {{ path }} }} }} }}',
}


@pytest.fixture
def table(engine) -> Table:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    return lambda: open_store(url)


class Clock:
    """The time of all servers here, which passes only where a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


def client(store: Store, stale: float = 0.0) -> Client:
    return Client(store, Ground, page_cache=lambda: PageCache(10_000_000, TreeVersionCache(SETTLE, stale, CLOCK)))


def rows(nodes: dict[tuple[str, ...], str]) -> list[tuple[tuple[str, ...], str]]:
    return sorted(nodes.items(), key=lambda node: len(node[0]))


async def warm(asked: Client, *queries: str) -> None:
    for query in queries:
        await asked.ask(query)
    CLOCK.now += SETTLE
    for query in queries:
        await asked.ask(query)


async def test_a_warm_query_reads_one_version_and_nothing_else(table):
    async with table() as store:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store)
        await warm(asked, *QUERIES.values())
        for name, query in QUERIES.items():
            cold = await client(store).ask(query)
            reply = await asked.ask(query)
            assert reply.data == cold.data
            assert (name, reply.requests, reply.rounds, reply.items, reply.units) == (name, 1, 1, 1, 1.0)
            assert (reply.nodes, reply.fields) == (cold.nodes, cold.fields)


async def test_an_uncached_list_is_read_in_parallel_with_the_version_of_its_cached_node(table):
    async with table() as store:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store)
        await warm(asked, '{ area(path: "r/a3") { path } }')
        reply = await asked.ask(QUERIES["page"])
        assert (reply.requests, reply.rounds) == (2, 1)


async def test_within_the_stale_time_a_warm_query_reads_nothing_and_after_it_sees_every_write(table):
    async with table() as store:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store, stale=30.0)
        await warm(asked, *QUERIES.values())
        for query in QUERIES.values():
            assert (await asked.ask(query)).requests == 0
        await plant(store, Ground, rows(NODES | {("r", "a3", "new"): "PLOT"}))
        CLOCK.now += 30.1
        for query in QUERIES.values():
            assert (await asked.ask(query)).data == (await client(store).ask(query)).data


async def test_a_write_of_another_process_is_in_the_next_response(table):
    async with table() as store, table() as other:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store)
        nodes = dict(NODES)
        for number in range(3):
            await warm(asked, *QUERIES.values())
            assert (await asked.ask(QUERIES["nested"])).requests == 1
            nodes[("r", "a3", f"new{number}")] = "PLOT"
            await plant(other, Ground, rows(nodes))
            for query in QUERIES.values():
                assert (await asked.ask(query)).data == (await client(store).ask(query)).data


async def test_other_trees_stay_warm(table):
    async with table() as store:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store)
        await warm(asked, QUERIES["nested"])
        await plant(store, Ground, rows(NODES | {("s", "c"): "AREA"}))
        assert (await asked.ask(QUERIES["nested"])).requests == 1


async def test_lists_below_a_list_of_roots_are_taken_from_the_cache_too(table):
    query = "{ grounds { nodes { key children { nodes { path } } } } }"
    async with table() as store:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store)
        cold = await asked.ask(query)
        await warm(asked, query)
        reply = await asked.ask(query)
        assert reply.data == cold.data
        assert (reply.requests, reply.units) == (3, 3.5), "roots, the version of the hierarchy, those of their trees"


@pytest.mark.thorough
async def test_a_move_between_trees_is_in_the_next_response(table):
    """A path that redirects is proven by no version of one tree, and an id by that of the tree that it led to."""
    async with table() as store, table() as other:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked, by_path = client(store), '{ plot(path: "r/a3/p04") { path } }'
        await warm(asked, *QUERIES.values(), by_path)
        writer = Writer(other)
        path: tuple[str, ...] = ("r", "a3", "p04")
        for target in ("s/b/p04", "r/a5/new", "r/a3/p04"):
            edit = Move(Ground.definition(), path, parse_path(target), None)
            await writer.write(edit, ReadUsage(), EditOptions())
            path = parse_path(target)
            for query in (*QUERIES.values(), by_path):
                assert (await asked.ask(query)).data == (await client(store).ask(query)).data
            assert (await asked.ask(by_path)).data == {"plot": {"path": target}}
            await warm(asked, *QUERIES.values(), by_path)
            again = await asked.ask(by_path)
            assert again.data == {"plot": {"path": target}}
            assert (again.requests == 1) is target.startswith("r/"), "an old path is warm where one tree proves it"


async def test_a_stale_version_hides_no_redirect(table):
    """A node that is read is read with its version, which knows whether the tree has redirects by now."""
    async with table() as store, table() as other:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store, stale=60.0)
        await asked.ask('{ area(path: "r") { path } }')
        edit = Move(Ground.definition(), ("r", "a3", "p04"), ("r", "a5", "new"), None)
        await Writer(other).write(edit, ReadUsage(), EditOptions())
        assert (await asked.ask('{ plot(path: "r/a3/p04") { path } }')).data == {"plot": {"path": "r/a5/new"}}


async def test_history_is_current_although_stale_versions_are_accepted(table):
    query = '{ plot(path: "r/a3/p04") { revision history(first: 9) { totalCount } } }'
    async with table() as store, table() as other:
        await store.create()
        await plant(store, Ground, rows(NODES))
        asked = client(store, stale=60.0)
        await warm(asked, '{ plot(path: "r/a3/p04") { path } }')
        edit = Update(Ground.definition(), ("r", "a3", "p04"), "New", None, {}, None)
        await Writer(other).write(edit, ReadUsage(), EditOptions())
        plot = (await asked.ask_once(query, {}, asked.plans)).data["plot"]
        assert (plot["revision"], plot["history"]["totalCount"]) == (2, 2)


async def test_restricted_callers_neither_use_nor_notice_what_others_have_read(table):
    async with table() as store:
        await store.create()
        await plant(store, Ground, rows(NODES))
        cache = PageCache(10_000_000, TreeVersionCache(0.0, 60.0))
        grants, counts = Grants.parse(["read:ground/s"]), []
        for _ in range(2):
            request = Request(store, {"ground": Ground.definition()}, page_cache=cache, grants=grants)
            assert await find_nodes(request, [(("ground", ("r", "a3")), NoSelection())]) == [None]
            counts.append(request.reads.requests)
            await client_of(store, cache).state.node(node_key("ground", ("r", "a3")))
        assert counts[0] == counts[1] > 0


def client_of(store: Store, cache: PageCache) -> Request:
    return Request(store, {"ground": Ground.definition()}, page_cache=cache)
