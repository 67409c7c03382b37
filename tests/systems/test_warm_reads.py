"""Warm reads of DynamoDB: what a tree's version proves is read no more, whatever the query looks like."""

import uuid
from collections.abc import AsyncIterator

import pytest

from resolvers.access.grants import Grants
from resolvers.lists.arguments import NoSelection
from resolvers.lookup import ByPath, find_nodes
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.model.keys import node_key
from store.model.paths import parse_path
from store.model.records import derived_id
from store.writing.create_update import Update
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests.model import Ground
from tests.systems.asking import Client, plant

NODES = {("r",): "AREA"} | {("r", f"a{area}"): "AREA" for area in range(10)}
NODES |= {("r", f"a{area}", f"p{plot:02}"): "PLOT" for area in range(10) for plot in range(10)}
NODES |= {("s",): "AREA", ("s", "b"): "AREA"}
SETTLE = 2.0
NODE_ID = f"ground:{derived_id('ground', ('r', 'a3', 'p04'))}"

QUERIES = {
    "nested": '{ area(path: "r") { name children { nodes { path children { nodes { path name } } } } } }',
    "flat": '{ area(path: "r") { descendants { nodes { path } } } }',
    "levels": '{ area(path: "r") { descendants(level: PLOT) { totalCount nodes { path } } } }',
    "page": '{ area(path: "r/a3") { children(first: 3) { nodes { path } pageInfo { endCursor } } } }',
    "sorted": '{ area(path: "r") { children(orderBy: [{field: NAME, direction: DESC}]) { nodes { path } } } }',
    "filtered": '{ area(path: "r") { children(where: {name: {contains: "3"}}) { nodes { path } } } }',
    "breadcrumb": '{ plot(path: "r/a3/p04") { name ancestors { name } parent { childCount } } }',
    "siblings": '{ plot(path: "r/a3/p04") { parent { children { nodes { key } } } } }',
    "by id": f'{{ node(id: "{NODE_ID}") {{ ... on Plot {{ path parent {{ path }} }} }} }}',
}


@pytest.fixture
def url(engine) -> str:
    return str(engine.address(f"clade-{uuid.uuid4().hex}"))


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with open_store(url) as opened:
        await opened.create()
        await plant(opened, Ground, rows(NODES))
        yield opened


@pytest.fixture
async def other(store: Store, url: str) -> AsyncIterator[Store]:
    """The same table in another process."""
    async with open_store(url) as opened:
        yield opened


class Clock:
    """The time of all servers here, which passes only where a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


def client(store: Store, stale: float = 0.0) -> Client:
    return Client(store, Ground, page_cache=PageCache(10_000_000, TreeVersionCache(SETTLE, stale, CLOCK)))


def rows(nodes: dict[tuple[str, ...], str]) -> list[tuple[tuple[str, ...], str]]:
    return sorted(nodes.items(), key=lambda node: len(node[0]))


async def warm(asked: Client, *queries: str) -> None:
    for query in queries:
        await asked.ask(query)
    CLOCK.now += SETTLE
    for query in queries:
        await asked.ask(query)


async def test_a_warm_query_reads_one_version_and_nothing_else(store):
    asked = client(store)
    await warm(asked, *QUERIES.values())
    for name, query in QUERIES.items():
        cold = await client(store).ask(query)
        reply = await asked.ask(query)
        assert reply.data == cold.data
        assert (name, reply.requests, reply.rounds, reply.items, reply.units) == (name, 1, 1, 1, 1.0)
        assert (reply.nodes, reply.fields) == (cold.nodes, cold.fields)
    other_page = await asked.ask(QUERIES["sorted"].replace("children(", "children(last: 2, "))
    assert (other_page.requests, other_page.items) == (1, 1), "another page of a list that was read"


async def test_an_uncached_list_is_read_in_parallel_with_the_version_of_its_cached_node(store):
    asked = client(store)
    await warm(asked, '{ area(path: "r/a3") { path } }')
    reply = await asked.ask(QUERIES["page"])
    assert (reply.requests, reply.rounds) == (2, 1)


async def test_within_the_stale_time_a_warm_query_reads_nothing_and_after_it_sees_every_write(store):
    asked = client(store, stale=30.0)
    await warm(asked, *QUERIES.values())
    for query in QUERIES.values():
        assert (await asked.ask(query)).requests == 0
    await plant(store, Ground, rows(NODES | {("r", "a3", "new"): "PLOT"}))
    CLOCK.now += 30.1
    for query in QUERIES.values():
        assert (await asked.ask(query)).data == (await client(store).ask(query)).data


async def test_a_write_of_another_process_is_in_the_next_response_and_other_trees_stay_warm(store, other):
    asked = client(store)
    await warm(asked, *QUERIES.values())
    await plant(other, Ground, rows(NODES | {("s", "c"): "AREA"}))
    assert (await asked.ask(QUERIES["nested"])).requests == 1
    await plant(other, Ground, rows(NODES | {("r", "a3", "new"): "PLOT"}))
    for query in QUERIES.values():
        assert (await asked.ask(query)).data == (await client(store).ask(query)).data


async def test_lists_below_a_list_that_was_read_before_are_read_in_its_round_after_a_write(store, other):
    """The nodes that it had are hints: one that is gone costs a read, a new one a second round."""
    query = '{ area(path: "r") { children(first: 9) { nodes { path children(first: 5) { nodes { path name } } } } } }'
    asked = client(store)
    await warm(asked, query)
    await plant(other, Ground, rows(NODES | {("r", "a3", "new"): "PLOT"}))
    await asked.ask(query)  # by which this process learns of the write
    reply = await asked.ask(query)
    assert reply.rounds == 1
    assert reply.data == (await client(store).ask(query)).data
    await Writer(other).write(Move(Ground.definition(), ("r", "a3"), ("s", "a3"), None), ReadUsage())
    replies = [await asked.ask(query) for _ in range(2)]
    assert replies[0].data == replies[1].data == (await client(store).ask(query)).data
    assert replies[1].rounds == 2, "there is another child, whose list is read in a round of its own"


async def test_lists_that_are_read_ahead_take_no_budget_from_those_that_are_needed(store, other):
    query = '{ area(path: "r") { children(first: 9) { nodes { path children(first: 5) { nodes { path name } } } } } }'
    asked, budget = client(store), BudgetLimits(read_units=12.0)  # six requests
    await warm(asked, query)
    await plant(other, Ground, rows(NODES | {("r", "a3", "new"): "PLOT"}))
    await asked.ask(query)  # by which this process learns of the write
    scarce = Client(store, Ground, budget=budget, page_cache=asked.page_cache)
    assert (await scarce.ask(query)).errors == (await Client(store, Ground, budget=budget).ask(query)).errors == []


async def test_lists_below_a_list_of_roots_are_taken_from_the_cache_too(store):
    query = "{ grounds { nodes { key children { nodes { path } } } } }"
    asked = client(store)
    cold = await asked.ask(query)
    await warm(asked, query)
    reply = await asked.ask(query)
    assert reply.data == cold.data
    assert (reply.requests, reply.units) == (3, 3.5), "roots, the version of the hierarchy, those of their trees"


async def test_a_former_path_is_warm_where_one_tree_proves_it(store, other):
    """An id is proven by the version of the tree that it led to."""
    asked, by_path = client(store), '{ plot(path: "r/a3/p04") { path } }'
    await warm(asked, *QUERIES.values(), by_path)
    path: tuple[str, ...] = ("r", "a3", "p04")
    for target in ("s/b/p04", "r/a5/new"):
        await Writer(other).write(Move(Ground.definition(), path, parse_path(target), None), ReadUsage())
        path = parse_path(target)
        for query in (*QUERIES.values(), by_path):
            assert (await asked.ask(query)).data == (await client(store).ask(query)).data
        await warm(asked, *QUERIES.values(), by_path)
        again = await asked.ask(by_path)
        assert again.data == {"plot": {"path": target}}
        assert (again.requests == 1) is target.startswith("r/")


async def test_stale_versions_hide_no_redirect_and_no_history(store, other):
    """A node that is read is read with its version, which knows whether the tree has redirects by now."""
    asked = client(store, stale=60.0)
    await warm(asked, '{ area(path: "r") { path } }', '{ plot(path: "r/a2/p04") { path } }')
    ground, writer = Ground.definition(), Writer(other)
    await writer.write(Move(ground, ("r", "a3", "p04"), ("r", "a5", "new"), None), ReadUsage())
    assert (await asked.ask('{ plot(path: "r/a3/p04") { path } }')).data == {"plot": {"path": "r/a5/new"}}
    await writer.write(Update(ground, ("r", "a2", "p04"), "New", None, {}, None), ReadUsage())
    query = '{ plot(path: "r/a2/p04") { revision history(first: 9) { totalCount } } }'
    plot = (await asked.ask(query)).data["plot"]
    assert (plot["revision"], plot["history"]["totalCount"]) == (2, 2)


async def test_restricted_callers_neither_use_nor_notice_what_others_have_read(store):
    cache, definitions = PageCache(10_000_000, TreeVersionCache(0.0, 60.0)), {"ground": Ground.definition()}
    grants, counts = Grants.parse(["read:ground/s"]), []
    for _ in range(2):
        request = Request(store, definitions, page_cache=cache, grants=grants)
        assert await find_nodes(request, [(ByPath("ground", ("r", "a3")), NoSelection())]) == [None]
        counts.append(request.reads.requests)
        await Request(store, definitions, page_cache=cache).state.node(node_key("ground", ("r", "a3")))
    assert counts[0] == counts[1] > 0
