"""The README: its commands and queries are run as they are written."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from tests import engines
from tests.conftest import CLADE
from tests.engines import Engine
from tests.ports import free_port
from tests.processes import Process
from tests.readme import README, ROOT, blocks, section

START_SECONDS = 120
MAX_LINES = 220
SHOPS = "added: 15 (2 COUNTRY, 2 STATE, 3 CITY, 4 POSTAL_CODE, 4 STORE)"


def ask(url: str, query: str) -> dict:
    response = httpx.post(f"{url}/graphql", json={"query": query}, headers={"clade-reads": "1"}, timeout=30)
    return response.json()


def test_the_readme_is_short():
    assert README.read_text("utf-8").count("\n") <= MAX_LINES


# -- start -------------------------------------------------------------------------------------------------------------


def test_the_two_commands_are_executable_scripts():
    commands = [block.strip() for block in blocks("sh", section("Start")) if block.startswith("scripts/")]
    assert commands == ["scripts/serve", "scripts/test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_the_number_of_nodes_in_the_demo_data_is_right(demo_server):
    found = ask(demo_server, "{ locations { nodes { descendantCount } } categories { nodes { descendantCount } } }")
    roots = [node for connection in found["data"].values() for node in connection["nodes"]]
    nodes = len(roots) + sum(root["descendantCount"] for root in roots)
    assert f"loads {nodes:,} nodes, real places and a small catalogue," in section("Start")


def test_the_curl_command_gets_a_response(demo_server):
    (command,) = [block for block in blocks("sh", section("Start")) if block.startswith("curl")]
    _, url, *options = shlex.split(command.replace("\\\n", ""))
    given = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ") for option, value in given if option == "-H")
    (body,) = (value for option, value in given if option == "-d")
    response = httpx.post(url.replace("http://127.0.0.1:8000", demo_server), content=body, headers=headers).json()
    assert response["data"]["city"]["name"] == "Omaha"
    assert [node["level"] for node in response["data"]["city"]["ancestors"]] == ["COUNTRY", "STATE"]
    assert response["extensions"]["reads"]["requests"] > 0


def test_the_nested_query_has_the_response_that_is_shown(demo_server):
    part = section("A nested query and its cost")
    (query,), (shown,) = blocks("graphql", part), blocks("json", part)
    assert ask(demo_server, query) == orjson.loads(shown)


# -- commands ----------------------------------------------------------------------------------------------------------


def run(commands: str, folder: Path, seconds: float = START_SECONDS, **environment: str) -> str:
    """Run commands, the last of which is `clade serve`, until the server is ready; returns their output."""
    port = free_port()
    assert commands.endswith("clade serve\n")
    command = ["sh", "-ec", commands.replace("clade serve", f"exec clade serve --port {port}")]
    given = {**os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}", **environment}
    process = Process(*command, url=f"http://127.0.0.1:{port}", environment=given, folder=folder)
    process.start(seconds)
    process.stop(signal.SIGINT)
    assert f"{process.url}/graphql" in process.said(), process.said()
    return process.said()


@pytest.fixture
def new_engine() -> Iterator[Engine]:
    """An engine without any table."""
    try:
        found = engines.find()
    except engines.NoEngine as missing:
        pytest.skip(str(missing))
    found.start()
    yield found
    found.stop()


def test_your_own_hierarchy_is_one_file(tmp_path):
    part = section("Your own hierarchy")
    (tmp_path / "organisation.py").write_text(blocks("python", part)[0])
    (tmp_path / "people.jsonl").write_text(blocks("json", part)[0])
    output = run(blocks("sh", part)[0], tmp_path)
    assert "Ana Ruiz" in output
    schema = subprocess.check_output(
        [CLADE, "schema"],
        cwd=tmp_path,
        env={**os.environ, "CLADE_HIERARCHIES": "organisation.py"},
        text=True,
        timeout=60,
    )
    for field in ("department", "person", "unit", "units"):
        assert f"  {field}(" in schema


@pytest.mark.thorough
def test_all_commands_run_in_one_shell_in_their_order(new_engine: Engine, tmp_path):
    (tmp_path / "shops.csv").write_text(blocks("csv")[0])
    (tmp_path / "organisation.py").write_text(blocks("python")[0])
    (tmp_path / "people.jsonl").write_text(blocks("json", section("Your own hierarchy"))[0])
    clade = [block for block in blocks("sh") if re.search("^clade ", block, re.MULTILINE)]
    assert len(clade) == 3
    commands = "".join(clade).replace("clade serve\n", "") + "clade serve\n"
    credentials = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    output = run(commands, tmp_path, 2 * START_SECONDS, AWS_ENDPOINT_URL_DYNAMODB=new_engine.url, **credentials)
    assert blocks("text", section("Your own data"))[0] in output
    for words in (SHOPS, "the table is made", "Copied ", "Ana Ruiz"):
        assert words in output


@pytest.mark.thorough
def test_the_server_on_dynamodb_has_the_nodes(new_engine: Engine, tmp_path):
    (tmp_path / "shops.csv").write_text(blocks("csv")[0])
    own_data = blocks("sh", section("Your own data"))[0].replace("clade serve\n", "")
    in_aws = blocks("sh", section("Deploy on DynamoDB"))[0]
    credentials = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    commands = own_data + in_aws.replace("clade serve", "clade tree location --depth 1\nclade serve")
    output = run(commands, tmp_path, AWS_ENDPOINT_URL_DYNAMODB=new_engine.url, **credentials)
    assert output.count(blocks("text", section("Your own data"))[0]) == 2  # SQLite's and DynamoDB's
