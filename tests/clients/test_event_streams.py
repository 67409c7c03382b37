"""Event streams of real servers: the client graphql-sse through restarts, and servers that stop with open streams."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from store.connect import open_store, opened
from store.engine import ReadUsage
from store.writing.create_update import Create
from store.writing.writer import Writer
from tests.clients.programs import HERE, needs_node
from tests.event_streams import CHANGES, FEED
from tests.hierarchies import CATEGORY
from tests.servers import Server

LINE_SECONDS = 60.0
HEADERS = {"accept": "text/event-stream"}


@asynccontextmanager
async def follower(address: Path, tree: str) -> AsyncIterator[asyncio.StreamReader]:
    """What the client in Node prints, a line for each page."""
    program = await asyncio.create_subprocess_exec(
        "node", HERE / "event-stream.mjs", address, tree, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert program.stdout is not None
        yield program.stdout
    finally:
        program.kill()
        await program.wait()


async def page(lines: asyncio.StreamReader) -> list[dict[str, str]]:
    async with asyncio.timeout(LINE_SECONDS):
        read = json.loads(await lines.readline())
    assert "errors" not in read, read
    changes: list[dict[str, str]] = read["changes"]
    return changes


@pytest.mark.thorough
@needs_node
async def test_graphql_sse_loses_nothing_and_repeats_nothing_when_the_server_is_restarted(store_url, tmp_path):
    address = tmp_path / "address"
    server = Server(tmp_path, "server", store=store_url, drain_seconds="0")

    async def start() -> None:
        await server.start()
        address.write_text(f"{server.url}/graphql")

    async with open_store(store_url) as store:
        await store.create()
        writer, count = Writer(store), 0

        async def write(changes: int) -> None:
            nonlocal count
            for _ in range(changes):
                path = ("a", f"{count}") if count else ("a",)
                await writer.write(Create(CATEGORY, path, "CATEGORY", "x", {}), ReadUsage())
                count += 1

        await start()
        try:
            async with follower(address, "a") as lines:
                assert await page(lines) == []
                seen: list[dict[str, str]] = []
                for stop in [signal.SIGTERM, signal.SIGKILL] if store_url.startswith("sqlite") else [signal.SIGTERM]:
                    await write(3)
                    while not seen:  # while the others may still be on their way
                        seen += await page(lines)
                    os.kill(server.pid, stop)
                    assert await server.died()
                    await write(2)
                    await start()
                    await write(1)
                while len(seen) < count:
                    seen += await page(lines)
            listed = (await server.ask(FEED, tree="a"))["data"]["changes"]["changes"]
        finally:
            server.kill()
    assert [change["nodeId"] for change in seen] == [change["nodeId"] for change in listed]
    assert [change["path"] for change in seen] == ["a", *(f"a/{number}" for number in range(1, count))]
    assert "Cancel" not in server.said()  # uvicorn's word for requests that did not end by themselves


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
async def test_a_server_that_stops_ends_its_streams_and_waits_for_none(tmp_path, stop):
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    async with opened(url, make=True):
        pass
    server = Server(tmp_path, "server", store=url, drain_seconds="0")
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url, timeout=LINE_SECONDS) as client:
            body = {"query": CHANGES, "variables": {"tree": "a"}}
            async with client.stream("POST", "/graphql", json=body, headers=HEADERS) as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == "event: next"
                os.kill(server.pid, stop)
                rest = [line async for line in lines]  # the body is complete, or httpx would raise an error
                assert "event: complete" not in rest
        assert await server.died()
    finally:
        server.kill()
    assert "Cancel" not in server.said()
    assert '"kind":"subscription"' in server.said()
