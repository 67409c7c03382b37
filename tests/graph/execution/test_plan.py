"""Compiled plans answer as the interpreter does, for any query of any stored data.

The long form: pytest --examples 2000 tests/graph/execution/test_plan.py
"""

import asyncio
import sqlite3
from collections import Counter
from functools import partial
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from graph.execution.operation import Execution
from graph.execution.plan_cache import PlanCache
from graph.execution.response import OperationResponse, ResponseCache
from graph.operation.context import Context
from graph.operation.selection import core_schema
from graph.schema import build_schema
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store
from store.engine import Store
from tests.answers import answer_to
from tests.model import GraphText, Ground, Model
from tests.selection import examples
from tests.systems.asking import BOUNDLESS, WIDE, plant
from tests.systems.test_answers_model import Writer, grow, models, queries

SCHEMA, TYPES = build_schema([Ground])
DEFINITIONS = {"ground": Ground.definition()}
told: Counter[str] = Counter()


def executions(
    store: Store,
    *,
    kept: PageCache | None = None,
    cache: ResponseCache | None = None,
    budget: BudgetLimits = BOUNDLESS,
) -> tuple[Execution, Execution]:
    """One with compiled plans, and one that interprets everything and keeps no pages."""

    def context(kept: PageCache | None = None) -> Context:
        return Context(Request(store, DEFINITIONS, budget, page_cache=kept), TYPES)

    plans = PlanCache(core_schema(SCHEMA), TYPES)
    planning = Execution(SCHEMA, partial(context, kept), plans=plans, cache=cache, limits=WIDE)
    return planning, Execution(SCHEMA, context, limits=WIDE)


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
    one = await answer_to(planning, text, variables, allow_mutations=False)
    other = await answer_to(plain, text, variables, allow_mutations=False)
    assert one.executed == other.executed
    assert not planning.compiler_errors, text
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
    assert told["planned"] > told["unplanned"] == 0


NODES = {"a": "AREA", "a/b": "AREA", "a/p": "PLOT", "a/b/t": "TREE", "a/b/c": "AREA", "a/e": "AREA", "a/e/f": "AREA"}


@pytest.fixture
async def planted(tmp_path):
    """A store on a file with a small tree."""
    model = Model("ground", {tuple(path.split("/")): level for path, level in NODES.items()}, {})
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
        await model.plant(store)
        await plant(store, Ground, [(["a", "\u00e9t\u00e9"], "AREA")])
        yield store


QUERIES = [
    '{ area(path: "a") { id children { nodes { name __typename } edges { cursor node { level } } } } }',
    '{ ground(path: "a") { ... on Area { c: children(first: 1) { nodes { name } } } '
    "children { nodes { ... on Area { c: children(first: 1) { nodes { id } } } ... on Plot { c: children(first: 5) "
    "{ totalCount } } } } } }",
    "query Q($n: Int, $skip: Boolean = false) { grounds(first: $n) { totalCount nodes { id @skip(if: $skip) key } } }",
    "{ __typename grounds { __typename nodes { __typename } pageInfo { __typename startCursor } "
    "edges { __typename } } }",
    "query Q($level: [GroundLevel!]) { grounds { nodes { childCount(level: $level) descendantCount(level: AREA) } } }",
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
    '{ area(path: "a") { children { nodes @skip(if: true) { id } edges { cursor @skip(if: true) } } } }',
    '{ area(path: "a") { id @skip(if: true) } grounds { totalCount @skip(if: true) } }',
    '{ area(path: "a") { descendants(level: AREA) { nodes { key parent { children { nodes { key } } } } } } }',
    '{ area(path: "a/e") { children { nodes { key } } parent { children { nodes { key } } } } }',
    '{ area(path: "a") { children(where: {key: {gte: "e\u0301te\u0301"}}) { nodes { key } } } }',
    '{ area(path: "a") { children(where: {key: {gte: ""}}) { nodes { key } } } }',
    '{ area(path: "a") { children(where: {key: {gte: "\\u0007"}}) { nodes { key } } } }',
    "{ __schema { queryType { name } } _service { sdl } }",
]


@pytest.mark.parametrize("query", QUERIES)
async def test_queries_have_equal_responses_compiled_and_interpreted(planted, query):
    planning, plain = executions(planted, kept=PageCache(1_000_000))
    for _ in range(2):
        await asyncio.gather(*[compare(planning, plain, one, {}) for one in (query, query, QUERIES[-5])])


async def test_bounds_of_keys_are_normalized_like_keys(planted):
    planning, plain = executions(planted)
    body = await compare(planning, plain, QUERIES[-4])
    assert body["data"]["area"]["children"]["nodes"] == [{"key": "\u00e9t\u00e9"}]


DEEP: dict[str, Any] = {"n": 1}  # more levels of variables than Python would hash
for _ in range(400):
    DEEP = {**DEEP, "deep": DEEP}


@pytest.mark.parametrize(
    "variables",
    [{"n": 1}, {"n": None}, {"n": 1, "skip": True}, {"n": "x"}, {"n": 1, "skip": None}, {"n": -1}, {"skip": "x"}, DEEP],
)
async def test_variables_decide_alike_and_are_rejected_alike(planted, variables):
    planning, plain = executions(planted, cache=ResponseCache(1_000_000))
    for given_now in (variables, {"n": 0}, variables):
        await compare(planning, plain, QUERIES[2], given_now)


LEAVES = """query($tags: [String!], $level: [GroundLevel!]) { grounds { nodes {
  name(languages: $tags) childCount(level: $level)
  children { nodes { key name(languages: $tags) children { nodes { name(languages: $tags) } } } } } } }"""


async def test_variables_of_leaves_are_values_of_one_plan(planted):
    planning, plain = executions(planted, kept=PageCache(1_000_000))
    values = [{"tags": [tag], "level": level} for tag in ("de", "en") for level in ("AREA", None)]
    for variables in [*values, {"tags": ["?"]}, *values[::-1], {}]:
        await compare(planning, plain, LEAVES, variables)
    assert planning.compiled >= 2 * len(values)


INSIDE = [  # arguments with a variable inside of a literal, its type and its values
    ("children(where: {key: {gte: $v}})", "String", ["b", "f", "zz"]),
    ("children(where: {name: {startsWith: $v}})", "String", ["N b", "N e", "x"]),
    ("children(where: {and: [{name: {ne: $v}}]})", "String", ["N b", "N e"]),
    ("children(level: [$v])", "GroundLevel!", ["AREA", "PLOT"]),
    ("descendants(where: {path: {in: [$v]}})", "Path!", ["a/b", "a/e/f"]),
    ("descendants(orderBy: [{field: NAME, direction: $v}])", "OrderDirection", ["ASC", "DESC"]),
    ("descendants(orderBy: {field: $v})", "GroundOrderField!", ["NAME", "LEVEL"]),
]
INSIDE_LEAVES = "query($v: String!) { grounds { nodes { name(languages: [$v]) childCount } } }"


@pytest.mark.parametrize(("field", "kind", "values"), INSIDE)
async def test_a_variable_inside_of_a_literal_has_the_value_of_each_request(planted, field, kind, values):
    planning, plain = executions(planted, kept=PageCache(1_000_000))
    query = f'query($v: {kind}) {{ area(path: "a") {{ {field} {{ totalCount nodes {{ path }} }} }} }}'
    found = [await compare(planning, plain, query, {"v": value}) for value in [*values, *values]]
    assert not any("errors" in one for one in found)
    assert len({repr(one) for one in found}) == len(values)


async def test_a_variable_in_a_list_of_languages_has_the_value_of_each_request(planted):
    planning, plain = executions(planted, kept=PageCache(1_000_000))
    for value in ("de", "?", "en", "de"):
        body = await compare(planning, plain, INSIDE_LEAVES, {"v": value})
        assert ("errors" in body) is (value == "?")


BROKEN = {
    "a name that is missing": {"name": None},
    "a level that is unknown": {"level": "RIVER"},
    "a revision past 32 bits": {"revision": 2**40},
    "an attribute of another type": {"note": 5},
    "an attribute that is a list": {"note": ["x"]},
    "a number for a name": {"name": 5},
    "a time that is a number": {"updated_at": 7},
}


@pytest.mark.parametrize("harm", BROKEN.values(), ids=BROKEN)
async def test_data_of_wrong_types_has_equal_responses_compiled_and_interpreted(planted, tmp_path, harm):
    change_bodies(tmp_path / "clade.db", "#b#", harm)
    planning, plain = executions(planted)
    below = "children { nodes { id name level revision updatedAt parent { name } ... on Area { note } } }"
    body = await compare(planning, plain, f'{{ area(path: "a") {{ name {below} }} }}')
    assert "errors" in body


@pytest.mark.parametrize("harm", [{"name": None}, {"kids": {"TREE": 0}, "below": {"TREE": 0}}], ids=["name", "counts"])
async def test_a_node_without_children_has_equal_responses_compiled_and_interpreted(planted, tmp_path, harm):
    change_bodies(tmp_path / "clade.db", "#b#t#", harm)
    planning, plain = executions(planted, kept=PageCache(1_000_000))
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


async def test_a_plan_with_an_error_falls_back_once_and_reads_nothing_twice(planted):
    planning, plain = executions(planted)
    await compare(planning, plain, '{ a: area(path: "a") { id } b: plot(path: "a") { id } }')
    assert (planning.compiled, planning.fallbacks) == (0, 1)


async def test_an_operation_with_a_field_that_no_plan_compiles_is_interpreted_from_the_start(planted):
    planning, plain = executions(planted)
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


async def test_nodes_returned_twice_count_twice_compiled_and_interpreted(planted):
    planning, plain = executions(planted, budget=BudgetLimits(20))
    ids = '"ground:n0", ' * 8
    for query in (
        f"{{ nodes(ids: [{ids}]) {{ ... on Area {{ descendants {{ nodes {{ id }} }} }} }} }}",
        '{ area(path: "a") { children { nodes { parent { children { nodes { parent { children { nodes { id } } } } } } '
        "} } } }",
    ):
        body = await compare(planning, plain, query)
        assert "BUDGET_EXCEEDED" in {error["extensions"]["code"] for error in body["errors"]}
