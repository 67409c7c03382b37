"""Servers on an SQLite store in memory, and on files that may only be read."""

import ctypes
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from store.connect import open_store
from store.errors import BadInput
from tests.servers import Server
from tests.writing.test_replaced import CREATE, ROOT, create, listed, ready, served, until

OVER_PERMISSIONS = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root reads and writes all
VERSION = 0x20080522  # of the structures that capset(2) takes


def obey_permissions() -> None:
    """Have this process write no file that its permissions forbid to write, also where root runs it."""
    libc = ctypes.CDLL(None, use_errno=True)
    head, sets = (ctypes.c_uint32 * 2)(VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, sets) == 0
    for place in (0, 1, 2):  # effective, permitted, inheritable
        sets[place] &= ~OVER_PERMISSIONS
    assert libc.capset(head, sets) == 0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that can be removed afterwards, whatever its permissions."""
    folder = tmp_path / "folder"
    folder.mkdir()
    yield folder
    os.chmod(folder, 0o700)


@asynccontextmanager
async def reading(path: Path) -> AsyncIterator[Server]:
    server = Server(path.parent.parent, "reader", store=f"sqlite:///{path}", writes="on")
    try:
        await server.start(obey_permissions)
        yield server
    finally:
        await server.close()


async def refusal(server: Server) -> tuple[str, str]:
    (error,) = (await server.ask(CREATE, key="refused"))["errors"]
    return error["extensions"]["code"], error["message"]


async def test_a_store_in_memory_is_served_and_written(tmp_path: Path) -> None:
    server = Server(tmp_path, "server", store="sqlite://:memory:", writes="on")
    try:
        await server.start()
        assert await ready(server) == 200
        assert "errors" not in await server.ask(ROOT)
        assert await create(server, "a", "b") == ["a", "b"]
        assert await listed(server) == ["a", "b"]
    finally:
        await server.close()


def test_a_store_in_memory_is_refused_to_several_processes() -> None:
    done = CliRunner().invoke(app_of(), ["serve", "--workers", "2"], env={"CLADE_STORE": "sqlite://:memory:"})
    assert isinstance(done.exception, BadInput)


async def test_a_folder_that_cannot_be_written_is_read(folder: Path) -> None:
    path = folder / "clade.db"
    async with served(path, "one") as (server,):
        assert await create(server, "a", "b") == ["a", "b"]
    async with open_store(f"sqlite:///{path}") as store:  # the killed server left its log, which this writes back
        await store.health()
    os.chmod(path, 0o444)
    os.chmod(folder, 0o500)
    async with reading(path) as server:
        assert await ready(server) == 200
        assert await listed(server) == ["a", "b"]
        assert await refusal(server) == (
            "FORBIDDEN", "The store is read-only: its file, or the directory of the file, cannot be written.",
        )  # fmt: skip
        assert "cannot be written; it is opened read-only" in server.said.read_text()


async def test_what_another_user_writes_to_a_file_is_read(folder: Path) -> None:
    path = folder / "clade.db"
    async with served(path, "one") as (writer,):
        assert await create(writer, "a") == ["a"]
        for name in os.listdir(folder):
            os.chmod(folder / name, 0o444)
        async with reading(path) as server:
            assert await listed(server) == ["a"]
            assert await create(writer, "b") == ["b"]
            assert await listed(server) == ["a", "b"]
            assert (await refusal(server))[0] == "FORBIDDEN"


async def test_a_file_that_was_only_read_is_written_by_others_later(folder: Path) -> None:
    path = folder / "clade.db"
    async with served(path, "one") as (server,):
        assert await create(server, "a") == ["a"]
    async with open_store(f"sqlite:///{path}") as store:
        await store.health()
    os.chmod(path, 0o444)
    os.chmod(folder, 0o500)
    async with reading(path) as server:
        assert await listed(server) == ["a"]
        os.chmod(folder, 0o700)
        os.chmod(path, 0o644)
        async with served_again(path) as writer:
            assert await create(writer, "b") == ["b"]
            await until(partial(listed, server), ["a", "b"])
        assert await listed(server) == ["a", "b"]
        assert await ready(server) == 200


@asynccontextmanager
async def served_again(path: Path) -> AsyncIterator[Server]:
    server = Server(path.parent.parent, "writer", store=f"sqlite:///{path}", writes="on")
    try:
        await server.start()
        yield server
    finally:
        await server.close()
