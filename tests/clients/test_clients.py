"""Clients that many people use, as they come from npm: Relay's compiler, urql's normalised cache."""

import asyncio
import json
import re
import shutil

import httpx
import pytest

from graph.app import create_app
from graph.hierarchies.registry import hierarchies
from store.connect import open_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.clients.programs import HERE, compile_relay, needs_node, run
from tests.serving import serving

SCHEMA = HERE.parents[1] / "schema.graphql"

pytestmark = needs_node


# -- Relay -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def relay_texts(tmp_path_factory) -> dict[str, str]:
    """The queries that Relay's compiler makes of `relay/`, by their names: the page's and those that fetch again."""
    project = tmp_path_factory.mktemp("relay")
    shutil.copytree(HERE / "relay", project / "source")
    made = compile_relay(project, SCHEMA, "typescript")
    texts = {file.name.partition(".")[0]: re.search(r'"text": (".*")', file.read_text()) for file in made.iterdir()}
    return {name: json.loads(text[1]) for name, text in texts.items() if text}


def test_relays_compiler_takes_the_schema_with_lists_that_grow_and_nodes_that_are_fetched_again(relay_texts):
    assert sorted(relay_texts) == ["treeChildrenQuery", "treeCitiesQuery", "treePageQuery", "treeProductQuery"]


def test_the_queries_that_relay_makes_go_on_where_a_page_ended(relay_texts, demo_server):
    def ask(name: str, **variables: object) -> dict:
        asked = {"query": relay_texts[name], "variables": variables}
        answer = httpx.post(f"{demo_server}/graphql", json=asked).json()
        assert "errors" not in answer
        return answer["data"]

    dell = "Electronics/LAPTOP-DELL-XPS"
    found = httpx.post(f"{demo_server}/graphql", json={"query": f'{{ product(path: "{dell}") {{ id }} }}'}).json()
    product_id = found["data"]["product"]["id"]
    page = ask("treePageQuery", path="US", product=product_id)
    assert (page["node"]["name"], page["node"]["levelName"]) == ("Dell XPS 13 Laptop", "PRODUCT")
    assert [above["name"] for above in page["node"]["ancestors"]] == ["Electronics"]
    assert ask("treeProductQuery", id=product_id)["node"]["brand"] == "Dell"

    def walk(field: str, query: str) -> list[str]:
        """All ids of a list, from the page's first part of it to its end."""
        listed, seen = page["location"][field], []
        while True:
            seen += [edge["node"]["id"] for edge in listed["edges"]]
            if not listed["pageInfo"]["hasNextPage"]:
                return seen
            cursor = listed["pageInfo"]["endCursor"]
            listed = ask(query, id=page["location"]["id"], count=500, cursor=cursor)["node"][field]

    for field, query in (("children", "treeChildrenQuery"), ("descendants", "treeCitiesQuery")):
        seen = walk(field, query)
        assert len(seen) == len(set(seen)) == page["location"][field]["totalCount"] > 50


# -- urql --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def thousand(tmp_path, monkeypatch):
    """The address of a server of a category with 1,000 children."""
    url = f"sqlite:///{tmp_path / 'clade.db'}"

    async def fill() -> None:
        wanted = ImportPlan(hierarchies()["category"])
        part = [Part("CATEGORY")]
        rows = [["All"], *(["All", f"Number {number:03}"] for number in range(1000))]
        for number, path in enumerate(rows, start=1):
            wanted.take(Row(number, path, part))
        async with open_store(url) as store:
            await store.create()
            await load(store, wanted, LoadResult())

    asyncio.run(fill())
    monkeypatch.setenv("CLADE_STORE", url)
    with serving(create_app()) as address:
        yield address


@pytest.mark.thorough
def test_urql_walks_1000_children_page_by_page_normalised_by_id_and_shows_none_twice(thousand):
    shown = json.loads(run("node", HERE / "graphcache-pages.mjs", f"{thousand}/graphql", "All", "100"))
    assert shown == {
        "sizes": list(range(100, 1001, 100)),
        "names": [f"Number {number:03}" for number in range(1000)],
        "warnings": [],
    }
