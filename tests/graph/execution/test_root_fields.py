"""Every field of Query beside others: each has the value and the errors that it has alone, errors come in the order of
the document, and nothing is read that the fields alone do not read.

The long form: pytest --examples 2000 tests/graph/execution/test_root_fields.py
"""

import asyncio
from itertools import product
from random import Random
from typing import Any

import orjson
import pytest

from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.operation.selection import core_schema
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.engine import ReadUsage, Store
from store.metadata.moves import Move, MoveState
from store.model.keys import node_key
from store.model.records import Put
from store.writing.create_update import Create, Update
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.resolvers.search.test_near import Yard
from tests.schemas import schema_of
from tests.selection import examples
from tests.stores import READS, Interrupted
from tests.systems.asking import BOUNDLESS, WIDE, Client

YARD = Yard.definition()
SCHEMA, TYPES = schema_of(Yard)
CORE = core_schema(SCHEMA)
MOVE = "0000000000ab"
LATER = 2**41  # in milliseconds or seconds, for what expires

NODE = [
    "{ name path }",
    "{ id level children(first: 2) { totalCount nodes { key ... on Spot { north parent { name } } } } }",
    "{ name children(first: -1) { totalCount } }",
    "{ ...Deep key }",
    "{ history(first: 1) { nodes { revision name } } path }",
    "{ key history(first: 1) @include(if: $no) { totalCount } children { nodes { name history { totalCount } } } }",
    "{ a: atRevision(n: 1) { name } b: atRevision(n: 99) { name } descendants { nodes { path north } } }",
    "{ name @skip(if: $yes) id @include(if: $yes) }",
]
PAGE = [f"{{ totalCount nodes {node} }}" for node in NODE] + ["{ edges { a: node { path } b: node { id } } }"]
LOOKUP = ['(path: "a")', '(id: "yard:b")', '(path: "a/b/broken")', '(path: "no")', '(path: "")', "", "(path: $path)"]
FIELDS: dict[str, tuple[list[str], list[str]]] = {
    "__typename": ([""], [""]),
    "__schema": ([""], ["{ queryType { name } }"]),
    "__type": (['(name: "Spot")', '(name: "No")'], ["{ name kind fields { name } }"]),
    "node": (
        ['(id: "yard:b")', '(id: "yard:no")', '(id: "?")'],
        ["{ id ... on Yard { name children { totalCount } } }"],
    ),
    "nodes": (
        ['(ids: ["yard:a", "x", "yard:b"])', "(ids: [])"],
        ["{ id ... on Yard { history { totalCount } } }", "{ id }"],
    ),
    "yard": (LOOKUP, NODE),
    "yards": (["", "(first: 1)", "(first: -1)", "(first: $first)", '(after: "x")'], PAGE),
    "yardsByPath": (['(paths: ["a", "no", "a/b"])', '(paths: [""])'], NODE),
    "site": (
        LOOKUP,
        [node.replace("... on Spot { north parent { name } }", "level") for node in NODE if "north" not in node],
    ),
    "spot": (LOOKUP, NODE),
    "searchYards": (
        ['(text: "a", under: "a")', '(text: "")', '(text: "b", under: "no")'],
        ["{ complete nodes { path } }", f"{{ nodes {NODE[4]} }}"],
    ),
    "yardsNear": (
        ["(latitude: 1.5, longitude: 2)", "(latitude: 200, longitude: 0)"],
        ["{ edges { kilometers node { path } } }", f"{{ nodes {NODE[4]} }}"],
    ),
    "move": ([f'(id: "{MOVE}")', '(id: "no")'], ["{ id state from to }"]),
    "moves": (
        ["(hierarchy: YARD)", "(hierarchy: YARD, first: -1)", "(hierarchy: YARD, first: $first)"],
        ["{ id state }"],
    ),
    "deletedNode": (
        ['(id: "yard:gone")', '(id: "yard:a")'],
        ["{ path history { nodes { name } } atRevision(n: 1) { id } }"],
    ),
    "changes": (
        [
            '(hierarchy: YARD, tree: "a")',
            '(hierarchy: YARD, tree: "a", after: "x")',
            '(hierarchy: YARD, tree: "", under: "")',
        ],
        ["{ cursor hasMore changes { event path revision } }"],
    ),
    "hierarchies": ([""], ["{ name mayWrite levels { name attributes { name type } } }"]),
    "_entities": (
        [
            '(representations: [{__typename: "Spot", path: "a/b"}, {__typename: "Yard", id: "yard:a"}])',
            '(representations: [{__typename: "Site", path: "a/b"}, {__typename: "No"}, 7])',
            "(representations: 7)",
        ],
        ["{ __typename ... on Yard { path } }", "{ ... on Spot { id history { totalCount } } }"],
    ),
    "_service": ([""], ["{ sdl }"]),
}
"""Ways of asking for every field of Query: its arguments, and what is selected."""
DEEP = """fragment Deep on Yard { id ...Deeper }
fragment Deeper on Yard { children { nodes { path history { totalCount } } } }"""
VARIABLES = {
    "$yes": "$yes: Boolean! = true",
    "$no": "$no: Boolean! = false",
    "$path": '$path: Path = "a/b"',
    "$first": "$first: Int",
}


@pytest.fixture
async def yards(store: Store) -> Store:
    """A tree with histories, a deleted node, a move that has ended, and a node whose attribute is of another type."""
    writer = Writer(store)
    for path, level, node_id in (
        ("a", "SITE", "a"),
        ("a/b", "SPOT", "b"),
        ("a/b/broken", "SPOT", "c"),
        ("a/x", "SPOT", "gone"),
        ("z", "SITE", "z"),
    ):
        values = {"north": 1.5, "east": 2.0}
        await writer.write(Create(YARD, tuple(path.split("/")), level, path[-1], values, node_id), ReadUsage())
    await writer.write(Update(YARD, ("a", "b"), "bb", None, {}), ReadUsage())
    await writer.write(Delete(YARD, ("a", "x"), Policy.REFUSE), ReadUsage())
    (item,) = await store.get([node_key("yard", ("a", "b", "broken"))], ReadUsage())
    at = "2026-11-20T12:00:00.000Z"
    ended = Move(
        id=MOVE, from_pk="yard#a", from_sk="#y#", top_id="yard:y", state=MoveState.DONE, nodes=1, written=1, epoch=1,
        lease=LATER, started_at=at, ended_at=at,
    )  # fmt: skip
    await store.commit([Put({**item, "north": "x"}), Put(ended.item())])
    return store


def operation(random: Random) -> dict[str, list[tuple[str, str]]]:
    """Some fields of Query by their keys, each in parts that are merged, with the fragments that these need."""
    fields: dict[str, list[tuple[str, str]]] = {}
    for number in range(random.randint(1, 5)):
        name = random.choice([*FIELDS, "yard", "yards", "spot"])
        arguments, selections = FIELDS[name]
        field = f"f{number}: {name}{random.choice(arguments)}"
        asked = [random.choice(selections), "{ __typename }"][: 1 + (name != "__typename" and random.random() < 0.3)]
        for part, selection in enumerate(asked):
            directive = random.choice(["", "", "", "@include(if: $yes)", "@skip(if: $yes)"])
            whole = f"{field} {directive} {selection}"
            wrapped = random.choice([whole, whole, f"... on Query {{ {whole} }}", f"... @skip(if: $no) {{ {whole} }}"])
            fragment = ""
            if random.random() < 0.2:
                name_of_it = f"P{number}{part}"
                wrapped, fragment = f"...{name_of_it}", f"fragment {name_of_it} on Query {{ {whole} }}"
            fields.setdefault(f"f{number}", []).append((wrapped, fragment))
    return fields


def document(parts: list[tuple[str, str]]) -> str:
    body = " ".join(["{", *[part for part, _ in parts], "}", *[fragment for _, fragment in parts]])
    body += f" {DEEP}" if "...Deep " in body else ""
    declared = ", ".join(text for name, text in VARIABLES.items() if name in body)
    return f"query{f'({declared})' if declared else ''} {body}"


def execution(store: Store, budget: BudgetLimits = BOUNDLESS, *, kept: PageCache | None = None) -> Execution:
    def context() -> Context:
        return Context(Request(store, {"yard": YARD}, budget, page_cache=kept))

    return Execution(SCHEMA, TYPES, context, limits=WIDE)


async def ask(asked: Execution, text: str, variables: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await answer_to(asked, text, variables, allow_mutations=False)
    assert answer.executed, (text, answer.body)
    body: dict[str, Any] = orjson.loads(answer.content())
    places = [place(error.get("path", []), body["data"]) for error in body.get("errors", ())]
    assert places == sorted(places), text
    return body


def place(path: list[Any], data: Any) -> list[int]:
    """The place of an error among the response's keys and items, down to what is null."""
    if not path or data is None:
        return []
    number = path[0] if isinstance(data, list) else [*data].index(path[0])
    return [number, *place(path[1:], data[path[0]])]


def test_every_field_of_query_is_known_here():
    assert CORE.query_type is not None
    assert set(FIELDS) == {*CORE.query_type.fields, "__typename", "__schema", "__type"}, "say how a new one is asked"


@pytest.mark.both_stores
async def test_fields_of_query_have_together_what_each_has_alone(yards):
    asked, random = execution(yards, kept=PageCache(10_000_000)), Random(7)  # noqa: S311
    failed = 0
    for _ in range(examples(40, 600)):
        fields = operation(random)
        parts = [part for one in fields.values() for part in one]
        random.shuffle(parts)
        together = await ask(asked, document(parts))
        alone = [await ask(asked, document(one)) for one in fields.values()]
        assert together["data"] == {key: value for one in alone for key, value in one["data"].items()}, parts
        errors = [orjson.dumps({**one, "locations": None}) for one in together.get("errors", ())]
        expected = [orjson.dumps({**error, "locations": None}) for one in alone for error in one.get("errors", ())]
        assert sorted(errors) == sorted(expected), parts
        failed += len(errors) > 1
    assert failed > 5


FULL, PARTLY = {"id": "yard:a"}, {"id": "yard:a", "found": None}
UNDECIDED = [  # fields with a directive whose condition is null, their values, and the place of the error
    ('yard(path: "a") { id name @include(if: $null) }', None, []),
    ('yard(path: "a") { id found: children { totalCount @skip(if: $null) } }', PARTLY, ["found"]),
    ('yard(path: "a") { id found: children { nodes { id @include(if: $null) } } }', PARTLY, ["found", "nodes", 0]),
    ('yard(path: "a") { id found: descendants { edges { node @skip(if: $null) { id } } } }', PARTLY,
     ["found", "edges", 0]),
    ('yard(path: "a") { id ... on Spot { name @include(if: $null) } }', FULL, None),
    ('yard(path: "z") { key children { edges { node { id @skip(if: $null) } } } }',
     {"key": "z", "children": {"edges": []}}, None),
    ('searchYards(text: "none", under: "a") { nodes { id @include(if: $null) } }', {"nodes": []}, None),
    ('searchYards(text: "b", under: "a") { nodes { id name @include(if: $null) } }', None, ["nodes", 0]),
    ("yards(first: 1) { nodes { id name @include(if: $null) } }", None, ["nodes", 0]),
]  # fmt: skip


@pytest.mark.both_stores
async def test_a_directive_whose_condition_is_null_fails_the_object_around_it_alone(yards):
    others = 'b: yard(path: "a/b") { id children { nodes { id } } } yards(first: 1) { nodes { id } }'
    expected = {"b": {"id": "yard:b", "children": {"nodes": [{"id": "yard:c"}]}}, "yards": {"nodes": [FULL]}}
    for field, value, path in UNDECIDED:
        body = await ask(execution(yards), f"query($null: Boolean = true) {{ a: {field} {others} }}", {"null": None})
        assert body["data"] == {"a": value, **expected}, field
        assert [error["path"] for error in body.get("errors", ())] == ([] if path is None else [["a", *path]]), field


@pytest.mark.parametrize("budget", [{"fields": 51}, {"bytes": 500}])
async def test_a_budget_of_the_response_ends_all_of_it(yards, budget):
    asked = execution(yards, BudgetLimits(**{"nodes": 10_000, "fields": 10_000, "bytes": 100_000} | budget))
    nodes = "nodes { id name path revision updatedAt levelName children { totalCount } }"
    body = await ask(
        asked, f'{{ hierarchies {{ name }} yards {{ {nodes} }} yard(path: "a") {{ children {{ {nodes} }} }} }}'
    )
    assert body["data"] is None
    assert [error["extensions"]["code"] for error in body["errors"]] == ["BUDGET_EXCEEDED"]


async def test_too_many_nodes_are_an_error_of_the_field_that_asks_for_them(yards):
    asked = execution(yards, BudgetLimits(nodes=4))
    body = await ask(asked, '{ a: yard(path: "a") { name descendants { nodes { id } } } b: yard(path: "z") { name } }')
    assert body["data"] == {"a": {"name": "a", "descendants": {"nodes": [{"id": "yard:b"}, {"id": "yard:c"}]}},
                            "b": {"name": "z"}}  # fmt: skip
    body = await ask(
        asked, '{ a: yard(path: "a") { name d: descendants { nodes { parent { id } } } } z: yards { totalCount } }'
    )
    assert {(error["path"][0], error["extensions"]["code"]) for error in body["errors"]} == {("a", "BUDGET_EXCEEDED")}
    assert body["data"]["z"] == {"totalCount": 2}


ODD = ("hierarchies", "changes", "deletedNode", "move", "moves", "_service", "__schema", "__type")
ALONE = [f"{name}{arguments[0]} {selections[0]}" for name, (arguments, selections) in FIELDS.items() if name in ODD]
ALONE.append('past: yard(path: "z") { history(first: 1) { nodes { name } } }')
COMPILED = [f'yard(path: "a") {NODE[1]}', f"yards {PAGE[0]}", 'searchYards(text: "a", under: "a") { nodes { path } }']


@pytest.mark.both_stores
async def test_fields_read_together_no_more_than_alone(yards):
    async def cost(*fields: str) -> tuple[int, int, float]:
        reply = await asked.ask(f"{{ {' '.join(fields)} }}")
        assert not reply.errors, fields
        return reply.requests, reply.items, reply.units

    asked = Client(yards, Yard, limits=WIDE)
    alone = {field: await cost(field) for field in (*ALONE, *COMPILED)}
    for odd, compiled in product(ALONE, COMPILED):
        both = await cost(odd, compiled)
        sums = map(sum, zip(alone[odd], alone[compiled], strict=True))
        assert all(found <= most for found, most in zip(both, sums, strict=True)), (odd, compiled, both)


async def test_a_request_that_is_cancelled_ends_all_that_it_began(yards):
    began = asyncio.Event()

    async def begin(_: int) -> None:
        began.set()
        await asyncio.Event().wait()

    stuck: Any = Interrupted(yards, *READS, before=begin)
    query = '{ moves(hierarchy: YARD) { id } yard(path: "a") { name } }'
    asked = asyncio.ensure_future(answer_to(execution(stuck), query, allow_mutations=False))
    await began.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert asyncio.all_tasks() == {asyncio.current_task()}
