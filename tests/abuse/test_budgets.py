"""Budgets of one request over HTTP: above a budget the response is rejected."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib import import_module
from itertools import count
from math import inf
from types import SimpleNamespace

import pytest
from graphql import GraphQLInterfaceType, GraphQLObjectType, get_named_type
from graphql.pyutils import suggestion_list

from graph.errors import MAX_ERRORS_PER_CODE
from graph.hierarchies.locations import Location
from graph.operation import selection
from graph.operation.selection import core_schema, plain
from resolvers.session.budget import RELATION_FIELDS, BudgetLimits
from resolvers.session.cache import PageCache
from store import concurrency, errors
from store.connect import open_store
from store.engine import Store
from store.model import names
from store.model.records import Put
from store.writing.writer import Writer
from tests.abuse.door import door
from tests.model import Ground, Model
from tests.schemas import schema_of
from tests.systems.asking import BOUNDLESS, PATIENT, WIDE, Client, count_nodes, plant

PLOTS = 30
NODES = {("r",): "AREA"} | {("r", area): "AREA" for area in "abcd"}
NODES |= {("r", area, f"p{plot:02}"): "PLOT" for area in "abcd" for plot in range(PLOTS)}
MODEL = Model("ground", NODES)
ROOT, FIRST = (MODEL.nodes[path].id for path in (("r",), ("r", "a")))


@pytest.fixture
async def planted(store: Store) -> Store:
    await Model("ground", NODES).plant(store)
    return store


async def answer(store: Store, query: str, variables: dict | None = None, **budget: float):
    """The response to a query with another budget than the usual one."""
    limits = replace(BudgetLimits(), **budget)
    async with door(store, Ground, limits=WIDE, budget=limits) as ask:
        return await ask(query, **variables or {})


def exceeded(response) -> str:
    """The message of a response whose only error is an exceeded budget, and which has no data."""
    body = response.json()
    (error,) = body["errors"]
    assert (body["data"], error["extensions"]) == (None, {"code": "BUDGET_EXCEEDED"})
    return error["message"]


# -- fields and bytes --------------------------------------------------------------------------------------------------

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
async def test_a_response_of_one_field_too_many_is_rejected(planted, query):
    assert "errors" not in (await answer(planted, query, fields=SIZES[query])).json()
    assert exceeded(await answer(planted, query, fields=SIZES[query] - 1)) == (
        f"The response has more than {SIZES[query] - 1:,} fields; one that leads to nodes counts as {RELATION_FIELDS}. "
        "Ask for fewer nodes, or for fewer fields of each."
    )


async def test_introspection_of_too_many_fields_is_rejected(planted):
    exceeded(await answer(planted, "{ __schema { types { name fields { name } } } }", fields=50))


async def test_a_response_of_one_byte_too_many_is_rejected(planted):
    query = '{ area(path: "r") { descendants { nodes { name path } } } }'
    whole = await answer(planted, query)
    size = len(whole.content)
    assert "errors" not in (await answer(planted, query, bytes=size)).json()
    exceeded(await answer(planted, query, bytes=size - 1))


async def test_a_repeated_long_text_takes_bounded_memory(store):
    """A root has 150,000 characters in its note, as older tables may have it."""
    await MODEL.plant(store)
    await store.commit([Put({**MODEL.nodes["r",].item(), "note": "ä" * 150_000})])
    notes = " ".join(f"a{n}: nodes(ids: $ids) {{ ... on Area {{ note }} }}" for n in range(20))
    query = f"query ($ids: [ID!]!) {{ {notes} }}"
    one = await answer(store, query, variables={"ids": [ROOT]}, nodes=10**6)
    assert len(one.content) > 20 * 300_000
    many = await answer(store, query, variables={"ids": [ROOT] * 200}, nodes=10**6)
    assert "more than 16,000,000 bytes" in exceeded(many)


async def test_of_cached_lists_the_first_that_fit_into_the_budget_are_returned():
    limits, pages = replace(BudgetLimits(), nodes=1 + 4 + 2 * PLOTS), PageCache(1_000_000)
    async with open_store("sqlite://:memory:") as store, AsyncExitStack() as stack:
        await store.create()  # on DynamoDB pages are cached only when their tree has settled
        await Model("ground", NODES).plant(store)
        door_of = door(store, Ground, limits=WIDE, budget=limits, pages=pages)
        ask = await stack.enter_async_context(door_of)
        for path in ("r", "r/a", "r/b", "r/c", "r/d"):
            await ask(f'{{ area(path: "{path}") {{ children {{ nodes {{ key }} }} }} }}')
        body = (await ask('{ area(path: "r") { children { nodes { children { nodes { key } } } } } }')).json()
    lists = [area["children"] for area in body["data"]["area"]["children"]["nodes"]]
    assert [one and len(one["nodes"]) for one in lists] == [PLOTS, PLOTS, None, None]
    assert [error["path"][3] for error in body["errors"]] == [2, 3]


# -- read units --------------------------------------------------------------------------------------------------------

COUNTS = " ".join(f'a{n}: descendants(where: {{path: {{gte: "r/a{n:02}"}}}}) {{ totalCount }}' for n in range(25))


@pytest.mark.parametrize(
    ("query", "units", "under_way"),
    [
        (f'{{ area(path: "r") {{ {COUNTS} }} }}', 8, 3),
        ("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", 3, 150),
        (
            '{ area(path: "r") { children { nodes { children(where: {key: {eq: "p01"}}) { nodes { key } } } } } }',
            3,
            150,
        ),
    ],
)
async def test_counts_lookups_and_lists_spend_read_units(planted, query, units, under_way):
    ids = [f"ground:n{number}" for number in range(300)]
    client = Client(planted, Ground, budget=replace(BudgetLimits(), read_units=units))
    reply = await client.ask(query, ids=ids)
    assert {error["extensions"]["code"] for error in reply.errors} == {"BUDGET_EXCEEDED"}
    assert f"more than {units} read units" in reply.errors[0]["message"]
    assert reply.units <= units + under_way
    assert not (await Client(planted, Ground).ask(query, ids=ids)).errors


async def test_many_searches_of_one_operation_share_its_read_units(demo_store):
    fields = [f'f{n}: searchLocations(text: "{letter}", first: 100) {{ complete nodes {{ path }} }}'
              for n, letter in enumerate("abcdefghijklmnoprstu")]  # fmt: skip
    async with open_store(demo_store) as store:
        client = Client(store, Location, budget=replace(BudgetLimits(), read_units=200.0))
        reply = await client.ask(f"{{ {' '.join(fields)} }}")
    assert {error["extensions"]["code"] for error in reply.errors} == {"BUDGET_EXCEEDED"}
    assert len(reply.witness.spans) <= 2 * len(fields) + 1  # whatever was begun before the first one ended


async def test_the_mutations_of_one_document_share_its_read_units_and_end_with_them(planted):
    """Each returns its siblings, about a unit; what the edits themselves read is bounded by their transactions."""
    fields = [f'f{n}: updateGround(input: {{node: {{path: "r/a/p{n:02}"}}, name: "new"}}) {{ node {{ parent {{ '
              "children { nodes { name } } } } }" for n in range(20)]  # fmt: skip
    limits = replace(BudgetLimits(), read_units=12.0)
    async with door(planted, Ground, limits=WIDE, budget=limits, writer=Writer(planted)) as ask:
        body = (await ask(f"mutation {{ {fields[0]} }}")).json()
        assert (len(body["data"]["f0"]["node"]["parent"]["children"]["nodes"]), body.get("errors")) == (PLOTS, None)
        body = (await ask(f"mutation {{ {' '.join(fields)} }}")).json()
        (error,) = body["errors"]
        assert (body["data"], error["extensions"]) == (None, {"code": "BUDGET_EXCEEDED", "uncertain": True})
        assert "more than 12 read units" in error["message"]
        body = (await ask('{ area(path: "r/a") { children { nodes { name } } } }')).json()
    made = [node["name"] == "new" for node in body["data"]["area"]["children"]["nodes"]]
    assert made == sorted(made, reverse=True)
    assert 1 < sum(made) < 15


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
OTHERS = {f"{verb}GroundPayload.node" for verb in ("Create", "Update", "Move", "Delete", "Restore")}
OTHERS |= {f"{verb}GroundPayload.previousParent" for verb in ("Move", "Delete")}  # a mutation answers two at most
OTHERS.add("EditGroundPayload.nodes")  # one for each of at most 100 edits


def test_every_field_that_returns_nodes_is_tested():
    """A new one without a query here fails this."""
    schema, types = schema_of(Ground)
    nodes = {"Node", "_Entity", "Ground", "GroundConnection", *types.values()}
    found = set()
    for kind in core_schema(schema).type_map.values():
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
LONG_TEXTS = ", ".join(f'{{name: {{contains: "ä{n}"}}}}' for n in range(45))
CONDITIONS = f'{{ location(path: "US") {{ children(where: {{or: [{LONG_TEXTS}]}}) {{ totalCount }} }} }}'
SORTED = '{ area(path: "r") { descendants(orderBy: [{field: LEVEL}, {field: NAME}], first: 1) { nodes { id } } } }'
PLACED = '{ area(path: "r") { descendants(level: PLOT, orderBy: [{field: POSITION}], first: 1) { nodes { id } } } }'
COUNTED = '{ area(path: "r") { descendants(first: 1) { facets(fields: [LEVEL, NOTE]) { distinctCount } } } }'
ON_CHILDREN = """{ area(path: "r") {
  descendants(level: AREA, where: {children: {some: {name: {startsWith: "x"}}}}) { totalCount }
} }"""
PLACES = [(("US",), "COUNTRY"), *[(("US", f"s{n}"), "STATE", f"{n} {'é' * 16_000}") for n in range(40)]]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The URL of a store with many nodes and long names."""
    url = f"sqlite:///{tmp_path_factory.mktemp('large') / 'clade.db'}"

    async def fill() -> None:
        async with open_store(url) as store:
            await store.create()
            await Model("ground", MANY).plant(store)
            await plant(store, Location, PLACES)

    asyncio.run(fill())
    return url


PLAIN = {"accept-encoding": "identity"}  # others have turns while a thread compresses


@pytest.mark.parametrize(
    "query",
    [LARGE, CONDITIONS, SORTED, PLACED, COUNTED, ON_CHILDREN],
    ids=["lists", "conditions", "sorted", "placed", "counted", "children"],
)
async def test_long_computation_yields_to_other_requests(large, query, monkeypatch):
    """With a clock whose slice is over at each third look, another task has turns, and none where nothing yields."""
    seconds = concurrency.SLICE_SECONDS / 3
    looks = count(10**12)  # later than any real time by which the loop's slice began
    clock = SimpleNamespace(monotonic=lambda: next(looks) * seconds)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def turns_of_others(*, can_yield: bool) -> int:
        began = turns
        with monkeypatch.context() as patched:
            patched.setattr(concurrency, "time", clock)
            if not can_yield:
                patched.setattr(concurrency, "SLICE_SECONDS", inf)
            await ask(query)
        return turns - began

    async with (
        open_store(large) as store,
        door(store, Ground, Location, limits=WIDE, budget=BOUNDLESS, headers=PLAIN) as ask,
    ):
        assert "errors" not in (await ask(query)).json()
        other = asyncio.create_task(take_turns())
        without = await turns_of_others(can_yield=False)
        assert await turns_of_others(can_yield=True) >= without + 6
        other.cancel()


async def test_long_computation_without_waits_is_timed_out(large):
    aliases = " ".join(f"a{n}: {LARGE[1:-1]}" for n in range(10))
    limits = replace(PATIENT, request_seconds=0.05)
    async with open_store(large) as store, door(store, Ground, limits=limits, budget=BOUNDLESS) as ask:
        (error,) = (await ask(f"{{ {aliases} }}")).json()["errors"]
    assert error["extensions"] == {"code": "TIMEOUT"}


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", ['children(after: "bm9uZQ") { nodes { id } }', "children(level: []) { nodes { id } }"]
)
async def test_the_number_of_errors_is_limited(planted, wrong):
    aliases = " ".join(f"a{n}: {wrong}" for n in range(25))
    query = f'{{ area(path: "r") {{ descendants {{ nodes {{ key {aliases} }} }} }} }}'
    *told, last = (await answer(planted, query, nodes=10**6, fields=10**7)).json()["errors"]
    assert len(told) == MAX_ERRORS_PER_CODE
    assert last["extensions"]["more"] + MAX_ERRORS_PER_CODE == 25 * (len(NODES) - 1)


async def test_only_errors_of_variables_that_are_listed_have_suggestions(planted, monkeypatch):
    looked_for = []

    def suggested(name, names):
        looked_for.append(name)
        return suggestion_list(name, names)

    validation = import_module("graphql.utilities.validate_input_value")  # a function has its name in the package
    monkeypatch.setattr(validation, "suggestion_list", suggested)
    query = "query ($where: GroundCondition) { grounds(where: $where) { totalCount } }"
    wrong = 1500
    body = (await answer(planted, query, {"where": {f"nam{n}": {} for n in range(wrong)}})).json()
    *told, last = body["errors"]
    assert len(told) == MAX_ERRORS_PER_CODE
    assert "Did you mean 'name'" in told[1]["message"]
    assert last["extensions"] == {"code": "BAD_USER_INPUT", "more": wrong - MAX_ERRORS_PER_CODE}
    assert 0 < len(looked_for) <= MAX_ERRORS_PER_CODE + 1


async def test_a_long_list_of_levels_is_read_once_for_all_nodes_of_a_type(planted, monkeypatch):
    seen = []
    monkeypatch.setattr(selection, "plain", lambda member: seen.append(member) or plain(member))
    query = """query ($of: [GroundLevel!]) {
      area(path: "r") { descendants { nodes { childCount(level: $of) descendantCount(level: $of) } } }
    }"""
    levels = 900
    body = (await answer(planted, query, {"of": ["PLOT"] * levels})).json()
    nodes = body["data"]["area"]["descendants"]["nodes"]
    assert sum(node["childCount"] for node in nodes) == 4 * PLOTS
    assert len(seen) < 20 * levels, "for each field and type of node, not for each of the 124 nodes"


async def test_language_tags_are_checked_once_for_all_nodes_of_a_type(planted, monkeypatch):
    seen = []
    monkeypatch.setattr(names, "shown", lambda value: seen.append(value) or errors.shown(value))
    query = 'query ($of: [String!]) { area(path: "r") { descendants { nodes { nameLanguage(languages: $of) } } } }'
    body = (await answer(planted, query, {"of": ["a" * 9_000]})).json()
    nodes = body["data"]["area"]["descendants"]["nodes"]
    assert nodes == [{"nameLanguage": None}] * (4 + 4 * PLOTS)
    assert len(body["errors"]) > 1, "each node has the error"
    assert "is not a language tag" in body["errors"][0]["message"]
    assert body["errors"][0]["extensions"] == {"code": "BAD_USER_INPUT"}
    assert 0 < len(seen) < 10, "for each type of node, not for each of the 124 nodes"
