"""Figures of all pages: reads and units are those of the code."""

import asyncio
import json
import re
import runpy
import uuid
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import web
from typer.testing import CliRunner

from commands.main import app_of
from examples import follow_changes
from graph.app import create_app
from store.model.records import derived_id
from tests.engines import Engine
from tests.proxy import Proxy
from tests.readme import DOCS, ROOT, blocks, section, table
from tests.serving import serving

CONCEPTS = DOCS / "concepts.md"
DYNAMODB, TYPE_AHEAD = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("dynamodb", "type-ahead"))


def ask(url: str, query: str, reads: str = "1") -> dict[str, Any]:
    body: dict[str, Any] = httpx.post(f"{url}/graphql", json={"query": query}, headers={"clade-reads": reads}).json()
    assert "errors" not in body, body
    return body


# -- README ------------------------------------------------------------------------------------------------------------


def test_the_nodes_of_the_demo_data_and_the_reads_of_a_nested_query_are_those_of_the_readme(demo_server: str) -> None:
    data = ask(demo_server, "{ locations { nodes { descendantCount } } categories { nodes { descendantCount } } }")[
        "data"
    ]
    roots = [node for connection in data.values() for node in connection["nodes"]]
    nodes = len(roots) + sum(root["descendantCount"] for root in roots)
    assert f"loads {nodes:,} nodes, real places and a small catalogue," in section("Start")
    part = section("A nested query and its cost")
    (query,), (shown,) = blocks("graphql", part), blocks("json", part)
    assert ask(demo_server, query) == json.loads(shown)


# -- Concepts ----------------------------------------------------------------------------------------------------------

READS = section("Reads and their cost", CONCEPTS)


def test_each_query_of_the_concepts_takes_the_requests_of_the_table(demo_server: str) -> None:
    costs = []
    for query in re.split(r"\n\n", "\n\n".join(blocks("graphql", READS))):
        for name in re.findall(r"^query (\w+)", query):
            answer = ask(demo_server, query)
            nodes, lists = nodes_and_lists(answer["data"])
            costs.append((name, f"{nodes:,}", str(answer["extensions"]["reads"]["requests"]), str(lists)))
    names = {name for name, *_ in costs}
    assert len(names) > 2
    assert [row for row in table(READS) if row[0] in names] == costs


def nodes_and_lists(value: object) -> tuple[int, int]:
    """The number of nodes in a response, and of Queries where each list and each look-up is one."""
    match value:
        case list():
            counts = [nodes_and_lists(item) for item in value]
        case {"nodes": nodes}:  # a list
            counts = [nodes_and_lists(nodes), (0, 1)]
        case dict():
            counts = [nodes_and_lists(item) for item in value.values()]
            counts.append(("name" in value, "category" in value or "country" in value))  # the look-up by path
        case _:
            counts = []
    return sum(nodes for nodes, _ in counts), sum(lists for _, lists in counts)


def test_the_calls_of_a_query_are_those_that_are_shown(demo_server: str) -> None:
    part = READS.partition("### What did this query cost?")[2]
    (shown,) = [json.loads(block) for block in blocks("json", part)]
    assert [call.pop("operation") for call in shown] == ["BatchGetItem", "Query"]
    found = re.search(r"`(country.*?)`", part)
    assert found is not None
    reads = ask(demo_server, f"{{ {found[1]} }}", "2")["extensions"]["reads"]
    assert all(call.pop("units") for call in shown)  # of DynamoDB; SQLite estimates them from fewer bytes
    assert [{name: one[name] for name in one.keys() - {"operation", "units"}} for one in reads["calls"]] == shown
    fields = {name for names, _ in table(part) for name in re.findall(r"`(\w+)`", names)}
    assert {name for call in reads["calls"] for name in call} <= fields
    assert reads["fromCache"] == {"pages": 0, "records": 0}


def test_the_pictures_are_those_of_the_script() -> None:
    drawn = runpy.run_path(str(ROOT / "scripts" / "pictures"))["PICTURES"]
    assert {f"{name}.svg": draw() for name, draw in drawn.items()} == {
        file.name: file.read_text("utf-8") for file in (DOCS / "concepts").iterdir()
    }


# -- Units of DynamoDB -------------------------------------------------------------------------------------------------

QUERIES = dict(re.findall(r"^query (\w+) (\{.*\})$", "".join(blocks("graphql", DYNAMODB)), re.MULTILINE))
SHOP = "US/NE/Omaha/2000"
SHOP_ID = f"location:{derived_id('location', tuple(SHOP.split('/')))}"
MUTATIONS = {
    "create a shop": 'createLocation(input: {parent: {path: "US/NE/Omaha"}, key: "2000", name: '
    '"Shop 2000", attributes: { store: { street: "2000 Main Street", brand: "Halo" '
    "} }}) { node { id } }",
    "update it": f'updateLocation(input: {{node: {{path: "{SHOP}"}}, name: "Shop MM"}}) {{ node {{ id }} }}',
    "rename it": f'moveLocation(input: {{node: {{path: "{SHOP}"}}, key: "2001"}}) {{ node {{ id }} }}',
    "delete it": 'deleteLocation(input: {node: {path: "US/NE/Omaha/2001"}}) { node { id } }',
    "restore it": f'restoreLocation(input: {{id: "{SHOP_ID}"}}) {{ node {{ id }} }}',
}
NODES = [
    {"path": "US", "level": "COUNTRY", "name": "United States"},
    {"path": "US/NE", "level": "STATE", "name": "Nebraska"},
    {"path": "US/NE/Omaha", "level": "CITY", "name": "Omaha"},
    *(
        {"path": f"US/NE/Omaha/{n}", "level": "STORE", "name": f"Shop {n}", "street": f"{n} Main Street",
         "brand": "Halo"}
        for n in range(1000, 2000)
    ),
]  # fmt: skip


class Counting(Proxy):
    """A proxy that counts the write units of each transaction."""

    units = 0.0

    async def send(self, target: str, body: dict[str, Any], headers: dict[str, str]) -> web.Response:
        if not headers["X-Amz-Target"].endswith(".TransactWriteItems"):
            return await super().send(target, body, headers)
        answer = await super().send(target, {**body, "ReturnConsumedCapacity": "TOTAL"}, headers)
        assert isinstance(answer.body, bytes)
        self.units += sum(table["CapacityUnits"] for table in orjson.loads(answer.body).get("ConsumedCapacity", ()))
        return answer

    def take(self) -> str:
        units, self.units = self.units, 0.0
        return f"{units:,g}"


@pytest.mark.usefixtures("exact")
async def test_each_operation_takes_the_units_of_the_table(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nodes.jsonl").write_bytes(b"\n".join(map(orjson.dumps, NODES)))
    costs = {}
    async with Counting(engine.url) as proxy:
        url = f"dynamodb://clade-{uuid.uuid4().hex}?region=eu-west-1&endpoint={proxy.url}"
        for arguments in (["table", "create"], ["import", "location", str(tmp_path / "nodes.jsonl")]):
            result = await asyncio.to_thread(CliRunner().invoke, app_of(), [*arguments, "--store", url])
            assert result.exit_code == 0, result.exception
        costs["import all 1,003 nodes"] = proxy.take()
        for name, value in {"STORE": url, "WRITES": "on", "CACHE_MB": "0"}.items():
            monkeypatch.setenv(f"CLADE_{name}", value)
        with serving(create_app()) as server:
            for name, query in QUERIES.items():
                response = await asyncio.to_thread(ask, server, query)
                costs[name] = f"{response['extensions']['reads']['units']:g}"
            for name, mutation in MUTATIONS.items():
                await asyncio.to_thread(ask, server, f"mutation {{ {mutation} }}")
                costs[name] = proxy.take()
    assert costs == dict(re.findall(r"^\| `?(.*?)`? \| ([\d.,]+) \| (?:reading|writing) \|$", DYNAMODB, re.MULTILINE))


# -- Type-ahead --------------------------------------------------------------------------------------------------------


def test_the_page_of_type_ahead_shows_a_document_of_the_example() -> None:
    (shown,) = (json.loads(block) for block in blocks("json", TYPE_AHEAD))
    node = {
        "id": "location:5074472", "name": "Omaha", "names": [], "level": "CITY", "path": "US/NE/Omaha",
        "population": 486051,
        "ancestors": [{"id": "location:US"}, {"id": "location:US-NE"}],
    }  # fmt: skip
    assert follow_changes.document(node, shown["read"]) == shown
    assert shown.keys() == {"id"} | {field["name"] for field in follow_changes.FIELDS}
