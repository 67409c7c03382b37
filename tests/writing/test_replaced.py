"""An SQLite file that is replaced or removed while servers run on it: they serve it, or say why not."""

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import httpx

from graph.hierarchies.categories import CategoryNode
from store.api_keys import add_key, new_key
from store.checking.check import Check
from store.connect import open_store
from store.edits.create_update import Create
from store.engine.usage import ReadUsage
from store.sqlite.connection import LOGS
from store.writer.writer import Writer
from tests.servers import Server

CREATE = """
mutation ($key: String!) {
  createCategoryNode(key: $key, name: $key, parent: "A", attributes: { category: true }) { node { path } }
}
"""
ROOT = 'mutation { createCategoryNode(key: "A", name: "A", attributes: { category: true }) { node { path } } }'
LIST = '{ category(path: "A") { children(first: 900) { nodes { name } } } }'


@asynccontextmanager
async def served(path: Path, *names: str) -> AsyncIterator[list[Server]]:
    """Servers on a new file, in which there is the node A."""
    url = f"sqlite:///{path}"
    async with open_store(url) as store:
        await store.create()
    servers = [Server(path.parent, name, store=url, writes="on") for name in names]
    try:
        for server in servers:
            await server.start()
        assert "errors" not in await servers[0].ask(ROOT)
        yield servers
    finally:
        for server in servers:
            await server.close()


async def create(server: Server, *keys: str) -> list[str]:
    """Create nodes below A; those that are acknowledged."""
    answers = [await server.ask(CREATE, key=key) for key in keys]
    return [key for key, answer in zip(keys, answers, strict=True) if "errors" not in answer]


async def listed(server: Server) -> list[str]:
    answer = await server.ask(LIST)
    return [node["name"] for node in answer["data"]["category"]["children"]["nodes"]]


async def ready(server: Server) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{server.url}/readyz")).status_code


def copy(path: Path, target: Path) -> Path:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copied:
        source.backup(copied)
    return target


def names_in(path: Path) -> list[str]:
    """The nodes below A in a file."""
    with closing(sqlite3.connect(path)) as reader:
        found = reader.execute("SELECT sk FROM items WHERE pk = 'category#A' AND tier IS NOT NULL AND sk <> '#'")
        return sorted(sk.strip("#") for (sk,) in found)


async def findings(path: Path) -> list[str]:
    async with open_store(f"sqlite:///{path}") as store:
        checked = Check(store, {"category": CategoryNode.definition()}, "2026-01-01T00:00:00.000Z")
        return [str(one) async for one in checked.findings()]


async def make(path: Path, *keys: str) -> str:
    """A file with these nodes below A, in which no log is left; the text of its API key."""
    key, text = new_key("shop", ["read:category"], None)
    async with open_store(f"sqlite:///{path}") as store:
        await store.create()
        await add_key(store, key)
        writer = Writer(store)
        for node in [("A",), *(("A", key) for key in keys)]:
            await writer.write(Create(CategoryNode.definition(), node, "CATEGORY", node[-1], {}), ReadUsage())
    return text


async def until(answer: Callable[[], Awaitable[object]], expected: object) -> None:
    """Ask until the answer is the expected one; another file is looked for once a second."""
    end = time.monotonic() + 60
    while (found := await answer()) != expected:
        assert time.monotonic() < end, found
        await asyncio.sleep(0.02)


async def status(server: Server, key: str) -> int:
    """That of a query with an API key."""
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        return (await client.post(f"{server.url}/graphql", json={"query": "{ __typename }"})).status_code


async def test_servers_that_read_serve_another_file_and_nothing_of_the_former_one(tmp_path: Path) -> None:
    path, tonight = tmp_path / "clade.db", tmp_path / "tonight.db"
    key, _ = await make(path, "former"), await make(tonight, "new")
    servers = [Server(tmp_path, name, store=f"sqlite:///{path}") for name in ("one", "other")]
    one = '{ category(path: "A/former") { name } }'
    try:
        for server in servers:
            await server.start()
            for _ in range(2):  # read, and cached
                assert await listed(server) == ["former"]
                assert (await server.ask(one))["data"] == {"category": {"name": "former"}}
                assert await status(server, key) == 200
        os.replace(tonight, path)
        for server in servers:
            await until(partial(listed, server), ["new"])
            assert (await server.ask(one))["data"] == {"category": None}
            assert await status(server, key) == 401
            assert await ready(server) == 200
            assert "was replaced or changed; it is opened again" in server.said.read_text()
    finally:
        for server in servers:
            await server.close()
    assert await findings(path) == []


async def test_nothing_is_read_or_written_beside_the_log_of_a_file_that_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    async with served(path, "one") as (server,):
        assert await create(server, "kept") == ["kept"]
        restored = copy(path, tmp_path / "restored.db")
        assert await create(server, "undone") == ["undone"]
        content = restored.read_bytes()
        os.replace(restored, path)
        assert await create(server, *"abc") == []
        (error,) = (await server.ask(LIST))["errors"]
        assert error["extensions"]["code"] == "UNAVAILABLE"
        assert await ready(server) == 503
        assert path.read_bytes() == content
        assert "the log of the former file" in server.said.read_text()
        for end in LOGS:
            os.unlink(f"{path}{end}")
        assert await listed(server) == ["kept"]
        assert await ready(server) == 200
        assert await create(server, *"vwxyz") == [*"vwxyz"]
        server.kill()
        await server.start()
        assert await listed(server) == ["kept", *"vwxyz"]
    assert await findings(path) == []


async def test_a_link_to_another_file_is_followed_while_servers_write(tmp_path: Path) -> None:
    path, link = tmp_path / "clade.db", tmp_path / "link"
    files = tmp_path / "1.db", tmp_path / "2.db"
    for file in files:
        await make(file, file.stem)
    path.symlink_to(files[0])
    link.symlink_to(files[1])
    servers = [Server(tmp_path, name, store=f"sqlite:///{path}", writes="on") for name in ("one", "other")]
    try:
        for server in servers:
            await server.start()
            assert await create(server, server.said.stem) == [server.said.stem]
        os.replace(link, path)
        for server in servers:
            await until(partial(listed, server), ["2", *(["new-one"] if server is servers[1] else [])])
            assert await create(server, f"new-{server.said.stem}") == [f"new-{server.said.stem}"]
            server.kill()
    finally:
        for server in servers:
            await server.close()
    for file, names in zip(files, (["1", "one", "other"], ["2", "new-one", "new-other"]), strict=True):
        assert names_in(file) == names
        assert await findings(file) == []


async def test_nothing_is_acknowledged_without_a_file(tmp_path: Path) -> None:
    path, away = tmp_path / "clade.db", tmp_path / "away.db"
    async with served(path, "one") as (server,):
        assert await create(server, "kept") == ["kept"]
        path.rename(away)
        assert await create(server, *"vwxyz") == []
        answer = await server.ask(LIST)
        assert [error["extensions"]["code"] for error in answer["errors"]] == ["UNAVAILABLE"]
        assert await ready(server) == 503
        assert not path.exists()
        away.rename(path)
        assert await ready(server) == 200
        assert await create(server, "later") == ["later"]
        assert await listed(server) == ["kept", "later"]
    assert await findings(path) == []
