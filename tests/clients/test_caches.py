"""Normalized caches of clients, which show what the server says, and the queries that Relay's compiler makes."""

import json
import os
import re
import shutil
import subprocess

import httpx
import pytest

from tests.clients.programs import HERE, compile_relay, needs_node, run
from tests.conftest import CLADE
from tests.servers import served

STEPS = HERE / "caches" / "steps.mjs"
SCHEMA = HERE.parents[1] / "schema.graphql"
OPERATIONS = HERE / "caches" / "operations.graphql"
ASSETS = {"CLADE_HIERARCHIES": "examples.asset"}
CREATE = """mutation($parent: AssetNodeBy, $key: String!, $attributes: AssetNodeAttributes!) {
  createAssetNode(input: {parent: $parent, key: $key, name: $key, attributes: $attributes}) { node { id } } }"""
NODES = [
    ("Press", {"equipment": {}}),
    ("Lathe", {"equipment": {}}),
    ("Press/Pump", {"part": {}}),
    ("Press/Pump/2026-04", {"audit": {}}),
    ("Press/2026-05", {"audit": {"auditor": "Ann", "result": "OPEN"}}),
]
"""Two machines with a part and audits, for each client with its name before them."""

GONE = ("delete, without another request", "deleted node")
"""After these a cache may know that it lacks the node, so that it asks again."""

pytestmark = needs_node


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a server that writes."""
    folder = tmp_path_factory.mktemp("assets")
    store = f"sqlite:///{folder / 'clade.db'}"
    subprocess.run([CLADE, "table", "create", "--store", store], check=True, stdout=subprocess.DEVNULL, timeout=60)
    with served(folder, store, **ASSETS, CLADE_WRITES="on") as (url, _):
        yield f"{url}/graphql"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """What Relay's compiler makes of the operations."""
    project = tmp_path_factory.mktemp("relay")
    schema = project / "schema.graphql"
    environment = {**os.environ, **ASSETS}
    subprocess.run([CLADE, "schema", schema], env=environment, check=True, timeout=60)
    (project / "source").mkdir()
    tagged = "".join(f"graphql`\n{one}`;\n" for one in OPERATIONS.read_text().split("\n\n"))
    (project / "source" / "caches.js").write_text(f'import {{ graphql }} from "relay-runtime";\n{tagged}')
    return compile_relay(project, schema, "javascript")


@pytest.mark.parametrize(
    "client",
    [pytest.param("apollo", marks=pytest.mark.thorough), "urql", pytest.param("relay", marks=pytest.mark.thorough)],
)
def test_a_clients_cache_shows_what_the_server_says(server, artifacts, client):
    for path, attributes in NODES:
        parent, _, key = f"{client} {path}".rpartition("/")
        variables = {"parent": {"path": parent} if parent else None, "key": key, "attributes": attributes}
        answer = httpx.post(server, json={"query": CREATE, "variables": variables}).json()
        assert answer.get("data", {}).get("createAssetNode", {}).get("node"), answer
    *steps, end = map(json.loads, run("node", STEPS, client, server, OPERATIONS, artifacts).splitlines())
    assert len(steps) > 70
    missing = {(one["step"], one["query"]) for one in steps if one["shown"] is None}
    wrong = [f"{one['step']}: {one['query']}" for one in steps if one["shown"] not in (None, one["server"])]
    assert not wrong, "\n".join(wrong)
    assert missing <= {(step, query) for step in GONE for query in ("Audit", "Node")}
    assert end == {"complaints": []}


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
