"""Errors below the fields of Query: what is null because of them, their paths and number, and what is not cached."""

import gc
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from graph.execution.operation import Execution
from graph.execution.response import ResponseCache
from graph.execution.run import Rows
from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node, computed
from graph.operation.context import Context
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.engine import ReadUsage, Store
from store.metadata.history import revision_item
from store.model.keys import node_key
from store.model.records import Put, Record
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.schemas import schema_of
from tests.systems.asking import BOUNDLESS, WIDE, plant

failing: set[str] = set()
"""The keys of the nodes whose computed field fails now."""


class Box(Node, hierarchy="box", many="boxes"):
    """A box, for tests."""

    note: str | None = attribute("A note.")


class Case(Box, under=[None, "self"]):
    """A box in a box."""

    @computed("A field that fails for some.")
    def odd(self: Any) -> str | None:
        if self.key in failing:
            raise RuntimeError(self.key)
        return str(self.key)


class Tray(Box, under=[Case]):
    """A box that holds nothing."""


DEFINITIONS = {"box": Box.definition()}
PATHS = {"a": "CASE", "a/b": "CASE", "a/c": "CASE", "a/t": "TRAY", "a/b/d": "CASE", "z": "CASE"}


@pytest.fixture(autouse=True)
def nothing_fails() -> None:
    failing.clear()


@pytest.fixture
async def boxes(store: Store) -> Store:
    await plant(store, Box, [(path.split("/"), level) for path, level in PATHS.items()])
    return store


async def damage(store: Store, path: str, **harm: Any) -> None:
    """Write an item as no code of ours would."""
    (item,) = await store.get([node_key("box", tuple(path.split("/")))], ReadUsage())
    await store.commit([Put({**item, **harm})])


def execution(store: Store) -> Execution:
    kept, cache = PageCache(1_000_000), ResponseCache(1_000_000, store.version)
    writer = Writer(store)

    def context() -> Context:
        return Context(Request(store, DEFINITIONS, BOUNDLESS, page_cache=kept, writer=writer))

    return Execution(*schema_of(Box), context, cache=cache, limits=WIDE)


async def ask(asked: Execution, text: str, **variables: Any) -> tuple[Any, list[tuple[list[Any], str]], Any]:
    """The data, the errors as paths and codes, and the reads."""
    answer = await answer_to(asked, text, variables, allow_mutations=False, report_reads=1)
    body = orjson.loads(answer.content())
    errors = [(one.get("path"), one["extensions"]["code"]) for one in body.get("errors", ())]
    return body["data"], errors, body["extensions"]["reads"]


def names(*keys: str) -> list[dict[str, str]]:
    return [{"name": key} for key in keys]


BROKEN: list[tuple[dict[str, Any], str, Any, list[list[Any]]]] = [
    # A nullable field is null itself.
    ({"note": 5}, "{ box(path: \"a\") { children { nodes { key note } } } }",
     {"box": {"children": {"nodes": [{"key": key, "note": None} for key in "bct"]}}},
     [["box", "children", "nodes", 0, "note"]]),
    # One that may not be null makes null what led to its node, with one error.
    ({"revision": 2**40}, "{ box(path: \"a\") { name children { nodes { revision note } } } }",
     {"box": {"name": "a", "children": None}}, [["box", "children", "nodes", 0, "revision"]]),
    ({"revision": 2**40}, "{ box(path: \"a/b/d\") { key parent { revision } ancestors { key revision } } }",
     {"box": {"key": "d", "parent": None, "ancestors": None}},
     [["box", "parent", "revision"], ["box", "ancestors", 1, "revision"]]),
    # In a list of nullable nodes that is the node.
    ({"revision": 2**40}, "{ boxesByPath(paths: [\"a\", \"a/b\", \"no\"]) { key revision } }",
     {"boxesByPath": [{"key": "a", "revision": 1}, None, None]}, [["boxesByPath", 1, "revision"]]),
    # A level that no class defines has no type.
    ({"level": "CRATE"}, "{ box(path: \"a\") { children(first: 1) { nodes { key } } } b: box(path: \"a/b\") { key } }",
     {"box": {"children": None}, "b": None}, [["box", "children", "nodes", 0], ["b"]]),
    # What is beside it stays, also the same list under another alias.
    ({"revision": 2**40}, "{ a: boxes { nodes { c: children { nodes { revision } } d: children { nodes { key } } } } }",
     {"a": {"nodes": [{"c": None, "d": {"nodes": [{"key": key} for key in "bct"]}},
                      {"c": {"nodes": []}, "d": {"nodes": []}}]}}, [["a", "nodes", 0, "c", "nodes", 0, "revision"]]),
    # An item that cannot be decoded is the error of each field that reads it.
    ({"name": None},
     "{ a: box(path: \"a\") { key children { nodes { key } } } d: box(path: \"a/b/d\") { parent { id } } }",
     {"a": {"key": "a", "children": None}, "d": {"parent": None}}, [["a", "children"], ["d", "parent"]]),
]  # fmt: skip


@pytest.mark.both_stores
async def test_null_is_the_field_that_led_to_what_failed(boxes):
    """tests/outside/fuzzer has far more documents."""
    (whole,) = await boxes.get([node_key("box", ("a", "b"))], ReadUsage())
    for harm, query, data, paths in BROKEN:
        await boxes.commit([Put({**whole, **harm})])
        asked = execution(boxes)
        for _ in range(2):  # what was read before may be cached
            found, errors, reads = await ask(asked, query)
            assert found == data
            assert errors == [(path, "BAD_DATA") for path in paths]
            assert not reads["cached"]


ODD = """{ box(path: "a") { ... on Case { odd } children { nodes { key ... on Case { odd } } edges { node { key } } } }
  boxes { nodes { ... on Case { odd } } } }"""


@pytest.mark.both_stores
async def test_nothing_with_an_error_is_cached(boxes):
    asked = execution(boxes)
    for now in (["b"], [], ["a", "b", "c"], ["c"], []):
        failing.clear()
        failing.update(now)
        data, errors, _ = await ask(asked, ODD)
        assert [node["odd"] for node in data["box"]["children"]["nodes"][:2]] == [
            None if key in now else key for key in "bc"
        ]
        assert len(errors) == len(now) + ("a" in now)
        assert {code for _, code in errors} <= {"INTERNAL_SERVER_ERROR"}
        if not now:  # only what has no error may be cached, and a fixed function would have none
            asked = execution(boxes)


OWN = {
    '{ tray(path: "a/b") { name } box(path: "a") { name } }': "WRONG_LEVEL",
    '{ box(path: "a") { name children(first: -1) { nodes { name } } } }': "BAD_USER_INPUT",
    '{ box(path: "a//b") { name } }': "BAD_PATH",
}


async def test_a_response_whose_errors_are_the_requests_own_is_cached_with_them(boxes):
    asked = execution(boxes)
    for query, code in OWN.items():
        first, again = [await ask(asked, query) for _ in range(2)]
        assert first[:2] == again[:2]
        assert [one for _, one in first[1]] == [code]
        assert again[2]["cached"] is (boxes.version() is not None), "on DynamoDB once its tree has settled"
    await damage(boxes, "a/b", level="TRAY")  # a write
    assert [(await ask(asked, query))[2]["cached"] for query in OWN] == [False] * 3


async def many(store: Store, number: int) -> Execution:
    """A node with many children, whose computed fields fail."""
    await plant(store, Box, [(["r"], "CASE"), *[(["r", f"n{n:03}"], "CASE") for n in range(number)]])
    failing.update(f"n{n:03}" for n in range(number))
    return execution(store)


async def test_the_first_hundred_errors_of_a_code_are_in_the_response_and_that_of_what_is_null(store):
    asked = await many(store, 140)
    odd = "children { nodes { ... on Case { odd } %s } }"
    data, errors, _ = await ask(asked, f'{{ box(path: "r") {{ {odd % ""} }} }}')
    assert data["box"]["children"]["nodes"] == [{"odd": None}] * 140
    assert errors[:100] == [(["box", "children", "nodes", n, "odd"], "INTERNAL_SERVER_ERROR") for n in range(100)]
    assert errors[100:] == [(None, "INTERNAL_SERVER_ERROR")]
    lists = 'x: children(after: "1") { totalCount } y: children(after: "2") { totalCount }'
    _, errors, _ = await ask(asked, f'{{ box(path: "r") {{ children {{ nodes {{ {lists} }} }} }} }}')
    expected = [["box", "children", "nodes", n, key] for n in range(50) for key in "xy"]
    assert [path for path, _ in errors] == [*expected, None], "the first of the response, whatever was read first"
    lists = f'a: children(after: "x") {{ totalCount }} b: history(after: "y") {{ totalCount }} {odd % ""}'
    mutation = f'mutation {{ updateBox(input: {{node: {{path: "r"}}, name: "R"}}) {{ node {{ name {lists} }} }} }}'
    body = orjson.loads((await answer_to(asked, mutation, allow_mutations=True)).content())
    node = ["updateBox", "node"]
    assert body["data"]["updateBox"]["node"]["name"] == "R"
    expected = [[*node, "a"], [*node, "b"], *[[*node, "children", "nodes", n, "odd"] for n in range(100)], None]
    assert [one.get("path") for one in body["errors"]] == expected
    await damage(store, "r/n139", revision=2**40)
    _, errors, reads = await ask(asked, f'{{ box(path: "r") {{ {odd % "revision"} }} }}')
    assert errors == [(["box", "children", "nodes", 139, "revision"], "BAD_DATA")]
    assert not reads["cached"]


async def test_of_several_errors_in_what_is_null_it_is_the_first_of_the_query(boxes):
    await damage(boxes, "a/b", revision=2**40)
    for fields, first in (
        ("b: nodes { revision } a: nodes { revision }", "b"),
        ("nodes { revision } edges { node { revision } }", "nodes"),
    ):
        _, errors, _ = await ask(execution(boxes), f'{{ box(path: "a") {{ children {{ {fields} }} }} }}')
        assert errors == [(["box", "children", first, 0, "revision"], "BAD_DATA")]


async def test_nothing_of_a_response_with_errors_stays_in_memory(store):
    asked = await many(store, 120)
    await damage_all(store, note=5)
    await damage(store, "r/n001", revision=2**40)
    gc.collect()
    gc.disable()
    others = {id(one) for one in gc.get_objects() if isinstance(one, Rows)}  # of servers that other tests have begun
    try:
        lists = (
            "c: children { nodes { note } } d: children { nodes { revision } } e: children(first: -1) { totalCount }"
        )
        _, errors, _ = await ask(asked, f'{{ box(path: "r") {{ {lists} }} }}')
        assert len(errors) == 102
        assert not [one for one in gc.get_objects() if isinstance(one, Rows) and id(one) not in others]
    finally:
        gc.enable()


@pytest.mark.both_stores
async def test_a_damaged_revision_is_an_error_of_its_node_alone(boxes):
    for path in ("a", "a/b", "a/c"):
        await damage(boxes, path, revision=2)
        (item,) = await boxes.get([node_key("box", tuple(path.split("/")))], ReadUsage())
        record = Record.of(item)
        await boxes.commit([Put(revision_item(replace(record, revision=1)) | ({"name": 5} if path == "a/b" else {}))])
    past = "{ atRevision(n: 1) { name } }"
    query = f'{{ some: boxesByPath(paths: ["a/b", "a/c"]) {past} a: box(path: "a") {past} }}'
    data, errors, _ = await ask(execution(boxes), query)
    some = [{"atRevision": None}, {"atRevision": {"name": "c"}}]
    assert data == {"some": some, "a": {"atRevision": {"name": "a"}}}
    assert errors == [(["some", 0, "atRevision"], "BAD_DATA")]


async def test_a_null_condition_of_a_mutation_is_an_error_of_the_request(boxes):
    mutation = (
        'mutation($x: Boolean = true) { deleteBox(input: {node: {path: "z"}}) @include(if: $x) { node { name } } }'
    )
    answer = await answer_to(execution(boxes), mutation, {"x": None}, allow_mutations=True)
    assert not answer.executed
    assert answer.body["errors"][0]["message"].endswith("not to be null.")


@pytest.mark.both_stores
async def test_histories_of_a_hundred_nodes_are_read_together(store):
    await plant(store, Box, [(["r"], "CASE"), *[(["r", f"n{number:03}"], "CASE") for number in range(100)]])
    asked, nodes = execution(store), '{ box(path: "r") { children { nodes %s } } }'
    _, errors, alone = await ask(asked, nodes % "{ key }")
    assert not errors
    data, errors, reads = await ask(execution(store), nodes % "{ history(first: 1) { totalCount nodes { revision } } }")
    assert not errors
    assert len(data["box"]["children"]["nodes"]) == 100
    assert reads["requests"] <= alone["requests"], "the first revision is the node itself"
    await damage_all(store, revision=3)
    _, _, alone = await ask(execution(store), nodes % "{ key }")
    _, _, reads = await ask(execution(store), nodes % "{ history { totalCount } atRevision(n: 2) { revision } }")
    assert reads["requests"] - alone["requests"] == 1, "one BatchGetItem for all of them"
    _, _, reads = await ask(execution(store), nodes % "{ history(first: 2) { nodes { revision } } }")
    assert reads["requests"] - alone["requests"] == 100, "one Query for each"
    assert reads["rounds"] - alone["rounds"] == 1


async def damage_all(store: Store, **harm: Any) -> None:
    for number in range(100):
        await damage(store, f"r/n{number:03}", **harm)
