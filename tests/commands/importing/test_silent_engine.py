"""`clade import` into a DynamoDB engine that is silent for a while, or for good."""

import asyncio
import os
import uuid
from pathlib import Path

import pytest
from aiohttp import web

from store.connect import open_store
from tests.conftest import CLADE
from tests.engines import Engine
from tests.proxy import Call, Fault, Forward, Proxy, dropped

SILENT_SECONDS = 9.0  # longer than a request would wait
SECONDS = 180
NODES = "".join(f'{{"path": "T{tree}", "level": "COUNTRY"}}\n' for tree in range(3))


def silent_until(moment: asyncio.Event) -> Fault:
    """Say nothing until a moment, as an engine that stands still."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        await moment.wait()
        return await forward(call.body)

    return fault


async def new_table(engine: Engine) -> str:
    name = f"clade-{uuid.uuid4().hex}"
    async with open_store(engine.address(name)) as store:
        await store.create()
    return name


async def clade(folder: Path, url: str, *words: str) -> tuple[int | None, str]:
    """Exit status and output of a command in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        CLADE, *words, "--store", url, cwd=folder, env=dict(os.environ),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode, output.decode()


@pytest.mark.thorough
async def test_an_import_waits_for_an_engine_that_is_silent_for_some_seconds(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "nodes.jsonl").write_text(NODES)
    name = await new_table(engine)
    async with Proxy(engine.url) as proxy:
        moment = asyncio.Event()
        proxy.spoil("TransactWriteItems", *[silent_until(moment)] * 100)
        command = clade(tmp_path, Engine("", proxy.url, exact=True).address(name), "import", "location", "nodes.jsonl")
        importing = asyncio.create_task(command)
        while not proxy.count("TransactWriteItems"):
            assert not importing.done(), await importing
            await asyncio.sleep(0.05)
        asyncio.get_running_loop().call_later(SILENT_SECONDS, moment.set)
        status, output = await importing
    assert (status, "added: 3 (3 COUNTRY)" in output) == (0, True), output


@pytest.mark.thorough
async def test_an_import_without_its_engine_says_how_to_continue(lasting_engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "nodes.jsonl").write_text(NODES)
    with lasting_engine:
        name = await new_table(lasting_engine)
        async with Proxy(lasting_engine.url) as proxy:
            url = Engine("", proxy.url, exact=True).address(name)

            async def dead(call: Call, forward: Forward) -> web.Response:
                """The engine dies while it makes the change."""
                for operation in ("TransactWriteItems", "BatchGetItem", "GetItem", "Query"):
                    proxy.spoil(operation, *[dropped] * 100)
                raise ConnectionAbortedError

            proxy.spoil("TransactWriteItems", dead)
            status, output = await clade(tmp_path, url, "import", "location", "nodes.jsonl")
            assert status == 1, output
            # A read of another tree may fail first, and then nothing is said of the change.
            assert "unknown whether the change was made" in output or "does not respond" in output
            assert "Run the same command to continue." in output
            assert "idempotencyKey" not in output
            proxy.mend()
            status, output = await clade(tmp_path, url, "import", "location", "nodes.jsonl")
            assert (status, "3 nodes" in output) == (0, True), output
            status, output = await clade(tmp_path, url, "check", "location")
            assert (status, "no findings" in output) == (0, True), output
