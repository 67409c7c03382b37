"""`clade table`: create, describe and policy; tables that Clade cannot use, as commands meet them."""

import asyncio
import json
import uuid

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from commands.server import _check_store
from store.connect import open_store, parse_store_url
from store.errors import BadInput, CladeError, WrongLayout
from store.metadata.tree_version import LAYOUT
from tests.commands.importing.test_tables import fill
from tests.engines import Engine
from tests.proxy import Proxy, refused
from tests.store.metadata.test_layout_version import set_layout


def run(*arguments: str):
    return CliRunner().invoke(app_of(), arguments, env={"COLUMNS": "200"})


def test_a_table_is_created_once_and_described(engine: Engine) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    made = run("table", "create", "--units", "50:10", "--protection", "--tag", "team=maps", "--store", url)
    sentence = "An endpoint is set, so it has no recovery; enable with --recovery."
    assert made.output == f"{url}: the table is made. {sentence}\n"
    again = run("table", "create", "--store", url)
    assert again.output == f"{url}: the table exists.\n"
    shown = run("table", "describe", "--store", url).output
    for words in ("layout", "ACTIVE", "table 50 read and 10 write units", "by_level, by_parent", "expires"):
        assert words in shown
    described = json.loads(run("table", "describe", "--json", "--store", url).output)
    assert (described["status"], described["indexes"]) == ("ACTIVE", ["by_level", "by_parent"])
    assert [line.split("\t")[0] for line in shown.splitlines()] == [*described], "no borders in a pipe"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], " An endpoint is set, so it has no recovery and no protection; enable with --recovery --protection."),
        (["--no-recovery"], " An endpoint is set, so it has no protection; enable with --protection."),
        (["--no-recovery", "--no-protection"], ""),
    ],
)
def test_features_that_are_off_at_an_endpoint_are_printed_unless_declined(engine, options, sentence) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    assert run("table", "create", *options, "--store", url).output == f"{url}: the table is made.{sentence}\n"
    again = json.loads(run("table", "create", *options, "--json", "--store", url).output)
    assert again == {"store": url, "created": False, "disabled": []}


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
    asyncio.run(set_layout(url, LAYOUT + 1))
    invalid = CliRunner().invoke(app_of(), command, env={"CLADE_STORE": url})
    assert isinstance(invalid.exception, WrongLayout)
    assert "use the version of Clade that wrote it" in str(invalid.exception)


# -- tables of others -------------------------------------------------------------------------------------------------

SERVE, CREATE = ["serve", "--port", "0"], ["table", "create"]


async def refusal(command: list[str], url: str) -> str:
    """The error that ends a command; a server that listens in this thread fails otherwise."""
    ended = await asyncio.to_thread(
        CliRunner().invoke, app_of(), command, env={"CLADE_STORE": url, "CLADE_WRITES": "on"}
    )
    assert isinstance(ended.exception, CladeError), ended.output + repr(ended.exception)
    return str(ended.exception)


@pytest.mark.parametrize(
    ("command", "keys", "sentence"),
    [
        (SERVE, ("PK", "SK"), "its keys are PK and SK, not pk and sk"),
        (CREATE, ("pk", "sk"), "it has no index by_parent"),
    ],
)
async def test_a_table_of_others_is_refused_by_what_it_has(
    engine: Engine, command: list[str], keys: tuple[str, str], sentence: str
) -> None:
    name = f"theirs-{uuid.uuid4().hex}"
    await fill(engine, name, [{keys[0]: "CUSTOMER#1", keys[1]: "ORDER#1", "total": 12}])
    said = await refusal(command, engine.address(name))
    assert (sentence in said, "docs/from-your-table.md" in said) == (True, True), said


@pytest.mark.parametrize(("command", "error"), [(SERVE, "UnknownOperationException"), (CREATE, "ValidationException")])
async def test_an_engine_without_transactions_is_refused_before_the_first_write(
    engine: Engine, command: list[str], error: str
) -> None:
    """By the errors of such engines, and of AWS for a global table with strong consistency."""
    name = f"clade-{uuid.uuid4().hex}"
    async with open_store(engine.address(name)) as store:
        await store.create()
    async with Proxy(engine.url) as proxy:
        proxy.spoil("TransactWriteItems", *[refused(error)] * 100)
        assert "has no transactions" in await refusal(command, Engine("", proxy.url, exact=True).address(name))


async def test_an_engine_that_rejects_the_check_of_transactions_is_reported(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Proxy(engine.url) as proxy:
        url = Engine("", proxy.url, exact=True).address(f"clade-{uuid.uuid4().hex}")
        proxy.spoil("TransactWriteItems", *[refused("InvalidSignatureException")] * 100)
        assert "rejects the credentials" in await refusal(["table", "create"], url)
        async with open_store(engine.address(parse_store_url(url).table)) as store:
            await store.create()
        await _check_store(url, [], writes=True)
        assert "rejects the credentials" in capsys.readouterr().err
