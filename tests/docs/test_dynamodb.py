"""docs/dynamodb.md: its commands are run as they are written, its units are counted by an engine."""

import asyncio
import os
import re
import subprocess
import uuid
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from aiohttp import web
from typer.testing import CliRunner

from commands.main import app_of
from graph.app import create_app
from tests.conftest import CLADE
from tests.engines import Engine
from tests.proxy import Proxy
from tests.readme import DOCS, blocks
from tests.serving import serving

PAGE = (DOCS / "dynamodb.md").read_text("utf-8")
COSTS = dict(re.findall(r"^\| `?(.*?)`? \| ([\d.,]+) \| (?:reading|writing) \|$", PAGE, re.MULTILINE))
QUERIES = dict(re.findall(r"^query (\w+) (\{.*\})$", "".join(blocks("graphql", PAGE)), re.MULTILINE))
SHOP = "US/NE/Omaha/2000"
MUTATIONS = {
    "create a shop": 'createLocation(input: {parent: {path: "US/NE/Omaha"}, key: "2000", name: "Shop 2000", '
    'attributes: { store: { street: "2000 Main Street", brand: "Halo" } }}) { node { id } }',
    "update it": f'updateLocation(input: {{node: {{path: "{SHOP}"}}, name: "Shop MM"}}) {{ node {{ id }} }}',
    "rename it": f'moveLocation(input: {{node: {{path: "{SHOP}"}}, key: "2001"}}) {{ node {{ id }} }}',
    "delete it": 'deleteLocation(input: {node: {path: "US/NE/Omaha/2001"}}) { node { id } }',
}


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


def nodes() -> list[dict[str, Any]]:
    places = [("US", "COUNTRY", "United States"), ("US/NE", "STATE", "Nebraska"), ("US/NE/Omaha", "CITY", "Omaha")]
    return [
        *({"path": path, "level": level, "name": name} for path, level, name in places),
        *(
            {
                "path": f"US/NE/Omaha/{n}",
                "level": "STORE",
                "name": f"Shop {n}",
                "street": f"{n} Main Street",
                "brand": "Halo",
            }
            for n in range(1000, 2000)
        ),
    ]


@pytest.mark.usefixtures("exact")
async def test_each_operation_takes_the_units_of_the_table(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, costs = tmp_path / "nodes.jsonl", {}
    file.write_bytes(b"\n".join(map(orjson.dumps, nodes())))
    async with Counting(engine.url) as proxy:
        url = f"dynamodb://clade-{uuid.uuid4().hex}?region=eu-west-1&endpoint={proxy.url}"
        await run("table", "create", "--store", url)
        await run("import", "location", str(file), "--store", url)
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
    assert costs == COSTS


def ask(url: str, query: str) -> dict[str, Any]:
    response = httpx.post(f"{url}/graphql", json={"query": query}, headers={"clade-reads": "1"}, timeout=30).json()
    assert "errors" not in response, response
    return response


async def run(*arguments: str) -> None:
    result = await asyncio.to_thread(CliRunner().invoke, app_of(), arguments)
    assert result.exit_code == 0, result.exception


@pytest.mark.thorough
def test_all_commands_of_the_page_run(engine: Engine, tmp_path: Path) -> None:
    commands = "\n".join(blocks("sh", PAGE)).replace("create --recovery", "create")  # which this engine lacks
    commands = commands.replace("http://127.0.0.1:8001", engine.url)
    environment = {
        **os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}", "AWS_ENDPOINT_URL_DYNAMODB": engine.url,
        "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
    }  # fmt: skip
    output = subprocess.run(
        ["sh", "-ec", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert output.returncode == 0, output.stderr
    for words in ("the table is made", "arn:aws:dynamodb:eu-west-1:123456789012:table/clade", "no findings"):
        assert words in output.stdout
