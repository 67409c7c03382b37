"""`clade table`: create, describe and policy."""

import asyncio
import json
import uuid

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from store.errors import BadInput, WrongLayout
from store.metadata.layout_version import LAYOUT
from tests.engines import Engine
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
    refused = run("table", "create", "--store", "dynamodb://clade?endpoint=http://127.0.0.1:9", *options)
    assert isinstance(refused.exception, BadInput)
    assert sentence in str(refused.exception)


def test_the_policy_is_json_for_iam() -> None:
    printed = run("table", "policy", "--for", "writing", "--store", "dynamodb://clade?region=eu-west-1")
    document = json.loads(printed.output)
    assert document["Version"] == "2012-10-17"
    assert "dynamodb:PutItem" in document["Statement"][0]["Action"]
    refused = run("table", "policy", "--store", "sqlite:///clade.db")
    assert "is not a DynamoDB table" in str(refused.exception)


@pytest.mark.parametrize(
    "command", [["tree", "location"], ["export", "location"], ["check"], ["repair"], ["demo"], ["serve", "--port", "0"]]
)
def test_no_command_touches_a_table_of_another_layout(command: list[str], tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    run("table", "create", "--store", url)
    asyncio.run(set_layout(url, LAYOUT + 1))
    refused = CliRunner().invoke(app_of(), command, env={"CLADE_STORE": url})
    assert isinstance(refused.exception, WrongLayout)
    assert "use the version of Clade that wrote it" in str(refused.exception)
