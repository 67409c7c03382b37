"""Every field of Query beside others: each has the value and the errors that it has alone, errors come in the order of
the document, and nothing is read that the fields alone do not read. tests/outside/fuzzer has far more documents.

The long form: pytest --examples 2000 tests/graph/execution/test_root_fields.py
"""

import asyncio
from random import Random
from typing import Any

import orjson
import pytest

from graph.operation.selection import core_schema
from store.engine import ReadUsage, Store
from store.metadata.moves import Move, MoveState
from store.model.keys import node_key
from store.model.records import Put
from store.writing.create_update import Create, Update
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests.resolvers.search.test_near_list import Yard
from tests.schemas import schema_of
from tests.selection import examples
from tests.systems.asking import WIDE, Client, Reply

YARD = Yard.definition()
MOVE = "0000000000ab"
LATER = 2**41  # in milliseconds or seconds, for what expires

NODE = "{ id level children(first: 2) { totalCount nodes { key ... on Spot { north parent { name } } } } }"
PAST = "{ a: atRevision(n: 1) { name } b: atRevision(n: 99) { name } history(first: 1) { nodes { name } } path }"
LISTS = "{ totalCount edges { node { path children { nodes { name history { totalCount } } } } } }"
FIELDS = [
    "__typename",
    "__schema { queryType { name } }",
    '__type(name: "Spot") { name kind fields { name } }',
    'node(id: "yard:b") { id ... on Yard { name children { totalCount } } }',
    'nodes(ids: ["yard:a", "x", "yard:b"]) { id ... on Yard { history { totalCount } } }',
    f'yard(path: "a") {NODE}',
    f'yard(id: "yard:b") {PAST}',
    'yard(path: "a/b/broken") { name ... on Spot { north } }',
    'yard(path: "") { name }',
    "yard { name }",
    'yard(path: "a") { name children(first: -1) { totalCount } descendants { nodes { path } } }',
    f"yards {LISTS}",
    "yards(first: -1) { totalCount }",
    'yardsByPath(paths: ["a", "no", "a/b"]) { name }',
    'site(path: "a") { name level }',
    'site(path: "a/b") { name }',
    'spot(path: "a/b") { north ancestors { name } }',
    'searchYards(text: "a", under: "a") { complete nodes { path } }',
    'searchYards(text: "") { complete }',
    "yards(level: SPOT, where: {near: {latitude: 1.5, longitude: 2, kilometers: 50}}) { edges { kilometers cursor } }",
    "yards(where: {near: {latitude: 200, longitude: 0, kilometers: 50}}) { totalCount }",
    f'move(id: "{MOVE}") {{ id state from to }}',
    "moves(hierarchy: YARD) { id state }",
    "moves(hierarchy: YARD, first: -1) { id }",
    'deletedNode(id: "yard:gone") { path history { nodes { name } } atRevision(n: 1) { id } }',
    'changes(hierarchy: YARD, tree: "a") { cursor hasMore changes { event path revision } }',
    'changes(hierarchy: YARD, tree: "a", after: "x") { cursor }',
    "hierarchies { name mayWrite levels { name attributes { name type } } }",
    '_entities(representations: [{__typename: "Site", path: "a/b"}, {__typename: "Yard", id: "yard:a"}, 7]) '
    "{ __typename ... on Yard { path } }",
    "_service { sdl }",
]


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


def together(random: Random, fields: list[str]) -> str:
    """A document with these fields, some of them in fragments, or twice."""
    parts = [f"f{number}: {field}" for number, field in enumerate(fields)]
    parts += [part for part in parts if random.random() < 0.2]
    random.shuffle(parts)
    ways = ["{}", "{}", "... on Query {{ {} }}", "... @skip(if: false) {{ {} }}"]
    return f"{{ {' '.join(random.choice(ways).format(part) for part in parts)} }}"


def place(path: list[Any], data: Any) -> list[int]:
    """The place of an error among the response's keys and items, down to what is null."""
    if not path or data is None:
        return []
    number = path[0] if isinstance(data, list) else [*data].index(path[0])
    return [number, *place(path[1:], data[path[0]])]


def errors_of(reply: Reply) -> list[bytes]:
    return sorted(orjson.dumps({**error, "locations": None}) for error in reply.errors)


def test_every_field_of_query_is_known_here():
    kind = core_schema(schema_of(Yard)[0]).query_type
    assert kind is not None
    names = {field.partition(" ")[0].partition("(")[0] for field in FIELDS}
    assert names == {*kind.fields, "__typename", "__schema", "__type"}, "say how a new one is asked"


@pytest.mark.both_stores
async def test_fields_of_query_have_together_what_each_has_alone_and_read_no_more(yards):
    asked, random, failed = Client(yards, Yard, limits=WIDE), Random(7), 0  # noqa: S311
    for _ in range(examples(30, 600)):
        fields = random.sample(FIELDS, random.randint(2, 5))
        alone = [await asked.ask(f"{{ f{number}: {field} }}") for number, field in enumerate(fields)]
        text = together(random, fields)
        reply = await asked.ask(text)
        assert reply.data == {key: value for one in alone for key, value in one.data.items()}, text
        assert errors_of(reply) == sorted(error for one in alone for error in errors_of(one)), text
        places = [place(error.get("path", []), reply.data) for error in reply.errors]
        assert places == sorted(places), text
        for count in ("requests", "items", "units"):
            assert getattr(reply, count) <= sum(getattr(one, count) for one in alone), (text, count)
        failed += len(reply.errors) > 1
    assert failed > 5


FULL, PARTLY = {"id": "yard:a"}, {"id": "yard:a", "found": None}
UNDECIDED = [  # fields with a directive whose condition is null, their values, and the place of the error
    ('yard(path: "a") { id name @include(if: $null) }', None, []),
    ('yard(path: "a") { id found: children { totalCount @skip(if: $null) } }', PARTLY, ["found"]),
    ('yard(path: "a") { id found: descendants { edges { node @skip(if: $null) { id } } } }', PARTLY,
     ["found", "edges", 0]),
    ('yard(path: "a") { id ... on Spot { name @include(if: $null) } }', FULL, None),
    ('yard(path: "z") { key children { edges { node { id @skip(if: $null) } } } }',
     {"key": "z", "children": {"edges": []}}, None),
    ('searchYards(text: "b", under: "a") { nodes { id name @include(if: $null) } }', None, ["nodes", 0]),
]  # fmt: skip


@pytest.mark.both_stores
async def test_a_directive_whose_condition_is_null_fails_the_object_around_it_alone(yards):
    others = 'b: yard(path: "a/b") { id children { nodes { id } } } yards(first: 1) { nodes { id } }'
    expected = {"b": {"id": "yard:b", "children": {"nodes": [{"id": "yard:c"}]}}, "yards": {"nodes": [FULL]}}
    for field, value, path in UNDECIDED:
        asked = Client(yards, Yard, limits=WIDE).ask(
            f"query($null: Boolean = true) {{ a: {field} {others} }}", null=None
        )
        reply = await asked
        assert reply.data == {"a": value, **expected}, field
        assert [error["path"] for error in reply.errors] == ([] if path is None else [["a", *path]]), field


async def test_a_request_that_is_cancelled_ends_all_that_it_began(yards, monkeypatch):
    began = asyncio.Event()

    async def get(*_: Any, **__: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    for name in ("get", "range", "nodes"):
        monkeypatch.setattr(yards, name, get)
    query = '{ moves(hierarchy: YARD) { id } yard(path: "a") { name } }'
    asked = asyncio.ensure_future(Client(yards, Yard).ask(query))
    await began.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert asyncio.all_tasks() == {asyncio.current_task()}
