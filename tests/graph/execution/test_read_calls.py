"""Calls in `extensions.reads`: all that were made, in their rounds, with what caches answered, and for whom."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from graph.execution.operation import TRACED
from resolvers.access.callers import ANYONE
from resolvers.session.cache import PageCache
from store.connect import open_store
from store.engine import Store
from tests.engines import Engine
from tests.model import Ground, Model
from tests.rights.asking import Server, caller
from tests.systems.asking import Client

pytestmark = pytest.mark.both_stores

TREES = 51
ROOTS = "{ grounds { nodes { key children(first: 1) { nodes { key } } } } }"
NESTED = '{ area(path: "t00") { name children { nodes { name } } } }'


@pytest.fixture
async def server(store: Store) -> Server:
    """A store with some trees of a root and two children each."""
    roots = [f"t{number:02}" for number in range(TREES)]
    below = {(root, key): "PLOT" for root in roots for key in "ab"}
    await Model("ground", {**{(root,): "AREA" for root in roots}, **below}).plant(store)
    return Server(store, Ground)


async def reads_of(server: Server, query: str, who: Any = ANYONE) -> dict[str, Any]:
    """`extensions.reads` of a query."""
    _, content = await server.how(who, query, allow_mutations=True, report_reads=TRACED)
    body = orjson.loads(content)
    assert "errors" not in body
    reads: dict[str, Any] = body.get("extensions", {}).get("reads", {})
    return reads


def assert_sums(reads: dict[str, Any]) -> None:
    """The calls make up the counts."""
    calls = reads["calls"]
    assert len(calls) + reads.get("moreCalls", 0) == reads["requests"]
    assert sum(call["items"] for call in calls) == reads["items"]
    assert sum(call["units"] for call in calls) == reads["units"]
    assert sorted({call["round"] for call in calls}) == list(range(1, reads["rounds"] + 1))


async def test_children_are_a_lookup_and_one_query_of_the_parent(server):
    reads = await reads_of(server, NESTED)
    assert_sums(reads)
    listed, lookup = sorted(reads["calls"], key=lambda call: "keys" in call)  # in one round in any order
    on_dynamodb = server.store.version() is None
    assert lookup["keys"] == ['pk = "ground#t00" AND sk = "!"', 'pk = "ground#t00" AND sk = "#"']
    assert (lookup["index"], lookup["consistentRead"], lookup["round"]) == ("table", True, 1)
    assert (listed["index"], listed["keyCondition"]) == ("by_parent", 'parent = "ground#t00#"')
    assert listed["round"] == (1 if on_dynamodb else 2)
    operations = ["BatchGetItem", "Query"] if on_dynamodb else ["SELECT", "SELECT"]
    assert [lookup["operation"], listed["operation"]] == operations


async def test_a_request_of_many_calls_lists_them_all(server):
    reads = await reads_of(server, ROOTS)
    assert_sums(reads)
    assert len(reads["calls"]) == 54, "with the version of the hierarchy, which names moves"
    children = [call for call in reads["calls"] if call.get("limit") == 2]
    assert {call["keyCondition"] for call in children} == {f'parent = "ground#t{n:02}#"' for n in range(TREES)}
    assert {call["round"] for call in children} == {reads["rounds"]}
    (versions,) = [call for call in reads["calls"] if len(call.get("keys", ())) > 1]
    assert (len(versions["keys"]), versions["moreKeys"]) == (20, TREES - 20)


async def test_moves_and_changes_are_read_in_rounds(server):
    for query in (
        "{ moves(hierarchy: GROUND) { id } }",
        '{ changes(hierarchy: GROUND, tree: "t00") { cursor } }',
        '{ changes(hierarchy: GROUND, tree: "t00", after: null) { changes { path } } }',
    ):
        reads = await reads_of(server, query)
        assert reads["rounds"] == 1
        assert_sums(reads)


async def test_cache_hits_are_counted(server):
    assert (await reads_of(server, NESTED))["fromCache"] == {"pages": 0, "records": 0}
    again = await reads_of(server, NESTED.replace("name", "key"))  # another response
    on_dynamodb = server.store.version() is None
    assert again["fromCache"] == ({"pages": 0, "records": 0} if on_dynamodb else {"pages": 1, "records": 1})
    assert_sums(again)
    if not on_dynamodb:
        await reads_of(server, ROOTS)
        roots = await reads_of(server, ROOTS.replace("key", "name"))
        assert (roots["fromCache"]["pages"], roots["calls"]) == (1 + TREES, [])


async def test_a_mutation_lists_the_reads_of_its_edit_and_callers_with_grants_get_none(server):
    update = 'mutation { updateGround(input: {node: {path: "t00/a"}, name: "A"}) { node { name } } }'
    reads = await reads_of(server, update)
    assert len(reads["calls"]) == reads["requests"] > 1
    assert sum(call["units"] for call in reads["calls"]) == reads["units"]
    assert [one for one in (reads, *reads["calls"]) if {"round", "rounds"} & one.keys()] == []
    dry = update.replace(") {", ", dryRun: true) {", 1)
    assert "rounds" not in await reads_of(server, dry)
    assert await reads_of(server, NESTED, caller("read:ground/t00")) == {}
    assert await reads_of(server, NESTED, caller("write:ground/t00", reads=False))


# -- look-ahead: a query reads the same in every way of writing it, and no more than it selects ------------------------

AHEAD = {("r",): "AREA", ("r", "a"): "AREA", ("r", "b"): "AREA", ("r", "a", "p"): "PLOT", ("r", "b", "p"): "PLOT"}


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    """A client whose server has read the version of the tree, and caches nothing else."""
    async with open_store(engine.address(f"clade-{uuid.uuid4().hex}")) as store:
        await store.create()
        await Model("ground", AHEAD).plant(store)
        asked = Client(store, Ground, page_cache=PageCache(0))
        await asked.ask('{ area(path: "r") { path } }')
        yield asked


AHEAD_OF = [
    ('{ area(path: "r") { children { nodes { children { nodes { path } } } } } }', 2),
    ('{ area(path: "r") { children { edges { node { children { edges { node { path } } } } } } } }', 2),
    ('{ ground(path: "r") { ... on Area { children { nodes { ... on Area { children { nodes { key } } } } } } } }', 2),
    ('{ area(path: "r") { ...A } } fragment A on Ground { children { nodes { ...B } } } '
     "fragment B on Area { children { nodes { path } } }", 2),
    ('{ area(path: "r") { names { text } children { nodes { name(languages: ["de"]) n: names { language } } } } }', 2),
    ('{ area(path: "r/a") { ... on Area { children { nodes { path } } } } }', 2),
    ('{ ground(path: "r") { ... on Plot { children { nodes { path } } } } }', 1),
    ('{ area(path: "r/a") { children { totalCount } } }', 1),
    ('{ area(path: "r") { descendants(where: {path: {gte: "r/b"}}, first: 1) { nodes { path } } } }', 2),
    ('{ area(path: "r") { descendants(where: {path: {gte: "r/b"}}, first: 1) { totalCount nodes { path } } } }', 3),
]  # fmt: skip


async def test_everything_that_is_selected_and_nothing_else_is_read_in_one_round(client):
    for query, requests in AHEAD_OF:
        reply = await client.ask(query)
        assert (query, reply.errors, reply.requests) == (query, [], requests)
        assert reply.rounds == (2 if requests == 3 else 1)


SMALL = [
    '{ plot(path: "t07/a") { name ancestors { key } } }',
    '{ area(path: "t07") { children { nodes { key parent { key } } } descendants(level: PLOT) { totalCount } } }',
    '{ area(path: "t07") { children { nodes { key } } } grounds(first: 2) { nodes { key } totalCount } }',
]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_a_small_request_is_answered_before_the_event_loop_turns(store):
    await Model("ground", {("t07",): "AREA", ("t07", "a"): "PLOT"}).plant(store)
    server = Server(store, Ground)
    for query in SMALL:
        answering = server.how(ANYONE, query, report_reads=TRACED)
        with pytest.raises(StopIteration) as ended:
            answering.send(None)
        body = orjson.loads(ended.value.value[1])
        assert body["extensions"]["reads"]["requests"] > 0
        assert asyncio.all_tasks() == {asyncio.current_task()}
