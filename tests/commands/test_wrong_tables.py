"""Tables that Clade cannot use, as the commands meet them: a user's own, one of an engine without transactions."""

import asyncio
import os
import uuid
from pathlib import Path

import pytest

from store.connect import open_store
from tests.commands.importing.test_tables import fill
from tests.conftest import CLADE
from tests.engines import Engine, free_port
from tests.proxy import Proxy, refused

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


@pytest.mark.thorough
async def test_a_reading_server_names_the_keys_without_the_right_to_describe_the_table(
    engine: Engine, tmp_path: Path
) -> None:
    url = await own_table(engine, ("PK", "SK"))
    async with Proxy(engine.url) as proxy:
        proxy.spoil("DescribeTable", refused("AccessDeniedException"))
        status, output = await clade(tmp_path, url.replace(engine.url, proxy.url), "serve")
    assert status == 1, output
    assert "its keys are not pk and sk" in output


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


@pytest.mark.thorough
async def test_a_server_that_only_reads_makes_no_transaction(engine: Engine, tmp_path: Path) -> None:
    name = f"clade-{uuid.uuid4().hex}"
    async with Proxy(engine.url) as proxy:
        async with open_store(engine.address(name)) as store:
            await store.create()
        proxy.spoil("TransactWriteItems", *[refused("UnknownOperationException")] * 100)
        _, output = await clade(tmp_path, Engine("", proxy.url, exact=True).address(name), "serve", CLADE_WRITES="off")
        assert proxy.count("TransactWriteItems") == 0
    assert "Clade serves" in output
