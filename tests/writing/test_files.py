"""SQLite files under running servers: replaced ones, links to others, files that may only be read; and their backups.

What a server does when its file is removed, or replaced beside its log, is tried from outside: tests/outside/faults.
"""

import asyncio
import ctypes
import os
import shlex
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of
from graph.hierarchies.categories import CategoryNode
from store.api_keys import ApiKey, add_key, find_keys, new_key, revoke_key
from store.checking.check import Check
from store.connect import open_store
from store.engine import ReadUsage, TableOptions
from store.errors import BadInput, CladeError, Unavailable, WrongLayout
from store.sqlite.store import SQLiteStore
from store.transfer.copy import put_back
from store.writing.create_update import Create
from store.writing.writer import Writer
from tests.servers import Server
from tests.store.writing import journaled
from tests.waiting import until

CREATE = """
mutation ($key: String!) {
  createCategoryNode(input: {key: $key, name: $key, parent: {path: "A"}, attributes: { category: {} }}) { node
    { path } }
}
"""
LIST = '{ category(path: "A") { children { nodes { name } } } }'
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


async def add(path: Path, key: ApiKey) -> None:
    async with open_store(f"sqlite:///{path}") as store:
        await add_key(store, key)


@asynccontextmanager
async def served(path: Path, name: str = "server", *prepare: Callable[[], None]) -> AsyncIterator[Server]:
    """A server of a file, which writes its lines to one beside the directory of that."""
    server = Server(path.parent.parent, name, store=f"sqlite:///{path}", writes="on")
    try:
        await server.start(*prepare)
        yield server
    finally:
        server.kill()


async def create(server: Server, key: str) -> str | None:
    """Create a node below A; the code of the refusal, None if it is acknowledged."""
    answer = await server.ask(CREATE, key=key)
    return answer["errors"][0]["extensions"]["code"] if "errors" in answer else None


async def listed(server: Server) -> list[str]:
    answer = await server.ask(LIST)
    return [node["name"] for node in answer["data"]["category"]["children"]["nodes"]]


async def lists(server: Server, *names: str) -> bool:
    return await listed(server) == [*names]


async def status(server: Server, path: str, **options: Any) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.request("POST" if options else "GET", server.url + path, **options)).status_code


async def findings(path: Path) -> list[str]:
    async with open_store(f"sqlite:///{path}") as store:
        checked = Check(store, {"category": CategoryNode.definition()}, "2026-01-01T00:00:00.000Z")
        return [str(one) async for one in checked.findings()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that can be removed afterwards, whatever its permissions."""
    folder = tmp_path / "folder"
    folder.mkdir()
    yield folder
    os.chmod(folder, 0o700)


# -- servers -----------------------------------------------------------------------------------------------------------


async def test_another_file_is_served_with_its_api_keys_and_nothing_of_the_former_one(folder: Path) -> None:
    path, tonight = folder / "clade.db", folder / "tonight.db"
    key, _ = await make(path, "former"), await make(tonight, "new")
    one = '{ category(path: "A/former") { name } }'
    asked = {"json": {"query": "{ __typename }"}, "headers": {"authorization": f"Bearer {key}"}}
    async with served(path) as server:
        for _ in range(2):  # read, and cached
            assert await listed(server) == ["former"]
            assert (await server.ask(one))["data"] == {"category": {"name": "former"}}
            assert await status(server, "/graphql", **asked) == 200
        os.replace(tonight, path)
        await until(partial(lists, server, "new"))
        assert (await server.ask(one))["data"] == {"category": None}
        assert await status(server, "/graphql", **asked) == 401
        assert await status(server, "/readyz") == 200
        assert "was replaced or changed; it is opened again" in server.said()
    assert await findings(path) == []


async def test_a_link_to_another_file_is_followed_and_each_file_keeps_what_was_written_to_it(folder: Path) -> None:
    path, link, files = folder / "clade.db", folder / "link", (folder / "1.db", folder / "2.db")
    for file in files:
        await make(file, file.stem)
    path.symlink_to(files[0])
    link.symlink_to(files[1])
    async with served(path) as server:
        assert await create(server, "before") is None
        os.replace(link, path)
        await until(partial(lists, server, "2"))
        assert await create(server, "after") is None
        server.kill()
    for file, names in zip(files, (["1", "before"], ["2", "after"]), strict=True):
        async with open_store(f"sqlite:///{file}") as store:
            assert {path.rpartition("/")[2] for path in await journaled.paths(store)} == {"A", *names}
        assert await findings(file) == []


async def test_a_file_that_cannot_be_written_is_read_until_others_write_it(folder: Path) -> None:
    path = folder / "clade.db"
    await make(path, "a")
    os.chmod(path, 0o444)
    os.chmod(folder, 0o500)
    async with served(path, "reader", obey_permissions) as server:
        assert await status(server, "/readyz") == 200
        assert await listed(server) == ["a"]
        (error,) = (await server.ask(CREATE, key="refused"))["errors"]
        assert error["extensions"]["code"] == "FORBIDDEN"
        assert error["message"] == (
            "The store is read-only: its file, or the directory of the file, cannot be written."
        )
        assert "cannot be written; it is opened read-only" in server.said()
        os.chmod(folder, 0o700)
        os.chmod(path, 0o644)
        async with served(path, "writer") as writer:
            assert await create(writer, "b") is None
            await until(partial(lists, server, "a", "b"))
        assert await listed(server) == ["a", "b"]
        assert await status(server, "/readyz") == 200


async def test_what_another_user_writes_to_a_file_is_read(folder: Path) -> None:
    path = folder / "clade.db"
    await make(path, "a")
    async with served(path, "writer") as writer:
        assert await listed(writer) == ["a"]
        for name in os.listdir(folder):
            os.chmod(folder / name, 0o444)
        async with served(path, "reader", obey_permissions) as server:
            assert await listed(server) == ["a"]
            assert await create(writer, "b") is None
            assert await listed(server) == ["a", "b"]
            assert await create(server, "refused") == "FORBIDDEN"


def test_a_store_in_memory_is_refused_to_several_processes() -> None:
    done = CliRunner().invoke(app_of(), ["serve", "--workers", "2"], env={"CLADE_STORE": "sqlite://:memory:"})
    assert isinstance(done.exception, BadInput)


# -- backups -----------------------------------------------------------------------------------------------------------


def refusal(path: Path, *words: str) -> BaseException | None:
    return CliRunner().invoke(app_of(), [*words], env={"CLADE_STORE": f"sqlite:///{path}"}).exception


def test_an_invalid_backup_is_rejected(tmp_path: Path) -> None:
    path, other, shop, letter = [tmp_path / name for name in ("clade.db", "other.db", "shop.db", "letter.txt")]
    for file in (path, other):
        asyncio.run(make(file))
    letter.write_text("Dear Ann, " * 500)
    with closing(sqlite3.connect(other)) as database:
        database.execute("PRAGMA user_version = 99")
    with closing(sqlite3.connect(shop)) as database:
        database.execute("CREATE TABLE items (id INTEGER)")
    for file, error in ((letter, Unavailable), (other, WrongLayout), (path, BadInput), (shop, BadInput)):
        assert type(refusal(path, "restore", str(file))) is error
    assert asyncio.run(findings(path)) == []


def test_a_backup_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    asyncio.run(make(path))
    assert isinstance(refusal(path, "backup", str(tmp_path / "missing" / "backup.db")), CladeError)
    assert isinstance(refusal(path, "backup", str(path)), BadInput)
    assert isinstance(refusal(tmp_path / "none.db", "backup", str(tmp_path / "backup.db")), CladeError)
    assert os.listdir(tmp_path) == ["clade.db"]


def test_a_restore_makes_the_file_where_there_is_none(tmp_path: Path) -> None:
    path, backup, new = [tmp_path / name for name in ("clade.db", "backup.db", "new.db")]
    asyncio.run(make(path, "kept"))
    assert refusal(path, "backup", str(backup)) is None
    assert backup.stat().st_mode & 0o777 == 0o600
    assert refusal(new, "restore", str(backup)) is None
    made = new.stat().st_ino
    assert refusal(new, "restore", str(backup)) is None
    assert new.stat().st_ino == made, "the content of the file is replaced, not the file"
    with closing(sqlite3.connect(new)) as database:
        assert database.execute("SELECT count(*) FROM items WHERE sk = '#kept#'").fetchone() == (1,)
    assert asyncio.run(findings(new)) == []


def test_a_restore_keeps_the_revocations_of_its_store_and_names_other_keys(tmp_path: Path) -> None:
    def run(path: Path, *words: str) -> Result:
        return CliRunner().invoke(app_of(), [*words], env={"CLADE_STORE": f"sqlite:///{path}", "COLUMNS": "200"})

    path, backup, new, damaged = [tmp_path / f"{name}.db" for name in ("clade", "back up", "new one", "damaged")]
    asyncio.run(make(path))
    expired, _ = new_key("", ["read:category"], until=1)
    asyncio.run(add(path, expired))
    revoked_before, later = [run(path, "key", "create", "--grant", "read:category").stdout[6:22] for _ in "ab"]
    run(path, "key", "revoke", revoked_before)
    run(path, "backup", str(backup))
    content = backup.read_bytes()
    run(path, "key", "revoke", later)
    for _ in "ab":
        done = run(path, "restore", str(backup))
        assert (done.exit_code, done.stderr) == (0, "")
        lines = run(path, "key", "list").stdout.splitlines()
        states = {line.split("\t")[0]: "revoked 20" in line for line in lines}
        assert {key for key, is_revoked in states.items() if is_revoked} == {later, revoked_before}
        assert len(states) == 4
    damaged.write_bytes(path.read_bytes()[:4096] + b"\xff" * 40_000)
    for target in (new, damaged):
        done = run(target, "restore", str(backup))
        assert done.exit_code == 0
        first, *keys, last = done.stderr.splitlines()
        assert first == "These API keys of the backup are valid now, even if they have been revoked since:"
        assert {key.split()[0] for key in keys} == states.keys() - {expired.id, revoked_before}
        assert last == f"To revoke one: clade key revoke ID --store {shlex.quote(f'sqlite:///{target}')}"
        assert run(target, "restore", str(backup)).stderr == "", "the store knows them now"
    assert backup.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == ["back up.db", "clade.db", "damaged.db", "new one.db"]


class RevokedMeanwhile(SQLiteStore):
    """A store in which another process revokes one more key each time just before the content is replaced."""

    keys: list[str]

    async def create(self, options: TableOptions = TableOptions()) -> bool:
        made = await super().create(options)
        if self.keys:
            async with open_store(f"sqlite:///{self.path}") as other:
                await revoke_key(other, self.keys.pop())
        return made


@pytest.mark.parametrize("earlier", [True, False])
async def test_keys_that_are_revoked_while_a_restore_runs_stay_revoked(tmp_path: Path, earlier: bool) -> None:
    path, backup = tmp_path / "clade.db", tmp_path / "backup.db"
    await make(path, "x")
    keys = [new_key("", ["read:category"], None)[0] for _ in range(4)]
    for key in keys:
        await add(path, key)
    kept, first, *others = [key.id for key in keys]
    store = RevokedMeanwhile(str(path))
    store.keys = []
    async with store:
        await store.back_up(backup)
        content = backup.read_bytes()
        if earlier:
            await revoke_key(store, first)
        store.keys = [*others] if earlier else [first, *others]
        assert await put_back(store, backup) == []
        found = {key.id: key.revoked_at is not None for key in await find_keys(store, ReadUsage())}
    assert not store.keys
    assert found.pop(kept) is False
    assert [found.pop(one) for one in (first, *others)] == [True, True, True]
    assert backup.read_bytes() == content
    assert sorted(os.listdir(tmp_path)) == ["backup.db", "clade.db"]


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_table_of_dynamodb_is_backed_up_by_aws(tmp_path: Path, command: str) -> None:
    file = tmp_path / "backup.db"
    file.touch()
    done = CliRunner().invoke(app_of(), [command, str(file), "--store", "dynamodb://clade?region=eu-west-1"])
    assert isinstance(done.exception, BadInput)
    assert "point-in-time recovery" in str(done.exception)


def test_a_restore_leaves_the_database_of_another_program_as_it_is(tmp_path: Path) -> None:
    path, backup, other = [tmp_path / name for name in ("clade.db", "backup.db", "orders.db")]
    asyncio.run(make(path))
    assert refusal(path, "backup", str(backup)) is None
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE orders (id INTEGER)")
    before = other.read_bytes()
    for words in (["restore", str(backup)], ["table", "create"]):
        assert "of another program" in str(refusal(other, *words))
        assert other.read_bytes() == before
