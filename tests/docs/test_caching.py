"""docs/caching.md: its headers are those of a server, and following `changes` purges what a write has changed."""

import asyncio
import functools
import itertools
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from json import dumps, loads
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from graph.app import create_app
from graph.execution.response import MAX_TAG_BYTES, MAX_TAGS, TAGS
from graph.settings import Settings
from store.connect import open_store
from tests.readme import DOCS, blocks
from tests.selection import examples
from tests.serving import serving
from tests.user_errors import take_user_errors, with_user_errors

PAGE = (DOCS / "caching.md").read_text("utf-8")
HEADERS = dict(line.split(": ", 1) for line in blocks("text", PAGE)[0].splitlines())
CLASSES = """
from clade import Node, attribute

class Location(Node, hierarchy="location", many="locations", search="hierarchy", location="latitude,longitude"):
    "A place."
    latitude: float | None = attribute("Latitude.")
    longitude: float | None = attribute("Longitude.")

class Place(Location, under=[None, "self"]):
    "A place in any other."
"""


@pytest.fixture
def client(store_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    async def create() -> None:
        async with open_store(store_url) as store:
            await store.create()

    asyncio.run(create())
    (tmp_path / "places.py").write_text(CLASSES)
    settings = Settings(
        store=store_url, hierarchies=str(tmp_path / "places.py"), max_age_seconds=60, settle_seconds=0.0, writes="on"
    )
    with serving(create_app(settings)) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def post(client: httpx.Client, query: str, variables: Mapping[str, Any] | None = None) -> Any:
    return client.post("/graphql", json={"query": query, "variables": variables or {}}).json()


def test_the_headers_are_those_that_are_shown(client):
    for key in ("US", "FR"):
        assert "errors" not in post(client, CREATE, {"key": key, "id": key})
    answer = client.get("/graphql", params={"query": "{ locations { nodes { key } } }"})
    names = ("cache-control", "cache-tag", "surrogate-key")
    assert {name: answer.headers[name] for name in names} == {name: HEADERS[name] for name in names}
    assert answer.headers["etag"]
    limits = re.search(r"more than (\d+) trees, or whose tags take more than ([\d,]+) bytes", PAGE)
    assert limits is not None
    assert [int(one.replace(",", "")) for one in limits.groups()] == [MAX_TAGS, MAX_TAG_BYTES]


def test_the_extensions_are_those_of_the_router():
    assert set(re.findall(r'^\| .* \| `"(\w+)"', PAGE, re.MULTILINE)) == TAGS


# -- purges ------------------------------------------------------------------------------------------------------------

POLLS, QUERIES_A_WRITE = 12, 14
KEYS = ["a", "X X'", "é%/,"]
PATHS = [
    "/".join(key.replace("%", "%25").replace("/", "%2F") for key in keys)
    for keys in [*itertools.product(KEYS), *itertools.permutations(KEYS, 2)]
]
IDS = ["location:i", "location:j", "location:k"]
CREATE = """mutation ($parent: LocationBy, $key: String!, $name: String = "a", $id: ID, $at: Float) {
  createLocation(input: {parent: $parent, key: $key, name: $name, id: $id, attributes: { place: {
    latitude: $at, longitude: $at } }}) { node { path } } }"""
UPDATE = """mutation ($path: Path!, $name: String, $at: Float) {
  updateLocation(input: {node: {path: $path}, name: $name, attributes: { place: { latitude: $at, longitude: $at } }}) {
    node { path } } }"""
RENAME = (
    "mutation ($path: Path!, $key: String!) { moveLocation(input: {node: {path: $path}, key: $key}) { node { path } } }"
)
MOVE = """mutation ($path: Path!, $to: LocationDestination!) {
  moveLocation(input: {node: {path: $path}, to: $to}) { node { path } } }"""
REORDER = (
    "mutation ($path: Path!) { moveLocation(input: {node: {path: $path}, position: {first: true}}) { node { path } } }"
)
DELETE = "mutation ($path: Path!) { deleteLocation(input: {node: {path: $path}, policy: CASCADE}) { node { path } } }"
NODE = "id path name revision descendantCount children { nodes { path name } } ancestors { path name }"
ENTITIES = "query ($representations: [_Any!]!) { _entities(representations: $representations) { __typename } }"


class Query(NamedTuple):
    text: str
    variables: Mapping[str, Any] = {}
    is_public: bool | None = True
    """Whether its responses are public; None where that depends on what there is."""


def each(query: str, name: str, values: list[Any], *, is_public: bool | None = True) -> list[Query]:
    return [Query(query, {name: value}, is_public) for value in values]


QUERIES = [
    Query("{ locations { nodes { key path name childCount } } }"),
    Query("{ locations { totalCount nodes { descendantCount descendants { nodes { path name } totalCount } } } }"),
    Query("{ locations { totalCount } }"),
    Query("{ locations(first: 1) { nodes { name } pageInfo { hasNextPage endCursor } } }"),
    Query("{ locations(last: 1, level: PLACE) { totalCount nodes { name } pageInfo { hasPreviousPage } } }"),
    Query("{ locations(orderBy: { field: NAME, direction: DESC }, first: 1) { nodes { path name } } }"),
    Query('{ locations(where: { name: { startsWith: "b" } }) { totalCount nodes { path } } }'),
    Query('{ locations(where: { key: { gt: "a" } }) { totalCount nodes { path } } }'),
    *each(f"query ($path: Path!) {{ location(path: $path) {{ {NODE} }} }}", "path", PATHS, is_public=None),
    *each(f"query ($id: ID!) {{ location(id: $id) {{ {NODE} }} }}", "id", IDS, is_public=None),
    *each("query ($id: ID!) { node(id: $id) { id ... on Location { path } } }", "id", IDS, is_public=None),
    *each("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", "ids", [IDS[:2], IDS[1:]], is_public=None),
    *each("query ($paths: [Path!]!) { locationsByPath(paths: $paths) { path name } }", "paths", [PATHS[:3], PATHS[4:]],
          is_public=None),
    *each(ENTITIES, "representations", [
        [{"__typename": "Place", "path": path} for path in PATHS[:4]],
        [{"__typename": "Place", "id": one} for one in IDS],
    ], is_public=None),
    *each("query ($text: String!) { searchLocations(text: $text) { nodes { path } complete } }", "text", ["a", "b"],
          is_public=False),
    *each('query ($under: Path!) { searchLocations(text: "b", under: $under) { nodes { path } } }', "under", PATHS[:4],
          is_public=False),
    Query("{ locations(where: { near: { latitude: 1, longitude: 1, kilometers: 9 } }) { nodes { path } } }"),
    Query('{ locations { totalCount } searchLocations(text: "a") { nodes { name } } }', {}, False),
]  # fmt: skip


def to(parent: str | None) -> dict[str, Any]:
    """The new place of a node."""
    return {"parent": {"path": parent}} if parent else {"root": True}


def random_write(client: httpx.Client, choose: random.Random, paths: list[str]) -> str:
    """Make a write that succeeds, and return the mutation. `paths` are those of all nodes."""
    while True:
        path, other, key = choose.choice([*paths, "a"]), choose.choice([*paths, None]), choose.choice(KEYS)
        name, at = choose.choice(["a", "b"]), choose.choice([None, 1.0, 80.0])
        content = {"key": key, "name": name, "at": at}
        mutation, variables = choose.choice([
            (CREATE, content | {"parent": other and {"path": other}, "id": choose.choice([*IDS, None])}),
            (CREATE, content),
            (UPDATE, {"path": path, "name": name, "at": at}),
            (RENAME, {"path": path, "key": key}), (MOVE, {"path": path, "to": to(other)}),
            (MOVE, {"path": path, "to": to(None)}), (REORDER, {"path": path}), (DELETE, {"path": path}),
        ])  # fmt: skip
        if len(paths) > 12 and mutation is CREATE:
            continue
        answer = post(client, with_user_errors(mutation), variables)
        if "errors" not in answer and not take_user_errors(answer["data"]):
            return f"{mutation} {variables}"
        assert "errors" not in answer, answer


class Poller:
    """The function of the page, with the cursors that it has returned; without them it begins anew."""

    def __init__(self, client: httpx.Client) -> None:
        code: dict[str, Any] = {}
        exec(blocks("python", PAGE)[0], code)  # noqa: S102  # of our own page
        self._changed_tags = functools.partial(code["changed_tags"], functools.partial(post, client))
        self.cursors: dict[str, str | None] = {}

    def poll(self) -> set[str]:
        tags, self.cursors = self._changed_tags(loads(dumps(self.cursors)))  # as from a file
        return set(tags)


class Cdn:
    """A shared cache that keeps each public response until one of its tags is purged."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._kept: dict[str, tuple[Query, Any, set[str]]] = {}
        self.were_public = set[str]()

    def fetch(self, queries: Iterable[Query]) -> None:
        """Ask the server; what is kept stays as it is."""
        for query in queries:
            data, tags = respond(self._client, query)
            assert query.is_public in (None, bool(tags)), query
            if tags:
                self.were_public.add(query.text)
                self._kept.setdefault(f"{query.text} {dumps(query.variables)}", (query, data, tags))

    def purge(self, purged: set[str], case: object) -> None:
        """Purge these tags; what is left is what the server responds now."""
        self._kept = {name: one for name, one in self._kept.items() if not one[2] & purged}
        for query, data, tags in self._kept.values():
            assert respond(self._client, query)[0] == data, (query, tags, purged, case)


def respond(client: httpx.Client, query: Query) -> tuple[Any, set[str]]:
    """The data of a response and its tags, none where it is in no shared cache."""
    if query.text is ENTITIES:
        body = {"query": query.text, "variables": query.variables}
        answer = client.post("/graphql", json=body, headers={"clade-cache-tags": "1"})
        tags = {tag for some in answer.json().get("extensions", {}).get("apolloEntityCacheTags", []) for tag in some}
    else:
        answer = client.request("GET", "/graphql", params={"query": query.text, "variables": dumps(query.variables)})
        tags = set(answer.headers.get("cache-tag", "").split(",")) - {""}
    assert "errors" not in answer.json(), answer.text
    assert answer.headers["cache-control"].startswith("public") is bool(tags)
    return answer.json()["data"], tags


@pytest.mark.parametrize("seed", range(examples(1, 20)))
def test_following_changes_purges_every_response_that_writes_have_changed(client, seed):
    choose = random.Random(seed)  # noqa: S311
    poller, cdn = Poller(client), Cdn(client)
    for _ in range(POLLS):
        writes = []
        for _ in range(choose.randrange(4)):
            roots = post(client, "{ locations { nodes { path descendants { nodes { path } } } } }")["data"]["locations"]
            paths = [one["path"] for root in roots["nodes"] for one in (root, *root["descendants"]["nodes"])]
            writes.append(random_write(client, choose, paths))
            cdn.fetch(choose.sample(QUERIES, QUERIES_A_WRITE))
        if choose.random() < 0.1:
            poller.cursors = {}
        cdn.purge(poller.poll(), writes)
    assert {query.text for query in QUERIES if query.is_public} | {ENTITIES} <= cdn.were_public


def test_a_lost_cursor_purges_its_tree(client):
    poller = Poller(client)
    for key in "AB":
        assert "errors" not in post(client, CREATE, {"key": key})
    poller.poll()
    poller.cursors["A"] = "lost"
    assert poller.poll() == {"location/A"}
    assert poller.cursors["A"] is None
