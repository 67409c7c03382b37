"""Directives of the subgraph: those of attributes, and the sizes of lists, composed with another subgraph."""

import json
import subprocess

import pytest
from graphql import parse, print_ast

from graph.federation import subgraph_sdl
from graph.schema import build_schema
from graph.settings import EXPOSABLE
from tests.classes.shops import Place
from tests.federation.conftest import HERE, needs_npm

COMPOSE_SECONDS = 60
NEIGHBOUR = """
extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@shareable"])
scalar Path
scalar Url
type Mall @key(fields: "path") { path: Path! floors: Int @shareable site: Url @shareable visits: Int! }
type Query { busiest: Mall }
"""


async def service_sdl(schema):
    return (await schema.execute("{ _service { sdl } }")).data["_service"]["sdl"]


def fields_of(sdl, name):
    (found,) = [one for one in parse(sdl).definitions if getattr(getattr(one, "name", None), "value", "") == name]
    return {one.name.value: [print_ast(directive) for directive in one.directives or ()] for one in found.fields}


def composed(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPOSE_SECONDS, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def schema():
    return build_schema([Place], expose=frozenset(EXPOSABLE))[0]


async def test_attributes_have_their_directives_in_every_type(schema):
    sdl = await service_sdl(schema)
    for name in ("Shop", "ShopAttributes"):
        fields = fields_of(sdl, name)
        assert fields["rent"] == ['@tag(name: "internal")', '@tag(name: "money")']
        assert fields["secret"] == ["@inaccessible"]
    assert fields_of(sdl, "Mall")["floors"] == ["@shareable"]
    assert fields_of(sdl, "MallAttributes")["floors"] == []
    assert fields_of(sdl, "Place")["site"] == ['@tag(name: "public")'], "no field of an interface is shareable"
    assert fields_of(sdl, "Shop")["site"] == ['@tag(name: "public")', "@shareable"]
    assert fields_of(sdl, "Address")["hours"] == fields_of(sdl, "AddressInput")["hours"] == ["@inaccessible"]


async def test_what_lists_are_sorted_and_filtered_by_has_the_directives_of_its_attribute(schema):
    sdl = await service_sdl(schema)
    conditions = fields_of(sdl, "PlaceCondition")
    assert (conditions["secret"], conditions["site"]) == (["@inaccessible"], ['@tag(name: "public")'])
    assert (conditions["floors"], conditions["owner"]) == ([], [])
    named = [one for one in parse(sdl).definitions if hasattr(one, "name")]
    (values,) = [one for one in named if one.name.value == "PlaceOrderField"]
    found = {one.name.value: [print_ast(directive) for directive in one.directives or ()] for one in values.values}
    assert {name: words for name, words in found.items() if words} == {
        "SECRET": ["@inaccessible"], "SITE": ['@tag(name: "public")'],
    }  # fmt: skip


async def test_every_list_of_nodes_has_a_size(schema):
    sdl = await service_sdl(schema)
    page = '@listSize(assumedSize: 100, slicingArguments: ["first", "last"], sizedFields: ["nodes", "edges"], '
    page += "requireOneSlicingArgument: false)"
    for name in ("Place", "Mall", "Shop"):
        fields = fields_of(sdl, name)
        sized = {field: found[0] for field, found in fields.items() if found and "listSize" in found[0]}
        assert sized == {
            "ancestors": "@listSize(assumedSize: 8, requireOneSlicingArgument: false)",
            **dict.fromkeys(["children", "descendants"], page),
            "history": page.replace(', "last"', ""),
        }
    assert fields_of(sdl, "Query")["places"] == [page]


def test_only_used_directives_are_imported(schema):
    first, *_ = subgraph_sdl(schema, []).splitlines()
    assert "@tag" not in first
    assert "@inaccessible" not in first


@pytest.mark.thorough
@needs_npm
@pytest.mark.parametrize("expose", [frozenset(), frozenset(EXPOSABLE)], ids=["plain", "exposed"])
async def test_composers_take_the_directives_and_a_neighbour_shares_the_fields(tmp_path, expose):
    files = {"clade": await service_sdl(build_schema([Place], expose=expose)[0]), "visits": NEIGHBOUR}
    for name, sdl in files.items():
        (tmp_path / f"{name}.graphql").write_text(sdl)
    command = ["node", str(HERE / "compose.mjs"), *[f"{name}={tmp_path / name}.graphql" for name in files]]
    found = composed(command)
    assert found["errors"] == []
    fields = fields_of(found["supergraph"], "Shop")
    assert "@inaccessible" in fields["secret"]
    assert '@tag(name: "money")' in fields["rent"]
    assert any("listSize" in one for one in fields["children"])
    assert {"floors", "visits"} <= fields_of(found["supergraph"], "Mall").keys()
