"""Functions of the Lambda template behind a stand-in of Lambda: events of a function URL, freezing, the schedule.

The stand-in forwards events as the documentation of the Lambda Web Adapter says, in its buffered mode, and stops the
processes of a function between two events. No package registry has the adapter itself.
"""

import asyncio
import base64
import json
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from store.dynamodb.iam_policy import ACTIONS, Use
from tests.conftest import CLADE
from tests.deploy.templates import DEPLOY, function_environment, template
from tests.engines import Engine
from tests.ports import free_port
from tests.proxy import Call, Proxy
from tests.readme import ROOT
from tests.serving import await_ready

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
NODES = [
    {"path": "US", "level": "COUNTRY"}, {"path": "US/NE", "level": "STATE"}, {"path": "US/KS", "level": "STATE"},
    {"path": "US/NE/Omaha", "level": "CITY", "name": 'Omaha "the gateway"'},
    *({"path": f"US/NE/Omaha/{n:03}", "level": "STORE"} for n in range(120)),
]  # fmt: skip
NAME = '{ city(path: "US/NE/Omaha") { name } }'
MOVE = 'mutation { moveLocation(path: "US/NE/Omaha", to: "US/KS") { move { id state } } }'
CHECK = "/healthz"
SCHEDULE = {"version": "0", "source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": {}}


@pytest.fixture
def url(engine: Engine, tmp_path: Path) -> str:
    """The URL of a table with some nodes."""
    found = engine.address(f"lambda-{uuid.uuid4().hex}")
    (tmp_path / "nodes.jsonl").write_text("\n".join(map(json.dumps, NODES)))
    run(found, "table", "create")
    run(found, "import", "location", str(tmp_path / "nodes.jsonl"))
    return found


@pytest.fixture
def key(url: str) -> str:
    return run(url, "key", "create", "--grant", "write:location").strip()


class FunctionError(Exception):
    """A failed invocation, with the response that counts as its error."""


class Environment:
    """One execution environment of a function. Between two events its process is stopped."""

    def __init__(self, log: Path, command: list[str], variables: dict[str, str]) -> None:
        self._application = f"http://127.0.0.1:{variables['AWS_LWA_PORT']}"
        self._errors = variables.get("AWS_LWA_ERROR_STATUS_CODES", "0-0").split("-")
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, env=variables, cwd=log.parent, stdout=output, stderr=output)
        await_ready(f"{self._application}{CHECK}", self.process)
        assert self.process.poll() is None, log.read_text()
        self.process.send_signal(signal.SIGSTOP)

    def invoke(self, event: dict[str, Any], seconds: float = 60.0) -> dict[str, Any]:
        """The result of one event, for which the process is continued. Raises FunctionError."""
        self.process.send_signal(signal.SIGCONT)
        answer = self._forward(event, seconds)
        self.process.send_signal(signal.SIGSTOP)
        if int(self._errors[0]) <= answer.status_code <= int(self._errors[1]):
            raise FunctionError(answer.text)
        kind = answer.headers.get("content-type", "").partition(";")[0]
        is_text = "content-encoding" not in answer.headers and (kind.startswith("text/") or kind.endswith("json"))
        body = answer.text if is_text else base64.b64encode(answer.content).decode()
        return {"statusCode": answer.status_code, "body": body, "isBase64Encoded": not is_text}

    def _forward(self, event: dict[str, Any], seconds: float) -> httpx.Response:
        context = event.get("requestContext", {})
        if "http" not in context:
            return httpx.post(f"{self._application}/events", json=event, timeout=seconds)
        url = f"{self._application}{event['rawPath']}?{event['rawQueryString']}".removesuffix("?")
        headers = {**event["headers"], "x-amzn-request-context": json.dumps(context), "x-amzn-lambda-context": "{}"}
        return httpx.request(context["http"]["method"], url, headers=headers, content=event["body"], timeout=seconds)

    def end(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture
def function(url: str, tmp_path: Path) -> Iterator[Callable[..., Environment]]:
    """Starts environments of a function of the template; all end with the test."""
    running: list[Environment] = []

    def start(name: str = "Server", store: str = url, **settings: str) -> Environment:
        given = function_environment(name, Writes="granted", Reads="open")
        port = str(free_port())
        variables = {"PATH": f"{CLADE.parent}:/usr/bin:/bin", "AWS_LWA_PORT": port, **given, **image_variables()}
        variables |= {**CREDENTIALS, **settings, "CLADE_STORE": store}
        running.append(Environment(tmp_path / f"{port}.log", command_of(name, port), variables))
        return running[-1]

    yield start
    for environment in running:
        environment.end()


def run(url: str, *arguments: str) -> str:
    ended = subprocess.run([CLADE, *arguments, "--store", url], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def image_variables() -> dict[str, str]:
    """CLADE_ variables of the image."""
    return dict(re.findall(r"(CLADE_\w+)=(\S+)", (ROOT / "Dockerfile").read_text().rpartition("FROM")[2]))


def command_of(name: str, port: str) -> list[str]:
    """The command of the image or of the function, on a loopback address and from the checkout."""
    given = template("lambda/template.yaml")["Resources"][name]["Properties"].get("ImageConfig", {}).get("Command")
    if given:
        assert given == ["python", "/opt/clade-lambda/repair.py"]
        return [sys.executable, str(DEPLOY / "lambda" / "repair.py")]
    return [str(CLADE), "serve", "--host", "127.0.0.1", "--port", port]


def event(query: str, key: str = "", **more: Any) -> dict[str, Any]:
    """The event of a function URL for a query, as a browser's client sends it."""
    headers = {"content-type": "application/json", "accept": "application/json", "host": "x.lambda-url.example"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    context = {"http": {"method": "POST", "path": "/graphql", "sourceIp": "203.0.113.7"}, "stage": "$default"}
    return {
        "version": "2.0", "rawPath": "/graphql", "rawQueryString": "", "headers": headers, "requestContext": context,
        "body": json.dumps({"query": query}), "isBase64Encoded": False, **more,
    }  # fmt: skip


def actions(call: Call) -> set[str]:
    """The actions that IAM asks for of one call."""
    if call.operation == "TransactWriteItems":
        return {f"{kind}Item" for change in call.body["TransactItems"] for kind in change}
    return {"GetItem"} if call.operation == "TransactGetItems" else {call.operation}


def data(result: dict[str, Any]) -> Any:
    assert (result["statusCode"], result["isBase64Encoded"]) == (200, False), result
    body = json.loads(result["body"])
    assert "errors" not in body, body
    return body["data"]


def test_the_image_has_the_port_and_the_check_that_the_adapter_needs() -> None:
    text = (DEPLOY / "lambda" / "Dockerfile").read_text()
    assert "AWS_LWA_PORT=8000" in text
    assert f"AWS_LWA_READINESS_CHECK_PATH={CHECK}" in text
    assert "/opt/extensions/lambda-adapter" in text


def test_events_of_a_function_url_are_answered(function) -> None:
    server = function()
    assert data(server.invoke(event(NAME))) == {"city": {"name": 'Omaha "the gateway"'}}
    get = event("", rawQueryString="query=%7B__typename%7D", body="")
    get["requestContext"]["http"]["method"] = "GET"
    assert data(server.invoke(get)) == {"__typename": "Query"}
    missing = server.invoke({**event(""), "rawPath": "/nothing"})
    assert missing["statusCode"] == 404


@pytest.mark.thorough
def test_an_environment_that_was_frozen_answers_with_what_others_wrote_meanwhile(function, key) -> None:
    at_once = {"CLADE_SETTLE_SECONDS": "0"}  # so that caches are used at once
    first, second = function(**at_once), function(**at_once)
    assert data(first.invoke(event(NAME)))["city"]["name"] == 'Omaha "the gateway"'
    renamed = 'mutation { updateLocation(path: "US/NE/Omaha", name: "Omaha") { node { name } } }'
    assert data(second.invoke(event(renamed, key)))["updateLocation"]["node"] == {"name": "Omaha"}
    assert data(first.invoke(event(NAME)))["city"]["name"] == "Omaha"


@pytest.mark.thorough
async def test_a_move_that_is_frozen_is_completed_by_the_scheduled_repair(function, engine, url, key) -> None:
    quick = {"CLADE_REQUEST_SECONDS": "2", "CLADE_SETTLE_SECONDS": "0"}
    server = await asyncio.to_thread(function, **quick)
    moved = await asyncio.to_thread(server.invoke, event(MOVE, key))
    assert data(moved)["moveLocation"]["move"]["state"] == "COPYING"  # and now it is frozen

    async with Proxy(engine.url) as proxy:
        repair = await asyncio.to_thread(function, "Repair", url.replace(engine.url, proxy.url), **quick)
        result = await asyncio.to_thread(repair.invoke, SCHEDULE, 120.0)
        called = set().union(*map(actions, proxy.calls))
    assert result["statusCode"] == 200
    assert "1 repaired" in json.loads(result["body"])["output"]
    (policy,) = template("lambda/template.yaml")["Resources"]["Repair"]["Properties"]["Policies"]
    allowed = {action.removeprefix("dynamodb:") for action in policy["Statement"][0]["Action"]}
    assert called <= allowed
    assert ACTIONS[Use.WRITING] < allowed

    place = 'query { city(path: "US/KS/Omaha") { path descendantCount } old: city(path: "US/NE/Omaha") { path } }'
    after = data(await asyncio.to_thread(server.invoke, event(place)))
    assert after == {"city": {"path": "US/KS/Omaha", "descendantCount": 120}, "old": {"path": "US/KS/Omaha"}}
    assert "no findings" in await asyncio.to_thread(run, url, "check")


@pytest.mark.thorough
def test_a_repair_that_fails_is_a_failed_invocation(function) -> None:
    repair = function("Repair", "sqlite:///missing.db")
    with pytest.raises(FunctionError, match=r"missing\.db"):
        repair.invoke(SCHEDULE)
