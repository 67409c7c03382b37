"""docs/caching.md: its headers are those of a server, and following `changes` purges what a write has changed."""

import asyncio
import functools
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from graph.app import create_app
from graph.execution.response import MAX_TAG_BYTES, MAX_TAGS, TAGS
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
    def responses() -> dict[str, tuple[Any, set[str]]]:
        """The data and the tags of all queries."""
        answers = {name: client.get("/graphql", params={"query": query}) for name, query in QUERIES.items()}
        assert all(one.headers["cache-control"].startswith("public") for one in answers.values())
        return {name: (one.json()["data"], set(one.headers["cache-tag"].split(","))) for name, one in answers.items()}

    trees: dict[str, str] = {}
    cursors: dict[str, str] = {}
    changed_tags(trees, cursors)
    before = responses()
    for mutation, purged in MUTATIONS.items():
        assert "errors" not in post(client, f"mutation {{ {mutation} {{ __typename }} }}", {})
        tags = changed_tags(trees, cursors)
        assert {name for name, (_, own) in before.items() if own & tags} == purged
        after = responses()
        changed = {name for name in QUERIES if before[name][0] != after[name][0]}
        assert changed
        assert changed <= purged
        assert changed_tags(trees, cursors) == set()
        before |= {name: after[name] for name in purged}


def test_a_lost_cursor_purges_its_tree(changed_tags):
    cursors = {"US": "lost"}
    trees: dict[str, str] = {}
    changed_tags(trees, {})
    assert {"location", "location/US"} <= changed_tags(trees, cursors)
    assert "US" not in cursors
