"""Normalized caches of clients, which show what the server says."""

import json

import httpx
import pytest

from graph.app import create_app
from graph.settings import Settings
from tests.clients.programs import HERE, compile_relay, create, needs_node, run, write_schema
from tests.serving import serving

STEPS = HERE / "caches" / "steps.mjs"
OPERATIONS = HERE / "caches" / "operations.graphql"
ASSETS = "examples.asset"
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
    store = f"sqlite:///{tmp_path_factory.mktemp('assets') / 'clade.db'}"
    create(store)
    with serving(create_app(Settings(store=store, hierarchies=ASSETS, writes="on"))) as url:
        yield f"{url}/graphql"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """What Relay's compiler makes of the operations."""
    project = tmp_path_factory.mktemp("relay")
    schema = write_schema(project, ASSETS)
    (project / "source").mkdir()
    tagged = "".join(f"graphql`\n{one}`;\n" for one in OPERATIONS.read_text().split("\n\n"))
    (project / "source" / "caches.js").write_text(f'import {{ graphql }} from "relay-runtime";\n{tagged}')
    return compile_relay(project, schema, "javascript")


@pytest.mark.parametrize(
    "client",
    [pytest.param("apollo", marks=pytest.mark.thorough), "urql", pytest.param("relay", marks=pytest.mark.thorough)],
)
def test_a_clients_cache_shows_what_the_server_says(server, client, request):
    artifacts = [request.getfixturevalue("artifacts")] if client == "relay" else []
    for path, attributes in NODES:
        parent, _, key = f"{client} {path}".rpartition("/")
        variables = {"parent": {"path": parent} if parent else None, "key": key, "attributes": attributes}
        answer = httpx.post(server, json={"query": CREATE, "variables": variables}).json()
        assert answer.get("data", {}).get("createAssetNode", {}).get("node"), answer
    *steps, end = map(json.loads, run("node", STEPS, client, server, OPERATIONS, *artifacts).splitlines())
    assert len(steps) > 70
    missing = {(one["step"], one["query"]) for one in steps if one["shown"] is None}
    wrong = [f"{one['step']}: {one['query']}" for one in steps if one["shown"] not in (None, one["server"])]
    assert not wrong, "\n".join(wrong)
    assert missing <= {(step, query) for step in GONE for query in ("Audit", "Node")}
    assert end == {"complaints": []}
