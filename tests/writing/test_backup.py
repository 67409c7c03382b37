"""`clade backup` and `clade restore` beside a server that writes."""

import asyncio
import os
import sys
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from store.connect import open_store
from store.errors import BadInput, CladeError, Unavailable, WrongLayout
from tests.servers import Server
from tests.writing.test_replaced import create, findings, listed, served

CLADE = [sys.executable, "-c", "from commands.main import run; run()"]
WRITES = 200  # at least


async def run(path: Path, *words: str) -> None:
    """A command in a process of its own."""
    environment = {**os.environ, "CLADE_STORE": f"sqlite:///{path}"}
    process = await asyncio.create_subprocess_exec(*CLADE, *words, env=environment)
    assert await asyncio.wait_for(process.wait(), 120) == 0


def refusal(path: Path, *words: str) -> BaseException | None:
    return CliRunner().invoke(app_of(), [*words], env={"CLADE_STORE": f"sqlite:///{path}"}).exception


class Writes:
    """Nodes that four clients create until they are `done`; `half` is set when half of the least are acknowledged."""

    def __init__(self, server: Server) -> None:
        self.acknowledged: list[str] = []
        self.half, self.done = asyncio.Event(), asyncio.Event()
        self._server = server

    async def make(self) -> None:
        async with asyncio.TaskGroup() as group:
            for client in range(4):
                group.create_task(self._make(client))

    async def _make(self, client: int) -> None:
        for number in range(WRITES):
            if self.done.is_set() and len(self.acknowledged) >= WRITES:
                break
            self.acknowledged += await create(self._server, f"{client}-{number}")
            if len(self.acknowledged) >= WRITES // 2:
                self.half.set()


@pytest.mark.thorough
async def test_a_backup_while_writes_run_is_restored_under_the_running_server(tmp_path: Path) -> None:
    path, backup = tmp_path / "clade.db", tmp_path / "backup.db"
    async with served(path, "one") as (server,):
        writes = Writes(server)
        making = asyncio.create_task(writes.make())
        await writes.half.wait()
        before = set(writes.acknowledged)
        await run(path, "backup", str(backup))
        writes.done.set()
        await making
        assert await create(server, "undone") == ["undone"]
        assert sorted(os.listdir(tmp_path)) == ["backup.db", "clade.db", "clade.db-shm", "clade.db-wal", "one.txt"]
        assert os.stat(backup).st_mode & 0o777 == 0o600
        assert await findings(backup) == []
        await run(path, "restore", str(backup))
        restored = set(await listed(server))
        assert before <= restored <= set(writes.acknowledged)
        assert await create(server, "later") == ["later"]
        server.kill()
        await server.start()
        assert set(await listed(server)) == restored | {"later"}
    assert await findings(path) == []


def make(path: Path) -> Path:
    async def create() -> None:
        async with open_store(f"sqlite:///{path}") as store:
            await store.create()

    asyncio.run(create())
    return path


def test_an_invalid_backup_is_rejected(tmp_path: Path) -> None:
    path, other = make(tmp_path / "clade.db"), make(tmp_path / "other.db")
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ann, " * 500)
    with closing(connect(other)) as database:
        database.execute("PRAGMA user_version = 99")
    for file, error in ((letter, Unavailable), (other, WrongLayout), (path, BadInput)):
        assert type(refusal(path, "restore", str(file))) is error
    with closing(connect(tmp_path / "shop.db")) as database:
        database.execute("CREATE TABLE items (id INTEGER)")
    assert isinstance(refusal(path, "restore", str(tmp_path / "shop.db")), BadInput)
    assert asyncio.run(findings(path)) == []


def test_a_backup_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    path = make(tmp_path / "clade.db")
    assert isinstance(refusal(path, "backup", str(tmp_path / "missing" / "backup.db")), CladeError)
    assert isinstance(refusal(path, "backup", str(path)), BadInput)
    assert isinstance(refusal(tmp_path / "none.db", "backup", str(tmp_path / "backup.db")), CladeError)
    assert os.listdir(tmp_path) == ["clade.db"]


def test_a_restore_makes_the_file_where_there_is_none(tmp_path: Path) -> None:
    path, backup = make(tmp_path / "clade.db"), tmp_path / "backup.db"
    assert refusal(path, "backup", str(backup)) is None
    assert refusal(tmp_path / "new.db", "restore", str(backup)) is None
    made = (tmp_path / "new.db").stat().st_ino
    assert refusal(tmp_path / "new.db", "restore", str(backup)) is None
    assert (tmp_path / "new.db").stat().st_ino == made, "the content of the file is replaced, not the file"
    assert asyncio.run(findings(tmp_path / "new.db")) == []


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_table_of_dynamodb_is_backed_up_by_aws(tmp_path: Path, command: str) -> None:
    file = tmp_path / "backup.db"
    file.touch()
    done = CliRunner().invoke(app_of(), [command, str(file), "--store", "dynamodb://clade?region=eu-west-1"])
    assert isinstance(done.exception, BadInput)
    assert "point-in-time recovery" in str(done.exception)
