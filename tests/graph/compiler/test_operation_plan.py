"""Compiled plans answer as the interpreter does, for any query of any stored data.

The long form: pytest --examples 2000 tests/graph/compiler/test_operation_plan.py
"""

import asyncio
import gc
import sqlite3
from collections import Counter
from typing import Any

import msgspec
import orjson
import pytest
from graphql import parse
from graphql.execution.collect_fields import collect_subfields
from graphql.execution.values import VariableValues
from hypothesis import HealthCheck, given, settings

from graph.compiler.operation_plan import OperationPlan
from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.execution.response import OperationResponse
from graph.execution.response_cache import ResponseCache
from graph.operation import document_cache
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.operation.graphql_request import GraphQLRequest
from graph.operation.lookahead import SelectedFields
from graph.schema import build_schema
from resolvers.session.budget import BudgetLimits
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine.protocol import Store
from tests.graph.execution.test_response_cache import plant
from tests.model import GraphText, Ground, Model
from tests.selection import examples
from tests.systems.asking import BOUNDLESS, WIDE
from tests.systems.test_answers_model import Writer, grow, models, queries

SCHEMA, TYPES = build_schema([Ground])
DEFINITIONS = {"ground": Ground.definition()}
told: Counter[str] = Counter()


def executions(
    store: Store, *, kept: PageCache | None = None, cache: ResponseCache | None = None
) -> tuple[Execution, Execution]:
    """One with compiled plans, and one that interprets everything."""

    def context() -> Context:
        return Context(
            Request(store, DEFINITIONS, BOUNDLESS, page_cache=kept),
            TYPES,
        )

    def plain() -> Context:
        return Context(
            Request(store, DEFINITIONS, BOUNDLESS),
            TYPES,
        )

    plans = PlanCache(core_schema(SCHEMA), TYPES, keep=100)
    return (
        Execution(SCHEMA, context, plans=plans, cache=cache, limits=WIDE),
        Execution(SCHEMA, plain, limits=WIDE),
    )


def wire(answer: OperationResponse) -> dict[str, Any]:
    """An answer as a client reads it, the order of its errors left out; which are told of a code that has more of them
    depends on what was read first.
    """
    body = orjson.loads(answer.content())
    if "errors" in body:
        counted = {one["extensions"]["code"] for one in body["errors"] if "more" in one["extensions"]}
        body["errors"] = [
            one
            for one in body["errors"]
            if "more" in one["extensions"] or one["extensions"]["code"] not in counted or "path" not in one
        ]
        body["errors"].sort(key=lambda error: (str(error.get("path")), error["message"]))
    return body


async def compare(planning: Execution, plain: Execution, text: str, variables: dict[str, Any] | None = None) -> Any:
    """Both answers of an operation are the same, to the order of the fields; what it is."""
    one = await planning.answer(GraphQLRequest(text, variables), allow_mutations=False)
    other = await plain.answer(GraphQLRequest(text, variables), allow_mutations=False)
    assert one.executed == other.executed
    assert wire(one) == wire(other), (text, variables)
    assert list(_keys(wire(one).get("data"))) == list(_keys(wire(other).get("data"))), text
    return wire(one)


def _keys(value: Any):
    """All response keys in the order in which they are told."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _keys(one)
    elif isinstance(value, list):
        for one in value:
            yield from _keys(one)


async def differ(tree: tuple[int, int, bool, bool], asked: list[tuple[int, int]]) -> None:
    model = grow(*tree)
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await model.plant(store)
        planning, plain = executions(store)
        for kept, cache in ((None, None), (PageCache(10_000_000), ResponseCache(10_000_000))):
            planning, plain = executions(store, kept=kept, cache=cache)
            for seed, depth in asked * (1 if kept is None else 2):
                text = GraphText(Writer(seed, model, depth).query())
                body = await compare(planning, plain, text.text, text.variables)
                assert "errors" in body or not planning.fallbacks, text
                planning.fallbacks = 0
            told.update(planned=planning.compiled, unplanned=planning.interpreted)


@settings(max_examples=examples(8, 70), suppress_health_check=list(HealthCheck), deadline=None)
@given(models, queries)
def test_generated_queries_return_the_same_bytes_compiled_and_interpreted(tree, asked):
    asyncio.run(differ(tree, asked))


def test_every_generated_query_is_compiled():
    asyncio.run(differ((7, 60, False, True), [(seed, 3) for seed in range(examples(15, 60))]))
    print(f"planned operations: {told['planned']} of {told['planned'] + told['unplanned']}")
    assert told["unplanned"] == 0
    assert told["planned"] > 0


@pytest.fixture
async def planted(tmp_path):
    """A store on a file with a small tree, and its model."""
    model = Model("ground", {("a",): "AREA", ("a", "b"): "AREA", ("a", "p"): "PLOT", ("a", "b", "t"): "TREE"}, {})
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
        await model.plant(store)
        yield store, tmp_path / "clade.db"


QUERIES = [
    '{ area(path: "a") { id children { nodes { name __typename } edges { cursor node { level } } } } }',
    '{ ground(path: "a") { ... on Area { c: children(first: 1) { nodes { name } } } '
    "children { nodes { ... on Area { c: children(first: 1) { nodes { id } } } ... on Plot { c: children(first: 5) "
    "{ totalCount } } } } } }",
    "query Q($n: Int, $skip: Boolean = false) { grounds(first: $n) { totalCount nodes { id @skip(if: $skip) key } } }",
    "{ __typename grounds { __typename nodes { __typename } pageInfo { __typename startCursor } "
    "edges { __typename } } }",
    "query Q($level: GroundLevel) { grounds { nodes { childCount(level: $level) descendantCount(level: AREA) } } }",
    '{ nodes(ids: ["ground:nothing", "x"]) { id } node(id: "ground:nothing") { id } }',
    '{ area(path: "a") { children(first: -1) { totalCount } } }',
    '{ area(path: "a/p") { id } b: area { id } c: area(path: "") { id } }',
    '{ _entities(representations: [{__typename: "Area", path: "a"}, {__typename: "Ground", path: "a/p"}, '
    '{__typename: "Tree", path: "x"}]) { __typename ... on Ground { path parent { path } } ... on Area { key } } }',
    '{ _entities(representations: [{__typename: "Area", path: "a"}, {__typename: "Nothing"}]) { __typename } }',
    '{ area(path: "a") { children(level: []) { totalCount } name } }',
    "{ grounds { nodes { descendants { nodes { key children(first: 1) { t: __typename nodes { id } n: totalCount "
    "edges { cursor t: __typename node { id } } e: edges { t: __typename } pageInfo { hasNextPage hasPreviousPage "
    "startCursor endCursor t: __typename } } k: key descendants(level: TREE) { totalCount } } } } } }",
    "query Q($after: String) { grounds { nodes { children { nodes { children(after: $after) { totalCount } } } } } }",
    '{ grounds { nodes { children { nodes { key children(after: "x") { totalCount } } } } } }',
    "{ grounds { nodes { descendants { nodes { name children { nodes { key } } parent { key } } } } } }",
    "{ grounds { nodes { descendants { nodes { children { totalCount @skip(if: true) } } } } } }",
]


@pytest.mark.parametrize("query", QUERIES)
async def test_queries_have_equal_responses_compiled_and_interpreted(planted, query):
    store, _ = planted
    planning, plain = executions(store)
    await compare(planning, plain, query, {})


@pytest.mark.parametrize(
    "variables", [{"n": 1}, {"n": None}, {"n": 1, "skip": True}, {"n": "x"}, {"n": 1, "skip": None}, {"n": -1}]
)
async def test_variables_decide_alike_and_are_rejected_alike(planted, variables):
    store, _ = planted
    planning, plain = executions(store)
    for given_now in (variables, {"n": 0}, variables):
        await compare(planning, plain, QUERIES[2], given_now)


LEAVES = """query($tags: [String!], $level: GroundLevel) { grounds { nodes {
  name(languages: $tags) childCount(level: $level)
  children { nodes { key name(languages: $tags) children { nodes { name(languages: $tags) } } } } } } }"""


async def test_variables_of_leaves_are_values_of_one_plan(planted):
    store, _ = planted
    planning, plain = executions(store, kept=PageCache(1_000_000))
    values = [{"tags": [tag], "level": level} for tag in ("de", "en", "fr", "pt") for level in ("AREA", None)]
    for variables in [*values, {"tags": ["?"]}, *values[::-1], {}]:
        await compare(planning, plain, LEAVES, variables)
    assert len(planning._documents.get(LEAVES).plans) == 1
    assert planning.compiled >= 2 * len(values)


BROKEN = {
    "a name that is missing": {"name": None},
    "a level that is unknown": {"level": "RIVER"},
    "a revision past 32 bits": {"revision": 2**40},
    "an attribute of another type": {"note": 5},
    "an attribute that is a list": {"note": ["x"]},
}
ODD = {"a number for a name": {"name": 5}, "a time that is a number": {"updated_at": 7}}


@pytest.mark.parametrize("harm", [*BROKEN.values(), *ODD.values()], ids=[*BROKEN, *ODD])
async def test_data_of_wrong_types_has_equal_responses_compiled_and_interpreted(planted, harm):
    store, file = planted
    change_bodies(file, "#b#", harm)
    planning, plain = executions(store)
    below = "children { nodes { id name level revision updatedAt parent { name } ... on Area { note } } }"
    body = await compare(planning, plain, f'{{ area(path: "a") {{ name {below} }} }}')
    assert ("errors" in body) == (harm in BROKEN.values())


@pytest.mark.parametrize("harm", [{"name": None}, {"kids": {"TREE": 0}, "below": {"TREE": 0}}], ids=["name", "counts"])
async def test_a_node_without_children_has_equal_responses_compiled_and_interpreted(planted, harm):
    store, file = planted
    change_bodies(file, "#b#t#", harm)
    planning, plain = executions(store, kept=PageCache(1_000_000))
    below = "nodes { name level children { totalCount nodes { key } } }"
    for _ in range(2):
        body = await compare(planning, plain, f'{{ area(path: "a") {{ descendants {{ {below} }} }} }}')
        assert ("errors" in body) == ("name" in harm)


def change_bodies(file, sk: str, harm: dict[str, Any]) -> None:
    """Write a record as no code of ours would."""
    with sqlite3.connect(file) as connection:
        (body,) = connection.execute("SELECT body FROM items WHERE sk = ?", (sk,)).fetchone()
        item = {**msgspec.msgpack.decode(body), **harm}
        connection.execute("UPDATE items SET body = ? WHERE sk = ?", (msgspec.msgpack.encode(item), sk))
    connection.close()


def test_compiling_takes_twice_the_work_for_twice_the_depth_and_not_a_power_of_it(monkeypatch):
    """Eight ways at fifteen levels would be 8^15 types, were they not shared by type and merged field nodes."""
    assert collections_of(monkeypatch, 16) <= 2.2 * collections_of(monkeypatch, 8)


def collections_of(monkeypatch, levels: int) -> int:
    """How often the fields below some fields are collected, when all of a document of so many levels is compiled."""
    fragments = []
    for depth in range(levels):
        below = f"children {{ nodes {{ ...F{depth + 1} }} }}" if depth < levels - 1 else "name"
        kinds = " ".join(f"... on {name} {{ k{depth}: key {below} }}" for name in ("Area", "AreaPart", "Plot", "Tree"))
        fragments.append(f"fragment F{depth} on Ground {{ ... on Ground {{ id }} {kinds} ... on Node {{ id }} }}")
    document = parse("{ grounds { nodes { ...F0 } } }\n" + "\n".join(fragments))
    none = VariableValues({}, {})
    fields = SelectedFields(core_schema(SCHEMA), TYPES, document.definitions, document.definitions[0], none)
    calls: list[Any] = []

    def collect(*arguments: Any) -> Any:
        calls.append(arguments)
        return collect_subfields(*arguments)

    monkeypatch.setattr("graph.operation.lookahead.collect_subfields", collect)
    plan = OperationPlan(fields, none, frozenset())
    walk(plan.roots[0].listing.connection, set())
    return len(calls)


def walk(connection: Any, seen: set[int]) -> None:
    """Compile every type that can be reached."""
    if id(connection) in seen:
        return
    seen.add(id(connection))
    for position in connection.positions.values():
        for level in DEFINITIONS["ground"].levels:
            for field in position.compiled("ground", level).lists:
                walk(field.connection, seen)


async def test_a_plan_with_an_error_falls_back_once_and_reads_nothing_twice(planted):
    store, _ = planted
    planning, plain = executions(store)
    await compare(planning, plain, '{ a: area(path: "a") { id } b: plot(path: "a") { id } }')
    assert (planning.compiled, planning.fallbacks) == (0, 1)


async def test_an_operation_with_a_field_that_no_plan_compiles_is_interpreted_from_the_start(planted):
    store, _ = planted
    planning, plain = executions(store)
    revisions = "history { totalCount nodes { name } }"
    for query in (
        f'{{ area(path: "a") {{ id {revisions} }} }}',
        '{ area(path: "a") { children { nodes { ... on Area { atRevision(n: 1) { name } } } } } }',
        f'{{ area(path: "a") {{ ...more }} }} fragment more on Area {{ id children {{ nodes {{ {revisions} }} }} }}',
        f'{{ area(path: "nowhere") {{ {revisions} }} }}',
    ):
        await compare(planning, plain, query)
    assert (planning.compiled, planning.fallbacks, planning.interpreted) == (0, 0, 4)
    query = f'query($deep: Boolean!) {{ area(path: "a") {{ id ... @include(if: $deep) {{ {revisions} }} }} }}'
    for deep in (False, True, False):
        await compare(planning, plain, query, {"deep": deep})
    assert (planning.compiled, planning.fallbacks, planning.interpreted) == (2, 0, 5)


async def test_a_fault_of_a_plan_is_counted_and_logged_apart(planted, monkeypatch, caplog):
    store, _ = planted
    planning, plain = executions(store)

    async def fail(*_):
        raise KeyError("a mistake")

    monkeypatch.setattr("graph.execution.operation.run", fail)
    await compare(planning, plain, '{ area(path: "a") { id } }')
    assert (planning.compiled, planning.fallbacks, planning.compiler_errors) == (0, 0, 1)
    (record,) = caplog.records
    assert (record.levelname, record.exc_info[0]) == ("ERROR", KeyError)
    assert record.getMessage() == "Unexpected error in a compiled query; it is interpreted instead."


async def test_introspection_and_the_subgraphs_schema_are_interpreted(planted):
    store, _ = planted
    planning, plain = executions(store)
    await compare(planning, plain, "{ __schema { queryType { name } } }")
    await compare(planning, plain, "{ _service { sdl } }")
    assert planning.interpreted == 2


@pytest.mark.parametrize("bound", ["", "\u0007", "x" * 5000])
async def test_a_bound_that_no_key_can_have_is_rejected(planted, bound):
    store, _ = planted
    planning, plain = executions(store)
    query = 'query Q($from: String!) { area(path: "a") { children(where: {key: {gte: $from}}) { nodes { key } } } }'
    body = await compare(planning, plain, query, {"from": bound})
    assert [error["extensions"]["code"] for error in body["errors"]] == ["BAD_USER_INPUT"]


async def test_bounds_of_keys_are_normalized_like_keys(planted):
    store, _ = planted
    await plant(store, "a/\u00e9t\u00e9")
    planning, plain = executions(store)
    query = 'query Q($from: String!) { area(path: "a") { children(where: {key: {gte: $from}}) { nodes { key } } } }'
    body = await compare(planning, plain, query, {"from": "e\u0301te\u0301"})
    assert body["data"]["area"]["children"]["nodes"] == [{"key": "\u00e9t\u00e9"}]


async def test_a_page_that_is_twice_in_a_response_is_written_twice(planted):
    store, _ = planted
    await plant(store, "a/b/c", "a/b/d", "a/e", "a/e/f", "a/e/g", "a/h", "a/h/i")
    planning, plain = executions(store, kept=PageCache(1_000_000))
    for leaf in ("id", "key", "name"):
        below = f"descendants(level: AREA) {{ nodes {{ key parent {{ children {{ nodes {{ {leaf} }} }} }} }} }}"
        await compare(planning, plain, f'{{ area(path: "a") {{ {below} }} }}')
    for path in ("a", "a/b", "a/e", "a/h"):
        await compare(planning, plain, f'{{ area(path: "{path}") {{ children {{ nodes {{ key }} }} }} }}')


async def test_two_requests_that_read_the_same_pages_at_once_each_write_their_own(planted):
    store, _ = planted
    await plant(store, "a/b/c", "a/b/d", "a/e", "a/e/f", "a/e/g", "a/h", "a/h/i")
    queries = [
        f"{{ {root} {{ children {{ nodes {{ key children {{ nodes {{ key }} }} }} }} {more} }} }}"
        for root in ('area(path: "a")', 'ground(path: "a")', 'area(path: "a/e")')
        for more in ("", "parent { children { nodes { key } } }")
    ]
    for _ in range(examples(1, 5)):
        planning, plain = executions(store, kept=PageCache(1_000_000))
        for pair in zip(queries, reversed(queries), strict=True):
            await asyncio.gather(*[compare(planning, plain, query) for query in (*pair, *queries)])


async def test_nodes_returned_twice_count_twice_compiled_and_interpreted(planted):
    store, _ = planted

    def context() -> Context:
        return Context(Request(store, DEFINITIONS, BudgetLimits(20)), TYPES)

    planning = Execution(SCHEMA, context, plans=PlanCache(core_schema(SCHEMA), TYPES, keep=10))
    plain = Execution(SCHEMA, context)
    ids = '"ground:n0", ' * 8
    for query in (
        f"{{ nodes(ids: [{ids}]) {{ ... on Area {{ descendants {{ nodes {{ id }} }} }} }} }}",
        '{ area(path: "a") { children { nodes { parent { children { nodes { parent { children { nodes { id } } } } } } '
        "} } } }",
    ):
        body = await compare(planning, plain, query)
        assert "BUDGET_EXCEEDED" in {error["extensions"]["code"] for error in body["errors"]}


async def test_a_field_whose_every_part_is_skipped_is_an_empty_object(planted, caplog):
    store, _ = planted
    planning, plain = executions(store)
    for query in (
        "{ grounds { totalCount @skip(if: true) } }",
        '{ area(path: "a") { children { nodes @skip(if: true) { id } } } }',
        '{ area(path: "a") { children { nodes { id @skip(if: true) } edges { cursor @skip(if: true) } } } }',
        '{ area(path: "a") { id @skip(if: true) } }',
    ):
        await compare(planning, plain, query)
    assert planning.fallbacks == 0
    assert not caplog.records


@pytest.mark.parametrize("variables", [{"s": None}, {}, {"s": "x"}, {"s": True, "deep": {}}])
async def test_variables_of_directives_and_nested_ones_never_fail_the_server(planted, variables):
    store, _ = planted
    deep: Any = {}
    for _ in range(400):
        deep = {"a": deep}
    planning, plain = executions(store, cache=ResponseCache(1_000_000))
    query = "query Q($s: Boolean = false) { grounds @skip(if: $s) { totalCount } }"
    given_now = {name: deep if name == "deep" else value for name, value in variables.items()}
    await compare(planning, plain, query, given_now)


def plans_alive() -> int:
    gc.collect()
    return sum(isinstance(one, OperationPlan) for one in gc.get_objects())


async def test_cached_pages_keep_no_plan_alive(planted, monkeypatch):
    monkeypatch.setattr(document_cache, "MAX_DOCUMENTS", 3)
    store, _ = planted
    before = plans_alive()  # of other tests
    kept = PageCache(1_000_000)
    execution = Execution(
        SCHEMA,
        lambda: Context(Request(store, DEFINITIONS, page_cache=kept), TYPES),
        plans=PlanCache(core_schema(SCHEMA), TYPES, keep=3),
    )
    for number in range(30):
        query = f'{{ area(path: "a") {{ a{number}: children {{ nodes {{ b{number}: key }} }} }} }}'
        await execution.answer(GraphQLRequest(query), allow_mutations=False)
    assert plans_alive() <= before + 3 + 1
