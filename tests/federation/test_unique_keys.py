"""Unique attributes as keys of entities: in the SDL, in compositions, and in `_entities`."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from graph.federation import subgraph_sdl
from graph.hierarchies.attribute import WrongClass, attribute
from graph.hierarchies.node import Node
from graph.schema import build_schema
from store.connect import open_store
from store.engine import ReadUsage
from store.model.paths import parse_path
from store.writing.create_update import Create
from store.writing.writer import Writer
from tests.federation.conftest import HERE, Served, clade_over, needs_npm
from tests.federation.test_directives import composed
from tests.wares import WareNode

LINK = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@interfaceObject"])'
NEIGHBOURS = {
    "stocks": 'type Ware @key(fields: "sku") { sku: String stock: Int! } type Query { low: [Ware!]! }',
    "scales": """scalar Long
        type WareNode @interfaceObject @key(fields: "serial") { serial: Long weight: Int }
        type Query { heavy: [WareNode!]! }""",
}
KEYS = {
    "WareNode": ["id", "path", "serial"],
    "Shelf": ["id", "path", "serial"],
    "Ware": ["id", "path", "serial", "sku"],
    "Piece": ["id", "path", "serial"],
}
ENTITIES = "query ($of: [_Any!]!) { _entities(representations: $of) { __typename ... on WareNode { path } } }"


def keys_in(sdl: str, kind: str) -> list[str]:
    """The fields of the keys of a type in an SDL."""
    (line,) = [line for line in sdl.splitlines() if line.startswith((f"type {kind} ", f"interface {kind} "))]
    return [one.partition('"')[0] for one in line.split('@key(fields: "')[1:]]


@pytest.fixture(scope="module")
def sdl() -> str:
    return subgraph_sdl(build_schema([WareNode])[0], [WareNode])


def test_types_have_the_keys_of_their_classes(sdl: str) -> None:
    assert {kind: keys_in(sdl, kind) for kind in KEYS} == KEYS


@needs_npm
def test_composers_take_them_with_neighbours_that_have_nothing_but_these_keys(tmp_path: Any, sdl: str) -> None:
    files = {"clade": sdl} | {name: f"{LINK} {text}" for name, text in NEIGHBOURS.items()}
    for name, text in files.items():
        (tmp_path / f"{name}.graphql").write_text(text)
    found = composed(["node", str(HERE / "compose.mjs"), *[f"{name}={tmp_path / name}.graphql" for name in files]])
    assert found["errors"] == []
    for graph, key in (("CLADE", "sku"), ("STOCKS", "sku"), ("CLADE", "serial"), ("SCALES", "serial")):
        assert f'@join__type(graph: {graph}, key: "{key}"' in found["supergraph"]


@pytest.fixture(scope="module")
def wares(store_url: str) -> Iterator[Served]:
    async def plant() -> None:
        definition = WareNode.definition()
        async with open_store(store_url) as store:
            rows = [("r", "SHELF", {}), ("r/a", "WARE", {"sku": "A", "serial": 5}), ("r/b", "WARE", {"sku": "B"})]
            for path, level, values in [*rows, ("r/a/p", "PIECE", {"sku": "P", "serial": 2**40})]:
                await Writer(store).write(Create(definition, parse_path(path), level, path, values), ReadUsage())

    with clade_over(store_url, [], CACHE_MB="0", HIERARCHIES="tests.wares") as served:
        asyncio.run(plant())
        yield served


def test_entities_are_found_by_unique_keys_as_by_the_fields_of_query(wares: Served) -> None:
    of = [
        {"__typename": "Ware", "sku": "A"}, {"__typename": "WareNode", "serial": 2**40},
        {"__typename": "Piece", "serial": str(2**40)}, {"__typename": "Ware", "sku": "NONE"},
        {"__typename": "Ware", "sku": "B", "id": None}, {"__typename": "Ware", "path": "r/b", "sku": "A"},
    ]  # fmt: skip
    answer = wares.ask(ENTITIES, of=of)
    assert "errors" not in answer
    paths = ["r/a", "r/a/p", "r/a/p", None, "r/b", "r/b"]
    assert [one and one["path"] for one in answer["data"]["_entities"]] == paths
    few = wares.ask(ENTITIES, of=[of[0], of[1], of[4]])["extensions"]["reads"]
    assert (few["requests"], few["rounds"]) == (2, 2)


@pytest.mark.parametrize(
    ("representation", "code", "text"),
    [
        ({"__typename": "Ware"}, "BAD_USER_INPUT", "A representation of a Ware needs an id, a path, serial or sku."),
        ({"__typename": "Ware", "sku": 5}, "BAD_USER_INPUT", "sku: 5 is not a text."),
        ({"__typename": "Ware", "sku": ["A"]}, "BAD_USER_INPUT", "is not a text."),
        ({"__typename": "WareNode", "sku": "A"}, "BAD_USER_INPUT", "needs an id, a path or serial."),
        ({"__typename": "Piece", "sku": "P"}, "BAD_USER_INPUT", "needs an id, a path or serial."),
        ({"__typename": "WareNode", "serial": "x"}, "BAD_USER_INPUT", "is not a whole number"),
        ({"__typename": "Ware", "sku": "P"}, "WRONG_LEVEL", "r/a/p has the level PIECE, not WARE."),
    ],
)
def test_a_wrong_key_is_an_error_of_its_entity_alone(
    wares: Served, representation: dict[str, Any], code: str, text: str
) -> None:
    answer = wares.ask(ENTITIES, of=[representation, {"__typename": "Ware", "sku": "A"}])
    assert [one and one["path"] for one in answer["data"]["_entities"]] == [None, "r/a"]
    (error,) = answer["errors"]
    assert (error["path"], error["extensions"]["code"]) == (["_entities", 0], code)
    assert text in error["message"]


def test_only_unique_attributes_can_be_keys() -> None:
    with pytest.raises(WrongClass, match=r"code has federation_key=True without unique=; add unique=True, or leave it"):

        class Keyless(Node, hierarchy="keyless"):
            """A class that is written wrongly."""

            code: str | None = attribute("Code.", federation_key=True)
