"""`clade table`: create, describe and policy; tables that Clade cannot use, as commands meet them."""

import asyncio
import json
import os
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from store.connect import open_store
from store.errors import BadInput, WrongLayout
from tests.commands.importing.test_tables import fill
from tests.conftest import CLADE
from tests.engines import Engine, free_port
from tests.proxy import Proxy, refused
from tests.store.metadata.test_layout_version import set_layout


def run(*arguments: str):
    return CliRunner().invoke(app_of(), arguments, env={"COLUMNS": "200"})


def test_a_table_is_created_once_and_described(engine: Engine) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    made = run("table", "create", "--units", "50:10", "--protection", "--tag", "team=maps", "--store", url)
    assert (
        made.output
        == f"{url}: the table is made. The URL has an endpoint, so it has no recovery; enable with --recovery.\n"
    )
    again = run("table", "create", "--store", url)
    assert again.output == f"{url}: the table exists.\n"
    shown = run("table", "describe", "--store", url).output
    for words in ("layout", "ACTIVE", "table 50 read and 10 write units", "by_level, by_parent", "expires"):
        assert words in shown


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], " The URL has an endpoint, so it has no recovery and no protection; enable with --recovery --protection."),
        (["--no-recovery"], " The URL has an endpoint, so it has no protection; enable with --protection."),
        (["--no-recovery", "--no-protection"], ""),
    ],
)
def test_features_that_are_off_at_an_endpoint_are_printed_unless_declined(engine, options, sentence) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    assert run("table", "create", *options, "--store", url).output == f"{url}: the table is made.{sentence}\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--units", "50"], "READ:WRITE"),
        (["--units", "50:-1"], "READ:WRITE"),
        (["--units", "0:1"], "at least 1 unit"),
        (["--index-units", "5:5"], "needs --units"),
        (["--tag", "maps"], "--tag team=maps"),
        (["--tag", "=maps"], "--tag team=maps"),
        (["--recovery", "--store", "sqlite://:memory:"], "for tables of DynamoDB"),
    ],
)
def test_invalid_options_are_errors_before_anything_is_created(options: list[str], sentence: str) -> None:
    invalid = run("table", "create", "--store", "dynamodb://clade?endpoint=http://127.0.0.1:9", *options)
    assert isinstance(invalid.exception, BadInput)
    assert sentence in str(invalid.exception)


def test_the_policy_is_json_for_iam() -> None:
    printed = run("table", "policy", "--for", "writing", "--store", "dynamodb://clade?region=eu-west-1")
    document = json.loads(printed.output)
    assert document["Version"] == "2012-10-17"
    assert "dynamodb:PutItem" in document["Statement"][0]["Action"]
    invalid = run("table", "policy", "--store", "sqlite:///clade.db")
    assert "is not a DynamoDB table" in str(invalid.exception)


@pytest.mark.parametrize(
    "command", [["tree", "location"], ["export", "location"], ["check"], ["repair"], ["demo"], ["serve", "--port", "0"]]
)
def test_no_command_touches_a_table_of_another_layout(command: list[str], tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    run("table", "create", "--store", url)
    asyncio.run(set_layout(url, 3))
    invalid = CliRunner().invoke(app_of(), command, env={"CLADE_STORE": url})
    assert isinstance(invalid.exception, WrongLayout)
    assert "use the version of Clade that wrote it" in str(invalid.exception)


# -- tables of others -------------------------------------------------------------------------------------------------

SECONDS = 60
COMMANDS = [["serve"], *(pytest.param(words, marks=pytest.mark.thorough) for words in (["check"], ["table", "create"]))]
LACKING = ("UnknownOperationException", pytest.param("ValidationException", marks=pytest.mark.thorough))
"""The errors of engines without transactions, and of AWS for a global table with strong consistency."""


async def clade(folder: Path, url: str, *words: str, **settings: str) -> tuple[int | None, str]:
    """Exit status and output of a command in a process of its own; a server is stopped when it listens."""
    environment = {**os.environ, "CLADE_STORE": url, "PYTHONUNBUFFERED": "1", **settings}
    port = ["--port", str(free_port())] if words == ("serve",) else []
    process = await asyncio.create_subprocess_exec(
        CLADE, *words, *port, cwd=folder, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    output = b""
    async with asyncio.timeout(SECONDS):
        while line := await process.stdout.readline():
            output += line
            if b"Press Ctrl-C to stop" in line:
                process.terminate()
        await process.wait()
    return process.returncode, output.decode()


async def own_table(engine: Engine, keys: tuple[str, str]) -> str:
    """The URL of a table that a user made for something else."""
    name = f"theirs-{uuid.uuid4().hex}"
    partition, sort = keys
    await fill(engine, name, [{partition: "CUSTOMER#1", sort: "ORDER#1", "total": 12}])
    return engine.address(name)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("keys", "sentence"),
    [(("PK", "SK"), "its keys are PK and SK, not pk and sk"), (("pk", "sk"), "it has no index by_parent")],
    ids=["other keys", "the same keys"],
)
async def test_a_table_of_others_is_refused_by_what_it_has(
    engine: Engine, tmp_path: Path, words: list[str], keys: tuple[str, str], sentence: str
) -> None:
    status, output = await clade(tmp_path, await own_table(engine, keys), *words)
    assert status == 1, output
    assert sentence in output
    assert "docs/from-your-table.md" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("error", LACKING)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
async def test_an_engine_without_transactions_is_refused_before_the_first_write(
    engine: Engine, tmp_path: Path, words: list[str], error: str
) -> None:
    name = f"clade-{uuid.uuid4().hex}"
    async with Proxy(engine.url) as proxy:
        async with open_store(engine.address(name)) as store:
            await store.create()
        proxy.spoil("TransactWriteItems", *[refused(error)] * 100)
        status, output = await clade(
            tmp_path, Engine("", proxy.url, exact=True).address(name), *words, CLADE_WRITES="on"
        )
    assert status == 1, output
    assert "has no transactions" in output
    assert "idempotencyKey" not in output
