"""An SQLite file that is replaced or removed while servers run on it: what is acknowledged is in the file."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import pytest

from graph.hierarchies.categories import CategoryNode
from store.checking.check import Check
from store.connect import open_store
from tests.servers import Server

CREATE = """
mutation ($key: String!) {
  createCategoryNode(input: {key: $key, name: $key, parent: {path: "A"}, level: CATEGORY}) { node { path } }
}
"""
ROOT = 'mutation { createCategoryNode(input: {key: "A", name: "A", level: CATEGORY}) { node { path } } }'
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


def names_in(path: Path) -> set[str]:
    """The nodes that a file holds by itself, without what lies beside it."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as reader:
        assert reader.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = reader.execute("SELECT sk FROM items WHERE pk = 'category#A' AND tier IS NOT NULL").fetchall()
    return {sk.strip("#") for (sk,) in found} - {""}


async def findings(path: Path) -> list[str]:
    async with open_store(f"sqlite:///{path}") as store:
        checked = Check(store, {"category": CategoryNode.definition()}, "2026-01-01T00:00:00.000Z")
        return [str(one) async for one in checked.findings()]


async def test_a_restored_file_is_served_and_written_at_once(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    async with served(path, "one") as (server,):
        assert await create(server, "kept") == ["kept"]
        restored = copy(path, tmp_path / "restored.db")
        assert await create(server, "undone") == ["undone"]
        assert await listed(server) == ["kept", "undone"]
        os.replace(restored, path)
        assert await listed(server) == ["kept"]
        assert await ready(server) == 200
        assert await create(server, *"vwxyz") == [*"vwxyz"]
        server.kill()
        await server.start()
        assert await listed(server) == ["kept", *"vwxyz"]
    assert await findings(path) == []


async def test_what_was_acknowledged_before_is_in_the_file_that_was_moved_away(tmp_path: Path) -> None:
    path, away = tmp_path / "clade.db", tmp_path / "away.db"
    async with served(path, "one") as (server,):
        restored = copy(path, tmp_path / "restored.db")
        assert await create(server, *"abc") == [*"abc"]
        path.rename(away)
        restored.rename(path)
        assert await create(server, "first") == ["first"]
        assert await listed(server) == ["first"]
    assert names_in(away) == {*"abc"}
    assert await findings(path) == []


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


async def test_nothing_is_acknowledged_while_the_log_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    log = tmp_path / "clade.db-wal"
    async with served(path, "one") as (server,):
        assert await create(server, "kept") == ["kept"]
        log.unlink()
        assert await create(server, "lost") == []
        assert await ready(server) == 503
        assert "restart" in server.said.read_text()


@pytest.mark.parametrize("ends", [("-wal",), pytest.param(("-wal", "-shm"), marks=pytest.mark.thorough)])
@pytest.mark.parametrize("notice", ["write", "read", "ready"])
async def test_what_was_acknowledged_is_in_the_file_at_once_when_its_log_is_removed(
    tmp_path: Path, ends: tuple[str, ...], notice: str
) -> None:
    path = tmp_path / "clade.db"
    async with served(path, "one", "other") as servers:
        made = await create(servers[0], *"abc") + await create(servers[1], *"def")
        assert made == [*"abcdef"]
        for end in ends:
            os.unlink(f"{path}{end}")
        match notice:
            case "write":
                assert await create(servers[0], "lost") == []
            case "read":
                assert await listed(servers[0]) == made
            case _:
                assert await ready(servers[0]) == 503
        for server in servers:
            server.kill()
        assert names_in(path) == set(made)
        await servers[0].start()
        assert await create(servers[0], "later") == ["later"]
        assert await listed(servers[0]) == sorted([*made, "later"])
    assert await findings(path) == []


class Log:
    """The nodes that are created by several clients, of which some were acknowledged before the file was replaced, and
    some wished for afterwards.
    """

    def __init__(self) -> None:
        self.before: list[str] = []
        self.after: list[str] = []
        self.begun, self.replaced, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def write(self, server: Server, name: str) -> None:
        number = 0
        while not self.done.is_set():
            sent_after, number = self.replaced.is_set(), number + 1
            made = await create(server, f"{name}{number}")
            if not self.replaced.is_set():
                self.before.extend(made)
            elif sent_after:
                self.after.extend(made)
            if len(self.before) >= 20:
                self.begun.set()
            if len(self.after) >= 40:
                self.done.set()


async def test_two_servers_lose_nothing_when_the_file_is_replaced_under_them(tmp_path: Path) -> None:
    path, away, log = tmp_path / "clade.db", tmp_path / "away.db", Log()
    async with served(path, "one", "other") as servers:
        restored = copy(path, tmp_path / "restored.db")
        os.link(path, away)
        async with asyncio.TaskGroup() as group:
            for server in servers:
                for number in range(2):
                    group.create_task(log.write(server, f"{server.said.stem}-{number}-"))
            await log.begun.wait()
            os.replace(restored, path)
            log.replaced.set()
        seen = [set(await listed(server)) for server in servers]
        assert seen[0] == seen[1]
        assert set(log.after) <= seen[0]
        assert not set(log.before) & seen[0]
        for server in servers:
            server.kill()
    assert set(log.before) <= names_in(away)
    assert set(log.after) <= names_in(copy(path, tmp_path / "seen.db"))
    assert await findings(path) == []
