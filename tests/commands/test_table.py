"""`clade table` as it is typed."""

import asyncio
import json
import uuid

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from store.errors import BadInput, WrongLayout
from tests.engines import Engine
from tests.store.metadata.test_schema_version import set_layout


def run(*arguments: str):
    return CliRunner().invoke(app_of(), arguments, env={"COLUMNS": "200"})


def test_a_table_is_made_described_and_left_as_it_is(engine: Engine) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    made = run("table", "create", "--units", "50:10", "--protection", "--tag", "team=maps", "--store", url)
    assert (
        made.output
        == f"{url}: the table is made. At an endpoint it is without recovery unless one asks for --recovery.\n"
    )
    again = run("table", "create", "--store", url)
    assert again.output == f"{url}: the table exists.\n"
    shown = run("table", "describe", "--store", url).output
    for words in ("ACTIVE", "table 50 read and 10 write units", "by_level, by_parent", "expires"):
        assert words in shown
    assert run("table", "migrate", "--store", url).output == f"{url}: layout 1.\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], " At an endpoint it is without recovery and protection unless one asks for --recovery --protection."),
        (["--no-recovery"], " At an endpoint it is without protection unless one asks for --protection."),
        (["--no-recovery", "--no-protection"], ""),
    ],
)
def test_what_a_table_at_an_endpoint_has_not_is_told_unless_it_was_declined(engine, options, told) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    assert run("table", "create", *options, "--store", url).output == f"{url}: the table is made.{told}\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--units", "50"], "READ:WRITE"),
        (["--units", "50:-1"], "READ:WRITE"),
        (["--units", "0:1"], "at least 1 unit"),
        (["--index-units", "5:5"], "only where the table"),
        (["--tag", "maps"], "--tag team=maps"),
        (["--tag", "=maps"], "--tag team=maps"),
        (["--recovery", "--store", "sqlite://:memory:"], "for tables of DynamoDB"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_anything_is_made(options: list[str], sentence: str) -> None:
    refused = run("table", "create", "--store", "dynamodb://clade?endpoint=http://127.0.0.1:9", *options)
    assert isinstance(refused.exception, BadInput)
    assert sentence in str(refused.exception)


def test_a_policy_is_printed_as_it_is_pasted_into_iam() -> None:
    printed = run("table", "policy", "--for", "writing", "--store", "dynamodb://clade?region=eu-west-1")
    document = json.loads(printed.output)
    assert document["Version"] == "2012-10-17"
    assert "dynamodb:PutItem" in document["Statement"][0]["Action"]
    refused = run("table", "policy", "--store", "sqlite:///clade.db")
    assert "no table of DynamoDB" in str(refused.exception)


@pytest.mark.parametrize(
    "command", [["tree", "location"], ["export", "location"], ["check"], ["repair"], ["demo"], ["serve", "--port", "0"]]
)
def test_no_command_touches_a_table_of_a_newer_layout(command: list[str], tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    run("table", "create", "--store", url)
    asyncio.run(set_layout(url, 2))
    refused = CliRunner().invoke(app_of(), command, env={"CLADE_STORE": url})
    assert isinstance(refused.exception, WrongLayout)
    assert "use a newer Clade" in str(refused.exception)
