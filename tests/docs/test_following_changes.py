"""docs/following-changes.md: its commands and programs follow a server as they are written."""

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest
from graphql import parse, validate

from graph.hierarchies.locations import Location
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from store.connect import open_store
from store.edits.create_update import Update
from store.engine.usage import ReadUsage
from store.writer.writer import Writer
from tests.clients.programs import HERE, needs_node
from tests.readme import DOCS
from tests.servers import Server
from tests.systems.asking import plant

PAGE = (DOCS / "following-changes.md").read_text("utf-8")
URL = "http://127.0.0.1:8000"
LINE_SECONDS = 60.0


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
async def server(tmp_path):
    """A server of two places, and a function that renames one of them."""
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    server = Server(tmp_path, "server", store=url, drain_seconds="0")
    async with open_store(url) as store:
        await store.create()
        await plant(store, Location, [(("US",), "COUNTRY"), (("US", "NE"), "STATE")])
        writer = Writer(store)

        async def rename(name: str) -> None:
            await writer.write(Update(Location.definition(), ("US", "NE"), name, None, {}, None), ReadUsage())

        await server.start()
        yield server, rename
        await server.close()


async def lines_until(wanted: str, rename, *command: str | Path) -> list[str]:
    """The lines that a program prints up to the wanted one; meanwhile NE is renamed, since programs start slowly."""
    program = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert program.stdout is not None
    found: list[str] = []
    renaming = asyncio.create_task(keep_renaming(rename))
    try:
        async with asyncio.timeout(LINE_SECONDS):
            while not found or wanted not in found[-1]:
                line = await program.stdout.readline()
                assert line, found
                found.append(line.decode().rstrip("\n"))
        return found
    finally:
        renaming.cancel()
        program.kill()
        await program.wait()


async def keep_renaming(rename) -> None:
    number = 0
    while True:
        number += 1
        await rename(f"Nebraska {number}")
        await asyncio.sleep(0.2)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is missing")
async def test_curl_prints_events(server):
    following, rename = server
    (command,) = [block for block in blocks("sh") if block.startswith("curl")]
    lines = await lines_until("UPDATED", rename, "sh", "-c", f"exec {command.replace(URL, following.url)}")
    assert lines[0] == "event: next"
    assert lines[1].startswith("id: ")
    first = json.loads(lines[2].removeprefix("data: "))
    assert first["data"]["changes"] == {"changes": [], "cursor": lines[1].removeprefix("id: ")}
    assert '"path":"US/NE"' in lines[-1]


@needs_node
async def test_the_program_of_the_page_prints_changes(server, tmp_path):
    following, rename = server
    (tmp_path / "node_modules").symlink_to(HERE.parent / "node_modules")
    program = tmp_path / "page.mjs"
    program.write_text(blocks("js")[0].replace(URL, following.url))
    assert (await lines_until("UPDATED", rename, "node", program))[-1] == "UPDATED US/NE"


def test_the_subscription_of_the_page_is_valid():
    (query,) = blocks("graphql")
    schema, _ = build_schema([Location])
    assert validate(core_schema(schema), parse(query)) == []
