"""Root fields stand apart: the error of one changes no other field of the same operation, over HTTP."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import build_schema as parse_schema

from graph.app import create_app
from graph.hierarchies.registry import served
from graph.schema import build_schema
from store.connect import open_store
from tests.serving import serving
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

Ask = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    folder: Path = tmp_path_factory.mktemp("apart")
    url = f"sqlite:///{folder / 'clade.db'}"

    async def fill() -> None:
        async with open_store(url) as store:
            await store.create()
            for cls, rows in zip(CLASSES, (LOCATIONS, CATEGORIES), strict=True):
                await plant(store, cls, rows)

    asyncio.run(fill())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLADE_STORE", url)
        app = create_app()
    with serving(app) as served_at, httpx.Client(base_url=served_at, timeout=60) as client:

        def ask(query: str) -> dict[str, Any]:
            body: dict[str, Any] = client.post("/graphql", json={"query": query}).json()
            return body

        yield ask


def test_every_root_field_is_asked() -> None:
    query = parse_schema(build_schema(CLASSES)[0].as_str()).query_type
    assert query is not None
    assert query.fields.keys() == WRONG.keys() | NEVER_WRONG


@pytest.mark.parametrize("name", WRONG)
def test_an_error_of_a_root_field_changes_no_other(ask: Ask, name: str) -> None:
    alone = ask("{" + BESIDE % "" + "}")
    assert "errors" not in alone
    country = ask('{ location(path: "US") { id } }')["data"]["location"]["id"]
    for wrong in WRONG[name]:
        body = ask("{" + BESIDE % f"wrong: {name}{wrong}".replace("ID", country) + "}")
        assert {error["path"][0] for error in body["errors"]} == {"wrong"}, wrong
        assert "INTERNAL_SERVER_ERROR" not in {error["extensions"]["code"] for error in body["errors"]}
        assert {key: value for key, value in body["data"].items() if key != "wrong"} == alone["data"], wrong


@pytest.mark.parametrize("text", ["", " ", "–", "!!"])
def test_a_text_without_a_word_finds_nothing(ask: Ask, text: str) -> None:
    body = ask(f'{{ searchLocations(text: "{text}") {{ nodes {{ id }} complete }} }}')
    assert body == {"data": {"searchLocations": {"nodes": [], "complete": True}}}
