"""What the README says is so: its commands and queries are run as written, its tables are compared with the code."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from graph import errors as graph_errors
from graph.settings import Settings
from store.errors import CladeError
from tests import engines
from tests.conftest import CLADE
from tests.engines import Engine, free_port
from tests.readme import README, blocks, section, table

ROOT = README.parent
START_SECONDS = 120


def ask(url: str, query: str) -> dict:
    answer = httpx.post(f"{url}/graphql", json={"query": query}, headers={"clade-reads": "1"}, timeout=30)
    return answer.json()


# -- the start ---------------------------------------------------------------------------------------------------------


def test_the_two_commands_are_scripts_that_can_be_started():
    commands = [block.strip() for block in blocks("sh", section("Start")) if block.startswith("scripts/")]
    assert commands == ["scripts/serve", "scripts/test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_the_demo_data_has_as_many_nodes_as_it_says(demo_server):
    found = ask(demo_server, "{ locations { nodes { descendantCount } } categories { nodes { descendantCount } } }")
    roots = [node for listed in found["data"].values() for node in listed["nodes"]]
    nodes = len(roots) + sum(root["descendantCount"] for root in roots)
    assert f"loads {nodes:,} nodes, real places and a small catalogue," in section("Start")


def test_curl_gets_the_answer_of_a_query(demo_server):
    (command,) = [block for block in blocks("sh", section("Start")) if block.startswith("curl")]
    _, url, *options = shlex.split(command.replace("\\\n", ""))
    given = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ") for option, value in given if option == "-H")
    (body,) = (value for option, value in given if option == "-d")
    answer = httpx.post(url.replace("http://127.0.0.1:8000", demo_server), content=body, headers=headers).json()
    assert answer["data"]["city"]["name"] == "Omaha"
    assert [node["level"] for node in answer["data"]["city"]["ancestors"]] == ["COUNTRY", "STATE"]
    assert answer["extensions"]["reads"]["requests"] > 0


# -- the queries -------------------------------------------------------------------------------------------------------

QUERIES = {
    name: query
    for block in blocks("graphql", section("A nested query, and what it costs"))
    for query in block.split("\n\n")
    for name in re.findall(r"^query (\w+)", query)
}


def test_the_nested_query_has_the_answer_that_is_shown(demo_server):
    (shown,) = blocks("json", section("A nested query, and what it costs"))
    assert ask(demo_server, QUERIES["Televisions"]) == orjson.loads(shown)


def test_the_table_tells_what_each_query_costs_and_what_a_query_for_each_list_would(demo_server):
    costs = []
    for name, query in QUERIES.items():
        answer = ask(demo_server, query)
        nodes, lists = nodes_and_lists(answer["data"])
        costs.append((name, f"{nodes:,}", str(answer["extensions"]["reads"]["requests"]), str(lists)))
    assert table("A nested query, and what it costs") == costs


def nodes_and_lists(value: object) -> tuple[int, int]:
    """How many nodes an answer holds, and how many queries those who ask for each field by itself would send."""
    match value:
        case list():
            counts = [nodes_and_lists(item) for item in value]
        case {"nodes": nodes}:  # a list, which is a query
            counts = [nodes_and_lists(nodes), (0, 1)]
        case dict():
            counts = [nodes_and_lists(item) for item in value.values()]
            counts.append(("name" in value, 0))
            if "category" in value or "country" in value:
                counts.append((0, 1))  # the node at the path
        case _:
            counts = []
    return sum(nodes for nodes, _ in counts), sum(lists for _, lists in counts)


# -- the commands ------------------------------------------------------------------------------------------------------


def run(commands: str, folder: Path, seconds: float = START_SECONDS, **environment: str) -> str:
    """Run commands of which the last one serves, until it does; what they printed."""
    port = free_port()
    assert commands.endswith("clade serve\n")
    said = folder / "said.txt"
    with said.open("w") as output:
        process = subprocess.Popen(
            ["sh", "-ec", commands.replace("clade serve", f"exec clade serve --port {port}")],
            cwd=folder,
            env={**os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}", **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            await_answer(f"http://127.0.0.1:{port}/readyz", process, seconds)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(START_SECONDS)
    text = said.read_text()
    assert f"http://127.0.0.1:{port}/graphql" in text, text
    return text


def await_answer(url: str, process: subprocess.Popen, seconds: float) -> None:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            assert httpx.get(url).status_code == 200
            return
        time.sleep(0.05)


SHOPS = "added: 15 (2 COUNTRY, 2 STATE, 3 CITY, 4 POSTAL_CODE, 4 STORE)"


def test_a_line_of_json_is_taken_as_it_says(tmp_path):
    (line,) = re.findall(r'`(\{"path".*\})`', section("Your own data"))
    above = [{"path": "US", "level": "COUNTRY"}, {"path": "US/NE", "level": "STATE"}]
    (tmp_path / "omaha.jsonl").write_bytes(b"\n".join([*map(orjson.dumps, above), line.encode()]))
    store = f"sqlite:///{tmp_path / 'clade.db'}"
    subprocess.run([CLADE, "import", "location", "omaha.jsonl", "--store", store], cwd=tmp_path, check=True, timeout=60)
    exported = subprocess.check_output([CLADE, "export", "location", "US/NE/Omaha", "--store", store], timeout=60)
    written, taken = orjson.loads(exported), orjson.loads(line)
    assert {name: written[name] for name in taken} == {**taken, "path": taken["path"].split("/")}


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


def test_it_runs_on_dynamodb_as_it_says(new_engine: Engine, tmp_path):
    (tmp_path / "shops.csv").write_text(blocks("csv")[0])
    in_aws, on_an_endpoint = blocks("sh", section("On DynamoDB"))
    credentials = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    said = run(in_aws, tmp_path, AWS_ENDPOINT_URL_DYNAMODB=new_engine.url, **credentials)
    assert "the table is made" in said
    assert SHOPS in said
    said = run(on_an_endpoint.replace("http://127.0.0.1:8001", new_engine.url), tmp_path)
    assert "the table exists" in said  # both are the same engine here


def test_a_hierarchy_of_ones_own_is_one_file(tmp_path):
    part = section("A hierarchy of your own")
    (tmp_path / "organisation.py").write_text(blocks("python", part)[0])
    (tmp_path / "people.jsonl").write_text(blocks("json", part)[0])
    said = run(blocks("sh", part)[0], tmp_path)
    assert "Ana Ruiz" in said
    schema = subprocess.check_output(
        [CLADE, "schema"], cwd=tmp_path, env={**os.environ, "CLADE_HIERARCHIES": "organisation"}, text=True, timeout=60
    )
    for field in ("department", "person", "unit", "units"):
        assert f"  {field}(" in schema


def test_all_commands_work_in_one_shell_in_the_order_in_which_they_stand(new_engine: Engine, tmp_path):
    (tmp_path / "shops.csv").write_text(blocks("csv")[0])
    (tmp_path / "organisation.py").write_text(blocks("python")[0])
    (tmp_path / "people.jsonl").write_text(blocks("json", section("A hierarchy of your own"))[0])
    clade = [block for block in blocks("sh") if re.search("^clade ", block, re.MULTILINE)]
    assert len(clade) == 5
    commands = "".join(clade).replace("clade serve\n", "") + "clade serve\n"
    credentials = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    commands = commands.replace("http://127.0.0.1:8001", new_engine.url)
    said = run(commands, tmp_path, 2 * START_SECONDS, AWS_ENDPOINT_URL_DYNAMODB=new_engine.url, **credentials)
    assert said.count(SHOPS) == 2  # in SQLite, and in DynamoDB
    assert blocks("text", section("Your own data"))[0] in said
    for words in ("clade_", "the table is made", "the table exists", "Ana Ruiz"):
        assert words in said


# -- the tables --------------------------------------------------------------------------------------------------------


def test_every_setting_is_in_the_table_with_its_default_and_its_sentence():
    expected = [
        (f"`CLADE_{name.upper()}`", f"`{field.default}`" if field.default != "" else "", field.description)
        for name, field in Settings.model_fields.items()
    ]
    assert table("Settings") == expected


def test_every_error_code_is_in_the_table():
    codes = {value for name, value in vars(graph_errors).items() if name.isupper() and is_code(value)}
    kinds = [CladeError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        codes.add(kind.code)
    assert {code.strip("`") for code, _ in table("Errors")} == codes


def is_code(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Z_]+", value) is not None


def test_every_folder_is_in_the_table():
    files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
    folders = {f"{file.partition('/')[0]}/" for file in files if "/" in file}
    assert {folder.strip("`") for folder, _ in table("Folders")} == folders


def test_every_file_that_is_linked_is_there():
    links = re.findall(r"\]\(([^)]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/how-a-request-flows.md"])
def test_every_file_that_is_named_is_there(name):
    named = set(
        re.findall(
            r"`((?:clade|commands|graph|resolvers|store|scripts|docs|bench|tests)/[\w./-]*)`",
            (ROOT / name).read_text(),
        )
    )
    assert [one for one in named if not (ROOT / one).exists()] == []
