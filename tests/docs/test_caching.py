"""docs/caching.md: its headers are those of a server, and following `changes` purges what a write has changed."""

import asyncio
import functools
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from graph.app import create_app
from graph.execution.cache_policy import MAX_TAG_BYTES, MAX_TAGS, TAGS
from graph.hierarchies.locations import Location
from graph.settings import Settings
from store.connect import open_store
from tests.readme import DOCS, blocks
from tests.serving import serving
from tests.systems.asking import plant

PAGE = (DOCS / "caching.md").read_text("utf-8")
HEADERS = dict(line.split(": ", 1) for line in blocks("text", PAGE)[0].splitlines())
QUERIES = {
    "roots": "{ locations { nodes { key name childCount } } }",
    "US": '{ country(path: "US") { name descendants { nodes { name } } } }',
    "NE": '{ state(path: "US/NE") { name children { nodes { name } } } }',
    "FR": '{ country(path: "FR") { name children { nodes { path } } } }',
    "XX": '{ country(path: "X X\'") { name } }',
    "old": '{ location(path: "US/NE/Omaha") { path } }',
}


@pytest.fixture
def client(store_url: str):
    async def fill() -> None:
        async with open_store(store_url) as store:
            await store.create()
            rows = [("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("FR", "COUNTRY")]
            await plant(store, Location, [(tuple(path.split("/")), level) for path, level in rows])

    asyncio.run(fill())
    settings = Settings(store=store_url, max_age_seconds=60, settle_seconds=0.0, writes="on")
    with serving(create_app(settings)) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


def test_the_headers_are_those_that_are_shown(client):
    answer = client.get("/graphql", params={"query": QUERIES["roots"]})
    names = ("cache-control", "cache-tag", "surrogate-key")
    assert {name: answer.headers[name] for name in names} == {name: HEADERS[name] for name in names}
    assert answer.headers["etag"]
    limits = re.search(r"more than (\d+) trees, or whose tags take more than ([\d,]+) bytes", PAGE)
    assert limits is not None
    assert [int(one.replace(",", "")) for one in limits.groups()] == [MAX_TAGS, MAX_TAG_BYTES]


def test_the_extensions_are_those_of_the_router():
    assert set(re.findall(r'^\| .* \| `"(\w+)"', PAGE, re.MULTILINE)) == TAGS


class CDN:
    """A cache that keeps each response until one of its tags is purged."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.kept: dict[str, tuple[Any, set[str]]] = {}

    def get(self, name: str) -> Any:
        """The data of a response, from the cache if it is there."""
        if name not in self.kept:
            answer = self.client.get("/graphql", params={"query": QUERIES[name]})
            assert answer.headers["cache-control"].startswith("public"), answer.text
            self.kept[name] = answer.json()["data"], set(answer.headers["cache-tag"].split(","))
        return self.kept[name][0]

    def purge(self, tags: set[str]) -> set[str]:
        """The names of the responses that were removed."""
        gone = {name for name, (_, own) in self.kept.items() if own & tags}
        self.kept = {name: kept for name, kept in self.kept.items() if name not in gone}
        return gone


MUTATIONS = {
    'updateLocation(path: "US/NE", name: "Nebraska")': {"roots", "US", "NE", "old"},
    'moveLocation(path: "US/NE/Omaha", to: "FR")': {"roots", "US", "NE", "FR", "old"},
    'updateLocation(path: "FR", name: "France")': {"roots", "FR", "old"},
    'createLocation(key: "X X\'", name: "X", attributes: { country: {} })': {"roots", "XX"},
    'deleteLocation(path: "X X\'")': {"roots", "XX"},
}


@pytest.fixture
def changed_tags(client: httpx.Client) -> Callable[[dict[str, str], dict[str, str]], set[str]]:
    """The function of the page, which asks the server with these trees and cursors."""
    code: dict[str, Any] = {}
    exec(blocks("python", PAGE)[0], code)  # noqa: S102  # of our own page
    return functools.partial(code["changed_tags"], functools.partial(post, client))


def post(client: httpx.Client, query: str, variables: dict[str, Any]) -> Any:
    return client.post("/graphql", json={"query": query, "variables": variables}).json()


def test_following_changes_purges_what_a_write_has_changed(client, changed_tags):
    trees: dict[str, str] = {}
    cursors: dict[str, str] = {}
    cdn = CDN(client)
    changed_tags(trees, cursors)
    for mutation, gone in MUTATIONS.items():
        before = {name: cdn.get(name) for name in QUERIES}
        answer = post(client, f"mutation {{ {mutation} {{ __typename }} }}", {})
        assert "errors" not in answer, answer
        assert cdn.purge(changed_tags(trees, cursors)) == gone
        changed = {name for name in QUERIES if before[name] != cdn.get(name)}
        assert changed
        assert changed <= gone
        for name, query in QUERIES.items():
            assert cdn.get(name) == post(client, query, {})["data"]
        assert changed_tags(trees, cursors) == set()


def test_a_lost_cursor_purges_its_tree(changed_tags):
    cursors = {"US": "lost"}
    trees: dict[str, str] = {}
    changed_tags(trees, {})
    assert {"location", "location/US"} <= changed_tags(trees, cursors)
    assert "US" not in cursors
