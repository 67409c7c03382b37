"""First round: lists that come with their node; a wrong hint costs reads, never an answer."""

import uuid
from collections.abc import AsyncIterator

import pytest

from resolvers.session.cache import PageCache
from store.connect import open_store
from store.engine import Store
from tests.engines import Engine
from tests.model import Ground, Model
from tests.systems.asking import Client

NODES = {("r",): "AREA"} | {("r", area): "AREA" for area in "abc"}
NODES |= {("r", area, f"p{plot:02}"): "PLOT" for area in "ab" for plot in range(8)}
NODES |= {("r", "a", "deep"): "AREA", ("r", "a", "deep", "p"): "PLOT"}

PATHS = "nodes { path }"
CHILDREN = f'{{ area(path: "r/a") {{ name children {{ {PATHS} }} }} }}'


@pytest.fixture
async def planted(engine: Engine) -> AsyncIterator[Store]:
    async with open_store(engine.address(f"clade-{uuid.uuid4().hex}")) as opened:
        await opened.create()
        await Model("ground", NODES).plant(opened)
        yield opened


def client(store: Store) -> Client:
    return Client(store, Ground, page_cache=PageCache(0))


@pytest.mark.parametrize(
    ("selection", "requests", "rounds"),
    [
        (f"children {{ {PATHS} }}", 2, 1),
        (f"children(first: 2) {{ {PATHS} }}", 2, 1),
        (f"children(last: 2) {{ {PATHS} }}", 2, 1),
        (f"children(level: PLOT) {{ {PATHS} }}", 2, 1),
        (f"descendants {{ {PATHS} }}", 2, 1),
        (f"descendants(first: 3) {{ {PATHS} pageInfo {{ hasNextPage }} }}", 2, 1),
        (f'descendants(where: {{path: {{gte: "r/a/p03"}}}}) {{ {PATHS} }}', 2, 1),
        (f"ancestors {{ path }} children {{ {PATHS} }}", 2, 1),
        ("children { totalCount }", 1, 1),
        ("children(first: 0) { totalCount nodes { path } }", 1, 1),
        (f"children {{ nodes {{ path children {{ {PATHS} }} }} }}", 2, 2),
    ],
)
async def test_a_list_that_the_path_determines_comes_with_the_node(planted, selection, requests, rounds):
    reply = await client(planted).ask(f'{{ area(path: "r/a") {{ path {selection} }} }}')
    assert not reply.errors
    assert (reply.requests, reply.rounds) == (requests, rounds)


@pytest.mark.parametrize(
    ("query", "requests"),
    [
        (f'{{ area(path: "r") {{ descendants(level: PLOT, maxDepth: 2) {{ {PATHS} }} }} }}', 2),
        (f'{{ area(path: "r") {{ children {{ nodes {{ path children {{ {PATHS} }} }} }} }} }}', 2),
        (f'{{ area(path: "r") {{ children {{ {PATHS} }} descendants(level: PLOT) {{ {PATHS} }} }} }}', 3),
        (f'{{ area(path: "r") {{ descendants(maxDepth: 1) {{ {PATHS} }} }} }}', 2),
    ],
)
async def test_any_list_of_a_root_comes_with_it_once_its_tree_is_known(planted, query, requests):
    asked = client(planted)
    await asked.ask('{ area(path: "r") { path } }')
    reply = await asked.ask(query)
    assert not reply.errors
    assert (reply.rounds, reply.requests) == (1, requests)


@pytest.mark.parametrize("path", ["r/none", "none", "r/a/p01/x"])
async def test_a_path_without_a_node_costs_at_most_one_request_more(planted, path):
    plain = await client(planted).ask(f'{{ area(path: "{path}") {{ path }} }}')
    reply = await client(planted).ask(
        f'{{ area(path: "{path}") {{ path children {{ {PATHS} }} descendants {{ {PATHS} }} }} }}'
    )
    assert reply.data == {"area": None}
    assert (reply.requests - plain.requests, reply.rounds - plain.rounds) == (1, 0)


async def test_what_was_read_beside_a_node_of_another_level_is_dropped(planted):
    reply = await client(planted).ask(f'{{ plot(path: "r/a/deep") {{ children {{ {PATHS} }} }} }}')
    assert reply.data == {"plot": None}


async def test_a_wrong_hint_costs_a_round_and_no_answer(planted):
    asked = client(planted)
    query = f'{{ area(path: "r") {{ descendants(level: PLOT) {{ {PATHS} }} children {{ {PATHS} }} }} }}'
    before = await asked.ask(query)
    extra = {("r", "c", "new"): "AREA", ("r", "c", "new", "low"): "AREA", ("r", "c", "new", "low", "p"): "PLOT"}
    await Model("ground", NODES | extra).plant(planted)
    after = await asked.ask(query)
    assert len(after.data["area"]["descendants"]["nodes"]) == len(before.data["area"]["descendants"]["nodes"]) + 1
    assert after.data == (await client(planted).ask(query)).data


@pytest.mark.parametrize("node_id", ["location:x", "ground:", f"ground:{'x' * 2000}", "ground:\u0007"])
async def test_an_id_that_no_node_of_a_field_can_have_is_null_without_a_read(planted, node_id):
    reply = await client(planted).ask("query ($id: ID!) { area(id: $id) { path } }", id=node_id)
    assert (reply.data, reply.errors, reply.requests) == ({"area": None}, [], 0)
