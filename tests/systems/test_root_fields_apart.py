"""Root fields stand apart: the error of one changes no other field of the same operation."""

import pytest
from graphql import build_schema as parse_schema

from graph.hierarchies.registry import served
from graph.schema import build_schema
from resolvers.access.callers import ANYONE
from store.engine import Store
from tests.rights.asking import Server
from tests.systems.asking import plant

CLASSES = served("graph.hierarchies.locations,graph.hierarchies.categories")
LOCATIONS = [(("US",), "COUNTRY"), (("US", "NE"), "STATE"), (("US", "NE", "Omaha"), "CITY")]
CATEGORIES = [(("Shop",), "CATEGORY"), (("Shop", "Toys"), "CATEGORY")]
ANY_COUNTRY = "{ ... on Country { children(first: -1) { totalCount } } }"
WORDS = " ".join(map(str, range(9)))

# Each root field with arguments, or with fields below it, that are an error.
WRONG = {
    "node": [f'(id: "ID") {ANY_COUNTRY}'],
    "nodes": [f'(ids: ["ID"]) {ANY_COUNTRY}'],
    "location": ['(path: "a//b") { id }', "{ id }"],
    "country": ['(path: "US/NE") { id }'],
    **{
        name: ['(path: "US") { id }']
        for name in ("region", "state", "county", "city", "neighborhood", "postalCode", "store")
    },
    "categoryNode": ['(path: "") { id }'],
    "category": ["{ id }"],
    **{name: ['(path: "Shop") { id }'] for name in ("product", "variant")},
    "locations": [
        "(first: -1) { totalCount }",
        '(after: "!") { totalCount nodes { id } }',
        "(level: []) { totalCount }",
    ],
    "categories": ["(first: -1) { totalCount }"],
    "locationsByPath": ['(paths: ["US", "a//b"]) { id }'],
    "categoriesByPath": ['(paths: [""]) { id }'],
    "searchLocations": [
        f'(text: "{WORDS}") {{ complete }}',
        '(text: "a", first: 200) { complete }',
        '(text: "a", first: -1) { nodes { id } }',
        '(text: "a", under: "a//b") { complete }',
        '(text: "a", languages: ["no tag"]) { complete }',
    ],
    "searchCategories": ['(text: "a", first: 200) { complete }'],
    "locationsNear": [
        "(latitude: 141, longitude: 0) { complete }",
        "(latitude: 1, longitude: 0, kilometers: -1) { nodes { id } }",
        "(latitude: 1, longitude: 0, first: 200) { complete }",
    ],
    "moves": ["(hierarchy: LOCATION, first: -1) { id }"],
    "changes": ['(hierarchy: LOCATION, tree: "a//b") { cursor }'],
    "_entities": ['(representations: [{__typename: "Nothing"}, {}]) { __typename }'],
}
NEVER_WRONG = {"move", "deletedNode", "hierarchies", "_service"}
BESIDE = """
before: locations { totalCount nodes { path } }
%s
after: city(path: "US/NE/Omaha") { path ancestors { path } }
paths: locationsByPath(paths: ["US", "no"]) { path }
found: searchLocations(text: "omaha") { nodes { path } complete }
none: searchLocations(text: "") { nodes { path } complete }
"""


@pytest.fixture
async def server(store: Store) -> Server:
    for cls, rows in zip(CLASSES, (LOCATIONS, CATEGORIES), strict=True):
        await plant(store, cls, rows)
    return Server(store, *CLASSES)


def test_every_root_field_is_asked() -> None:
    query = parse_schema(build_schema(CLASSES)[0].as_str()).query_type
    assert query is not None
    assert query.fields.keys() == WRONG.keys() | NEVER_WRONG


@pytest.mark.parametrize("name", WRONG)
async def test_an_error_of_a_root_field_changes_no_other(server: Server, name: str) -> None:
    alone = await server.data(ANYONE, "{" + BESIDE % "" + "}")
    country = (await server.data(ANYONE, '{ location(path: "US") { id } }'))["location"]["id"]
    for wrong in WRONG[name]:
        body = await server.ask(ANYONE, "{" + BESIDE % f"wrong: {name}{wrong}".replace("ID", country) + "}")
        assert {error["path"][0] for error in body["errors"]} == {"wrong"}, wrong
        assert "INTERNAL_SERVER_ERROR" not in {error["extensions"]["code"] for error in body["errors"]}
        assert {key: value for key, value in body["data"].items() if key != "wrong"} == alone, wrong
