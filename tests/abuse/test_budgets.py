"""Budgets of one request: above a budget the response is rejected, in every way of answering."""

import asyncio
import gc
import time
from dataclasses import replace

import pytest
from graphql import GraphQLInterfaceType, GraphQLObjectType, get_named_type

from graph.compiler.plan_cache import PlanCache
from graph.errors import MAX_ERRORS_PER_CODE
from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from graph.schema import build_schema
from resolvers.session.budget import RELATION_FIELDS, BudgetLimits
from resolvers.session.request import Request
from store.concurrency import SLICE_SECONDS
from store.connect import open_store
from store.engine.protocol import Store
from store.errors import CladeError
from store.model.items import Put
from tests.model import Ground, Model
from tests.systems.asking import BOUNDLESS, PATIENT, WIDE, Client, count_nodes

PLOTS = 30
NODES = {("r",): "AREA"} | {("r", area): "AREA" for area in "abcd"}
NODES |= {("r", area, f"p{plot:02}"): "PLOT" for area in "abcd" for plot in range(PLOTS)}
ROOT, FIRST = (Model("ground", NODES).nodes[path].id for path in (("r",), ("r", "a")))
SCHEMA, TYPES = build_schema([Ground])


@pytest.fixture
async def planted(store: Store) -> Store:
    await Model("ground", NODES).plant(store)
    return store


def budget(**given: float) -> BudgetLimits:
    return replace(BudgetLimits(), **given)


# -- fields ------------------------------------------------------------------------------------------------------------

SIZES = {
    '{ area(path: "r") { id name } }': 1 + 2,
    '{ area(path: "r") { id children { totalCount } } }': 1 + 1 + RELATION_FIELDS + 1,
    '{ area(path: "r") { children { nodes { key name } } } }': 1 + RELATION_FIELDS + 1 + 4 * 2,
    '{ area(path: "r") { children { edges { cursor node { key } } pageInfo { hasNextPage endCursor } } } }':
        1 + RELATION_FIELDS + 2 + 4 * 2 + 4 * 1 + 2,
    '{ area(path: "r/a") { a: parent { name } b: ancestors { name } } }': 1 + 2 * RELATION_FIELDS + 1 + 1,
    '{ plot(path: "r/a/p00") { key children { nodes { key } totalCount } } }': 1 + 1 + RELATION_FIELDS + 2,
    '{ grounds { nodes { key } } }': RELATION_FIELDS + 1 + 1,
    f'{{ nodes(ids: ["{ROOT}", "{ROOT}", "ground:nowhere"]) {{ id }} }}': 1 + 2,
    '{ area(path: "r") { children { nodes { key children { nodes { key } } } } } }':
        1 + RELATION_FIELDS + 1 + 4 * (1 + RELATION_FIELDS + 1) + 4 * PLOTS,
    '{ area(path: "r") { descendants { nodes { key children { nodes { key } } } } } }':
        1 + RELATION_FIELDS + 1 + (4 + 4 * PLOTS) * (1 + RELATION_FIELDS + 1) + 4 * PLOTS,
}  # fmt: skip


@pytest.mark.parametrize("query", SIZES)
async def test_plans_and_the_interpreter_count_the_same_fields(planted, query):
    reply = await Client(planted, Ground).ask(query)  # which compares the two
    assert not reply.errors
    assert reply.fields == SIZES[query]


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("query", SIZES)
async def test_a_response_of_one_field_too_many_is_rejected(planted, query, planned):
    for fields, is_answered in ((SIZES[query], True), (SIZES[query] - 1, False)):
        body = await answer(planted, query, budget(fields=fields), planned=planned)
        if is_answered:
            assert "errors" not in body
        else:
            (error,) = body["errors"]
            assert body["data"] is None
            assert error["extensions"] == {"code": "BUDGET_EXCEEDED"}
            assert error["message"] == (
                f"The response has more than {fields:,} fields; one that leads to nodes counts as {RELATION_FIELDS}. "
                "Ask for fewer nodes, or for fewer fields of each."
            )


async def test_introspection_of_too_many_fields_is_rejected(planted):
    body = await answer(
        planted, "{ __schema { types { name fields { name type { name } } } } }", budget(fields=50), planned=True
    )
    assert [error["extensions"] for error in body["errors"]] == [{"code": "BUDGET_EXCEEDED"}]
    assert body["data"] is None


async def answer(store: Store, query: str, limits: BudgetLimits, *, planned: bool, **variables: object) -> dict:
    plans = PlanCache(core_schema(SCHEMA), TYPES) if planned else None
    execution = Execution(
        SCHEMA,
        lambda: Context(Request(store, {"ground": Ground.definition()}, limits), TYPES),
        plans=plans,
        limits=WIDE,
    )
    found = await execution.answer(GraphQLRequest(query, variables), allow_mutations=False)
    assert found.executed, found.body
    content = found.content()
    return {**found.body, "size": len(content)}


# -- bytes -------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def wordy(store: Store) -> Store:
    """A tree whose root has 150,000 characters in its note, as older tables may have it."""
    model = Model("ground", NODES)
    await model.plant(store)
    await store.commit([Put({**model.nodes["r",].item(), "note": "ä" * 150_000})])
    return store


@pytest.mark.parametrize("planned", [True, False])
async def test_a_repeated_long_text_takes_bounded_memory(wordy, planned):
    notes = " ".join(f"a{n}: nodes(ids: $ids) {{ ... on Area {{ note }} }}" for n in range(20))
    query = f"query ($ids: [ID!]!) {{ {notes} }}"
    one = await answer(wordy, query, budget(nodes=10**6), planned=planned, ids=[ROOT])
    assert "errors" not in one
    assert one["size"] > 20 * 300_000
    many = await answer(wordy, query, budget(nodes=10**6), planned=planned, ids=[ROOT] * 200)
    (error,) = many["errors"]
    assert error["extensions"] == {"code": "BUDGET_EXCEEDED"}
    assert "more than 16,000,000 bytes" in error["message"]
    assert many["size"] < 1_000


@pytest.mark.parametrize("planned", [True, False])
async def test_a_response_of_one_byte_too_many_is_rejected(planted, planned):
    query = '{ area(path: "r") { descendants { nodes { name path } } } }'
    whole = await answer(planted, query, BudgetLimits(), planned=planned)
    fits = await answer(planted, query, budget(bytes=whole["size"]), planned=planned)
    assert fits["size"] == whole["size"]
    refused = await answer(planted, query, budget(bytes=whole["size"] - 1), planned=planned)
    assert [error["extensions"]["code"] for error in refused["errors"]] == ["BUDGET_EXCEEDED"]


# -- read units --------------------------------------------------------------------------------------------------------


async def test_counts_spend_read_units(planted):
    counts = " ".join(f'a{n}: descendants(where: {{path: {{gte: "r/a{n:02}"}}}}) {{ totalCount }}' for n in range(25))
    query = f'{{ area(path: "r") {{ {counts} }} }}'
    reply = await Client(planted, Ground, budget=budget(read_units=8)).ask(query)
    assert {error["extensions"]["code"] for error in reply.errors} == {"BUDGET_EXCEEDED"}
    assert "more than 8 read units" in reply.errors[0]["message"]
    assert reply.units <= 8 + 3, "the last one had begun before"
    assert not (await Client(planted, Ground).ask(query)).errors


async def test_look_ups_and_lists_spend_read_units(planted):
    ids = [f"ground:n{number}" for number in range(300)]
    for query, variables in (
        ("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", {"ids": ids}),
        ('{ area(path: "r") { children { nodes { children(where: {key: {eq: "p01"}}) { nodes { key } } } } } }', {}),
    ):
        reply = await Client(planted, Ground, budget=budget(read_units=3)).ask(query, **variables)
        assert {error["extensions"]["code"] for error in reply.errors} == {"BUDGET_EXCEEDED"}
        assert reply.units <= 3 + 150  # of requests that were under way


# -- nodes, on every way -----------------------------------------------------------------------------------------------

WAYS = {
    "Query.node": f'{{ node(id: "{ROOT}") {{ id }} }}',
    "Query.nodes": f'{{ nodes(ids: ["{ROOT}", "{FIRST}", "{ROOT}"]) {{ id }} }}',
    "Query.ground": '{ ground(path: "r") { id } }',
    "Query.groundsByPath": '{ groundsByPath(paths: ["r", "r", "missing"]) { id } }',
    "Query.grounds": "{ grounds { nodes { id } } }",
    "Query.area": '{ area(path: "r") { id } }',
    "Query.areaPart": '{ areaPart(path: "r/nowhere") { id } }',
    "Query.plot": '{ plot(path: "r/a/p01") { id } }',
    "Query.tree": '{ tree(path: "r/nowhere") { id } }',
    "Query._entities": '{ _entities(representations: [{__typename: "Plot", path: "r/a/p01"}]) { ... on Plot { id } } }',
    "parent": '{ plot(path: "r/a/p01") { id parent { id } } }',
    "ancestors": '{ plot(path: "r/a/p01") { id ancestors { id } } }',
    "children": '{ area(path: "r") { id children { nodes { id } } } }',
    "descendants": '{ area(path: "r") { id descendants(level: PLOT, first: 7) { nodes { id } } } }',
    "GroundConnection.nodes": '{ area(path: "r") { children { nodes { id } } id } }',
    "GroundEdge.node": '{ area(path: "r") { id children { edges { node { id } } } } }',
}
OTHERS = {"GroundPayload.node", "GroundPayload.previousParent"}  # a mutation answers two at most


def test_every_field_that_returns_nodes_is_tested():
    """A new one without a query here fails this."""
    nodes = {"Node", "_Entity", "Ground", "GroundConnection", *TYPES.values()}
    found = set()
    for kind in core_schema(SCHEMA).type_map.values():
        if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType):
            shared = kind.name in nodes and kind.name != "GroundConnection"
            found |= {
                name if shared else f"{kind.name}.{name}"
                for name, field in kind.fields.items()
                if get_named_type(field.type).name in nodes
            }
    assert found - set(WAYS) - OTHERS == set()


@pytest.mark.parametrize("way", WAYS)
async def test_every_node_of_a_response_spends_the_budget(planted, way):
    reply = await Client(planted, Ground).ask(WAYS[way])
    assert not reply.errors
    assert reply.nodes >= count_nodes(reply.data)


# -- the event loop ----------------------------------------------------------------------------------------------------

MANY = {("r",): "AREA"} | {("r", f"a{area}"): "AREA" for area in range(40)}
MANY |= {("r", f"a{area}", f"p{plot:03}"): "PLOT" for area in range(40) for plot in range(50)}
EDGES = "edges { cursor node { id path key name level depth } }"
LARGE = f'{{ area(path: "r") {{ children {{ nodes {{ id children {{ {EDGES} }} }} }} }} }}'


@pytest.mark.parametrize("planned", [True, False])
async def test_a_large_response_yields_to_other_requests(tmp_path, planned):
    async with open_store(f"sqlite:///{tmp_path / 'many.db'}") as store:
        await store.create()
        await Model("ground", MANY).plant(store)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        began = time.thread_time()
        body = await answer(store, LARGE, BOUNDLESS, planned=planned)
        spent = time.thread_time() - began
        counting.cancel()
        assert "errors" not in body
        assert turns >= spent / (10 * SLICE_SECONDS), f"{turns} turns in {spent:.2f} s"


async def test_long_computation_without_waits_is_timed_out(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'many.db'}") as store:
        await store.create()
        await Model("ground", MANY).plant(store)
        limits = replace(PATIENT, request_seconds=0.05)
        execution = Execution(
            SCHEMA, lambda: Context(Request(store, {"ground": Ground.definition()}, BOUNDLESS), TYPES), limits=limits
        )
        aliases = " ".join(f"a{n}: {LARGE[1:-1]}" for n in range(10))
        found = await execution.answer(GraphQLRequest(f"{{ {aliases} }}"), allow_mutations=False)
        assert [error["extensions"]["code"] for error in found.body["errors"]] == ["TIMEOUT"]


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize(
    "wrong", ['children(after: "bm9uZQ") { nodes { id } }', "children(level: []) { nodes { id } }"]
)
async def test_errors_of_many_fields_are_limited_and_hold_no_frames(planted, planned, wrong):
    aliases = " ".join(f"a{n}: {wrong}" for n in range(25))
    query = f'{{ area(path: "r") {{ descendants {{ nodes {{ key {aliases} }} }} }} }}'
    gc.collect()
    before = [one for one in gc.get_objects() if isinstance(one, CladeError)]  # which other tests keep
    gc.disable()
    try:
        body = await answer(planted, query, BOUNDLESS, planned=planned)
        *told, last = body["errors"]
        assert len(told) == MAX_ERRORS_PER_CODE
        assert last["extensions"]["more"] + MAX_ERRORS_PER_CODE == 25 * (len(NODES) - 1)
        left = [
            one for one in gc.get_objects() if isinstance(one, CladeError) and not any(one is other for other in before)
        ]
        assert len(left) <= 2 * MAX_ERRORS_PER_CODE
        assert all(one.__traceback__ is None for one in left)
    finally:
        gc.enable()
