"""Look-ahead: a query reads the same in every way of writing it, and no more than it selects."""

import uuid
from collections.abc import AsyncIterator

import pytest

from resolvers.session.page_cache import PageCache
from store.connect import open_store
from tests.engines import Engine
from tests.model import Ground, Model
from tests.systems.asking import Client

NODES = {("r",): "AREA", ("r", "a"): "AREA", ("r", "b"): "AREA", ("r", "a", "p"): "PLOT", ("r", "b", "p"): "PLOT"}


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    """A client whose server has read the version of the tree, and caches nothing else."""
    async with open_store(engine.address(f"clade-{uuid.uuid4().hex}")) as store:
        await store.create()
        await Model("ground", NODES).plant(store)
        asked = Client(store, Ground, page_cache=lambda: PageCache(0))
        await asked.ask('{ area(path: "r") { path } }')
        yield asked


@pytest.mark.parametrize(
    ("query", "requests"),
    [
        ('{ area(path: "r") { children { nodes { children { nodes { path } } } } } }', 2),
        ('{ area(path: "r") { children { edges { node { children { edges { node { path } } } } } } } }', 2),
        ('{ ground(path: "r") { ... on Area { children { nodes { ... on Area { children { nodes { key } } } } } } } '
         "}", 2),
        ('{ area(path: "r") { ...A } } fragment A on Ground { children { nodes { ...B } } } '
         "fragment B on Area { children { nodes { path } } }", 2),
        ('{ ground(path: "r") { ... on Plot { children { nodes { path } } } } }', 1),
        ('{ area(path: "r/a") { children { totalCount } } }', 1),
        ('{ area(path: "r") { descendants(where: {path: {gte: "r/b"}}, first: 1) { nodes { path } } } }', 2),
        ('{ area(path: "r") { descendants(where: {path: {gte: "r/b"}}, first: 1) { totalCount nodes { path } } } }', 3),
    ],
)  # fmt: skip
async def test_everything_that_is_selected_and_nothing_else_is_read_in_one_round(client, query, requests):
    reply = await client.ask(query)
    assert not reply.errors
    assert reply.requests == requests
    assert reply.rounds == (2 if requests == 3 else 1)


async def test_below_a_field_of_one_level_a_plan_reads_fragments_on_that_level_ahead(client):
    query = '{ area(path: "r/a") { ... on Area { children { nodes { path } } } } }'
    reply = await client.ask_once(query, {}, client.plans)
    assert (reply.requests, reply.rounds) == (2, 1)


async def test_an_invalid_argument_is_an_error_of_each_field_that_has_it_and_of_no_other(client):
    reply = await client.ask(
        'query($n: Int = -1) { area(path: "r") { a: children(first: $n) { totalCount } b: children { nodes { '
        "... on Area { c: children(first: $n) { nodes { path } } d: children { nodes { path } } } } } } }"
    )
    assert [error["path"] for error in reply.errors] == [
        ["area", "a"],
        *[["area", "b", "nodes", n, "c"] for n in (0, 1)],
    ]
    assert {error["message"].partition(" is ")[0] for error in reply.errors} == {"first"}
    assert reply.data["area"]["b"]["nodes"] == [{"c": None, "d": {"nodes": [{"path": f"r/{key}/p"}]}} for key in "ab"]
