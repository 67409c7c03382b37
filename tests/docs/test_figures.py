"""Figures of all pages: reads, units, lines of code and measured times are those of the code or of another page."""

import asyncio
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import orjson
import pytest
from aiohttp import web
from typer.testing import CliRunner

from commands.main import app_of
from examples import follow_changes, type_ahead
from graph.app import create_app
from tests.engines import Engine
from tests.proxy import Proxy
from tests.readme import DOCS, ROOT, blocks, section, table
from tests.serving import serving

CONCEPTS, COMPARE, PERFORMANCE = (DOCS / f"{name}.md" for name in ("concepts", "compare", "performance"))
DYNAMODB, TYPE_AHEAD = ((DOCS / f"{name}.md").read_text("utf-8") for name in ("dynamodb", "type-ahead"))


def ask(url: str, query: str, reads: str = "1") -> dict[str, Any]:
    body: dict[str, Any] = httpx.post(f"{url}/graphql", json={"query": query}, headers={"clade-reads": reads}).json()
    assert "errors" not in body, body
    return body


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


def test_the_pictures_are_those_of_the_script_and_have_the_keys_that_the_page_describes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "pictures", tmp_path], check=True, timeout=60)
    drawn = {file.name: file.read_text("utf-8") for file in tmp_path.iterdir()}
    assert drawn == {file.name: file.read_text("utf-8") for file in (DOCS / "concepts").iterdir()}
    described = re.findall(r"!\[(.*?)\]\(concepts/([\w-]+\.svg)\)", CONCEPTS.read_text("utf-8"))
    assert {name for _, name in described} == drawn.keys()
    for text, name in described:
        picture = ElementTree.fromstring(drawn[name])  # noqa: S314  # a file of our own
        shown = ["".join(part.itertext()) for part in picture.iter("{http://www.w3.org/2000/svg}text")]
        keys = re.findall(r"[\w#@]*#[\w#@]*", text)
        assert keys
        assert [key for key in keys if not any(key in part for part in shown)] == []


# -- Units of DynamoDB -------------------------------------------------------------------------------------------------

QUERIES = dict(re.findall(r"^query (\w+) (\{.*\})$", "".join(blocks("graphql", DYNAMODB)), re.MULTILINE))
SHOP = "US/NE/Omaha/2000"
MUTATIONS = {
    "create a shop": 'createLocation(input: {parent: {path: "US/NE/Omaha"}, key: "2000", name: '
    '"Shop 2000", attributes: { store: { street: "2000 Main Street", brand: "Halo" '
    "} }}) { node { id } }",
    "update it": f'updateLocation(input: {{node: {{path: "{SHOP}"}}, name: "Shop MM"}}) {{ node {{ id }} }}',
    "rename it": f'moveLocation(input: {{node: {{path: "{SHOP}"}}, key: "2001"}}) {{ node {{ id }} }}',
    "delete it": 'deleteLocation(input: {node: {path: "US/NE/Omaha/2001"}}) { node { id } }',
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


# -- Comparison --------------------------------------------------------------------------------------------------------

PEERS = ROOT / "bench" / "peers"
OWN = ["dynamodb.mjs", "resolvers.mjs", "mercurius.mjs", "schema.graphql"]
POSTGRAPHILE = [
    f"postgraphile/{name}" for name in ("schema.sql", "indexes.sql", "tags.sql", "preset.mjs", "server.mjs")
]
NO_CODE = re.compile(r"\s*($|//|#|--|\*|/\*)")


def lines_of_code(*files: Path) -> int:
    return sum(not NO_CODE.match(line) for file in files for line in file.read_text("utf-8").splitlines())


def rows(text: str) -> dict[str, list[str]]:
    return {name: cells for name, *cells in table(text)}


def test_lines_of_code_are_counted_and_costs_of_own_resolvers_are_those_that_were_measured() -> None:
    own = rows(section("Your own resolvers with DataLoader", COMPARE))
    theirs, ours = own["lines of code"]
    assert theirs.startswith(f"{lines_of_code(*(PEERS / name for name in OWN))}, ")
    assert ours.startswith(f"{lines_of_code(ROOT / 'graph' / 'hierarchies' / 'locations.py')}, ")
    (stated,) = re.findall(r"(\d+) lines\swithout its data", COMPARE.read_text("utf-8"))
    assert int(stated) == lines_of_code(*(PEERS / name for name in POSTGRAPHILE))

    part = section("DynamoDB, cold and warm", PERFORMANCE)
    cold, warm = (
        rows("| cold |\n| --- |\n" + part.partition(f"| {name} |")[2].partition("\n\n")[0]) for name in ("cold", "warm")
    )
    servers = ("other servers: calls, read units, rounds", "Clade: calls, read units, rounds")
    for title, place in (
        ("calls for a breadcrumb, children, nested, flat; each for the first time", 0),
        ("read units of these", 1),
    ):
        assert own[title] == [", ".join(cell.split(", ")[place] for cell in cold[name]) for name in servers]
    assert {tuple(cell.split(", ")[:2]) for cell in warm[servers[1]]} == {("1", "1")}
    for query, measured in (("first", cold), ("repeated", warm)):
        times = own[f"processor time of {'the' if query == 'first' else 'a'} {query} query, relative to Clade's"]
        assert times[0] == ", ".join(measured["Mercurius"])


def test_times_of_other_servers_are_those_that_were_measured() -> None:
    measured = PERFORMANCE.read_text("utf-8")
    queries = [rows(one) for one in re.split(r"^\*\*Q\d, .*\*\*$", measured, flags=re.MULTILINE)[1:5]]
    shown = rows(section("Hasura and PostGraphile", COMPARE))
    for server in ("Clade, SQLite", "Clade, SQLite, no cache"):
        assert shown[server] == [query[server][0] for query in queries]
    postgraphile = [query["PostGraphile"][0].removesuffix(" of PostgreSQL") for query in queries]
    assert shown["PostGraphile 5, and PostgreSQL 15 beside it"] == postgraphile
    stock = [query["stock Strawberry"][0] for query in queries]
    assert f"took {', '.join(stock[:3])} and {stock[3]} ms" in COMPARE.read_text("utf-8")


# -- Type-ahead --------------------------------------------------------------------------------------------------------


def test_the_page_of_type_ahead_shows_a_document_and_figures_of_the_examples() -> None:
    (shown,) = (json.loads(block) for block in blocks("json", TYPE_AHEAD))
    node = {
        "id": "location:5074472", "name": "Omaha", "names": [], "level": "CITY", "path": "US/NE/Omaha",
        "population": 486051,
        "ancestors": [{"id": "location:US"}, {"id": "location:US-NE"}],
    }  # fmt: skip
    assert follow_changes.document(node, shown["read"]) == shown
    assert shown.keys() == {"id"} | {field["name"] for field in follow_changes.FIELDS}
    pause = re.search(r"PAUSE_MS = (\d+)", type_ahead.PAGE)
    assert pause is not None
    assert f"{pause[1]} ms after the last key" in TYPE_AHEAD
    assert 'ENDPOINT = "' in type_ahead.PAGE
    assert 115 <= sum(follow_changes.PAUSES) <= 125  # "for two minutes"
    assert "examples.type_ahead:make_app" in (type_ahead.__doc__ or "")
