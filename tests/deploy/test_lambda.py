"""Lambda template: what its adapter needs of the image, and the scheduled repair of a move that was left half-way."""

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from store.dynamodb.table import ACTIONS, Use
from tests.conftest import CLADE
from tests.deploy.templates import DEPLOY, function_environment, template
from tests.engines import Engine
from tests.ports import free_port
from tests.processes import Process
from tests.proxy import Call, Proxy

NODES = [
    {"path": "US", "level": "COUNTRY"}, {"path": "US/NE", "level": "STATE"}, {"path": "US/KS", "level": "STATE"},
    {"path": "US/NE/Omaha", "level": "CITY"}, *({"path": f"US/NE/Omaha/{n:03}", "level": "STORE"} for n in range(120)),
]  # fmt: skip
MOVE = (
    'mutation { moveLocation(input: {node: {path: "US/NE/Omaha"}, to: {parent: {path: "US/KS"}}}) '
    "{ move { id state } } }"
)
PLACE = '{ city(path: "US/KS/Omaha") { path descendantCount } old: city(path: "US/NE/Omaha") { path } }'
CHECK = "/healthz"


def run(url: str, *arguments: str) -> str:
    ended = subprocess.run([CLADE, *arguments, "--store", url], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def function(name: str, store: str) -> Iterator[str]:
    """The URL of a function of the template on a port of its own; it is killed at the end."""
    port = str(free_port())
    variables = {"PATH": f"{CLADE.parent}:/usr/bin:/bin", **function_environment(name, Writes="on", Reads="open")}
    variables |= {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_LWA_PORT": port}
    variables |= {"CLADE_STORE": store, "CLADE_REQUEST_SECONDS": "2", "CLADE_SETTLE_SECONDS": "0"}
    command = [CLADE, "serve", "--host", "127.0.0.1", "--port", port]
    if name == "Repair":
        config = template("lambda/template.yaml")["Resources"][name]["Properties"]["ImageConfig"]
        assert config["Command"] == ["python", "/opt/clade-lambda/repair.py"]
        command = [sys.executable, DEPLOY / "lambda" / "repair.py"]
    url = f"http://127.0.0.1:{port}"
    with Process(*command, url=url, ready=CHECK, environment=variables):
        yield url


def actions(call: Call) -> set[str]:
    """The actions that IAM asks for of one call."""
    if call.operation == "TransactWriteItems":
        return {f"{kind}Item" for change in call.body["TransactItems"] for kind in change}
    return {"GetItem"} if call.operation == "TransactGetItems" else {call.operation}


def test_the_image_has_the_port_and_the_check_that_the_adapter_needs() -> None:
    text = (DEPLOY / "lambda" / "Dockerfile").read_text()
    assert "AWS_LWA_PORT=8000" in text
    assert f"AWS_LWA_READINESS_CHECK_PATH={CHECK}" in text
    assert "/opt/extensions/lambda-adapter" in text


@pytest.mark.thorough
async def test_a_move_that_was_left_is_completed_by_the_scheduled_repair(engine: Engine, tmp_path) -> None:
    store = engine.address(f"lambda-{uuid.uuid4().hex}")
    (tmp_path / "nodes.jsonl").write_text("\n".join(map(json.dumps, NODES)))
    await asyncio.to_thread(run, store, "table", "create")
    await asyncio.to_thread(run, store, "import", "location", str(tmp_path / "nodes.jsonl"))
    async with httpx.AsyncClient(timeout=120) as client:
        with function("Server", store) as url:
            moved = (await client.post(f"{url}/graphql", json={"query": MOVE})).json()
        assert moved["data"]["moveLocation"]["move"]["state"] == "COPYING"
        async with Proxy(engine.url) as proxy:
            with function("Repair", store.replace(engine.url, proxy.url)) as url:
                result = await client.post(f"{url}/events", json={"source": "aws.scheduler"})
            called = set().union(*map(actions, proxy.calls))
        assert (result.status_code, "1 repaired" in result.json()["output"]) == (200, True)
        (policy,) = template("lambda/template.yaml")["Resources"]["Repair"]["Properties"]["Policies"]
        allowed = {action.removeprefix("dynamodb:") for action in policy["Statement"][0]["Action"]}
        assert called <= allowed
        assert ACTIONS[Use.WRITING] < allowed
        with function("Server", store) as url:
            after = (await client.post(f"{url}/graphql", json={"query": PLACE})).json()["data"]
    assert after == {"city": {"path": "US/KS/Omaha", "descendantCount": 120}, "old": {"path": "US/KS/Omaha"}}
    assert "no findings" in await asyncio.to_thread(run, store, "check")


@pytest.mark.thorough
def test_a_repair_that_fails_has_a_status_of_a_failed_invocation() -> None:
    first, last = map(int, function_environment("Repair")["AWS_LWA_ERROR_STATUS_CODES"].split("-"))
    with function("Repair", "sqlite:///missing.db") as url:
        result = httpx.post(f"{url}/events", json={}, timeout=120)
    assert first <= result.status_code <= last
    assert "missing.db" in result.text
