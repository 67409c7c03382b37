"""SQLite store: missing, wrong and replaced files, commits beside others, and how rows are found and counted."""

import asyncio
import contextlib
import os
import shlex
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from store.connect import open_store
from store.engine import ReadUsage
from store.errors import BadInput, CladeError, Conflict, NoTable, Unavailable, Uncertain
from store.model.keys import Index, Key, KeyRange, below, subtree
from store.model.records import ABSENT, Put, Record
from store.sqlite.connection import LOG_BYTES, LOGS
from store.sqlite.store import LARGE_CHANGES, PURGE_ITEMS, SQLiteStore

ALL = KeyRange(Index.TABLE, "t", "!", "~")
ONE = [Put({"pk": "t", "sk": "a"})]
LARGE = [Put({"pk": "t", "sk": f"n{n:05}", "n": n}, ABSENT) for n in range(3 * LARGE_CHANGES)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clade.db"


async def make(path: Path, *changes: Put) -> None:
    async with SQLiteStore(str(path)) as store:
        await store.create()
        await store.commit(changes)


@contextlib.contextmanager
def written(path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection to the file, by SQLite itself."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def log_bytes(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def rows(path: Path) -> int:
    with written(path) as connection:
        return int(connection.execute("SELECT count(*) FROM items").fetchone()[0])


@pytest.mark.parametrize("name", ["pk", "sk"])
async def test_a_node_whose_content_lost_a_key_is_damaged_in_every_read(path: Path, name: str) -> None:
    """It is not taken for an item that is no node."""
    node = Record.new("location", ("US",), "COUNTRY", "N", "n", "2026-11-20T12:00:00Z", {"note": "x"}, above=[])
    await make(path, Put(node.item()))
    with written(path) as connection:
        body = msgspec.msgpack.decode(connection.execute("SELECT body FROM items").fetchone()[0])
        del body[name]
        connection.execute("UPDATE items SET body = ?", [msgspec.msgpack.encode(body)])
    async with SQLiteStore(str(path)) as store:
        (found,) = await store.get([node.key], ReadUsage())
        with pytest.raises(CladeError):
            Record.of(found or {})
        with pytest.raises(CladeError):
            await store.nodes(subtree("location#US", "#"), ReadUsage())
        with pytest.raises(CladeError):
            _ = [page async for page in store.scan(ReadUsage())]


# -- the file ----------------------------------------------------------------------------------------------------------


async def test_a_file_is_made_by_create_alone_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=ro#100%.db"  # with characters that a URI may not have
    async with SQLiteStore(str(path)) as store, SQLiteStore(str(path)) as other:
        with pytest.raises(NoTable, match=r"no file") as caught:
            await store.health()
        command = str(caught.value).partition("create it with: ")[2]
        assert shlex.split(command) == ["clade", "table", "create", "--store", f"sqlite:///{path}"]
        assert not path.exists()
        assert await store.create()
        modes = {name: os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)}
        assert modes == dict.fromkeys([path.name, *[f"{path.name}{end}" for end in LOGS]], 0o600)
        await store.commit(ONE)
        assert await other.get([Key("t", "a")], ReadUsage()) == [{"pk": "t", "sk": "a"}]


async def test_the_mode_of_a_file_that_is_there_stays(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT, 0o640))
    async with SQLiteStore(str(path)) as store:
        with pytest.raises(NoTable, match="clade table create"):
            await store.get([Key("t", "a")], ReadUsage())
        assert await store.create()
        assert os.stat(path).st_mode & 0o777 == 0o640
        (path.parent / "empty.db").touch()
        with pytest.raises(BadInput, match=r"has no table of Clade; name a file that clade backup wrote"):
            await store.put_back(path.parent / "empty.db")


async def test_what_is_no_place_for_a_file_is_named(tmp_path: Path) -> None:
    for name, sentence in (("", "is a folder; name a file"), ("no/a.db", "is not a folder; create")):
        async with SQLiteStore(str(tmp_path / name)) as store:
            with pytest.raises(Unavailable, match=sentence):
                await store.create()
            with pytest.raises(CladeError):
                await store.range(ALL, ReadUsage())


async def test_an_address_names_a_file_that_has_to_be_open(path: Path) -> None:
    with pytest.raises(BadInput, match="no file"):
        open_store("sqlite://")
    async with SQLiteStore(str(path)) as store:
        await store.create()
    with pytest.raises(RuntimeError, match="not open"):
        await store.health()


# -- a file that is replaced -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize(("statement", "error"), [("BEGIN IMMEDIATE", Unavailable), ("COMMIT", Uncertain)])
async def test_a_commit_into_a_file_that_is_replaced_meanwhile_is_not_reported_as_done(
    path: Path, tmp_path: Path, mode: str, statement: str, error: type[CladeError]
) -> None:
    other = tmp_path / "other.db"
    for file in (path, other):
        await make(file, Put({"pk": "t", "sk": "!", "in": file.name}))
    with written(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    async with SQLiteStore(str(path)) as store:
        store.database.connection().set_trace_callback(lambda said: said == statement and os.replace(other, path))
        with pytest.raises(CladeError, match="was replaced or removed") as caught:
            await store.commit(ONE)
        assert type(caught.value) is error
        for end in LOGS if mode == "WAL" else ():
            os.unlink(f"{path}{end}")
        assert await store.range(ALL, ReadUsage()) == [{"pk": "t", "sk": "!", "in": "other.db"}]


async def test_a_copy_in_place_of_a_removed_file_is_not_opened_beside_the_log_of_that_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sqlite.connection.LOOK_SECONDS", 0.0)
    other = tmp_path / "other.db"
    await make(other)
    async with SQLiteStore(str(path)) as store:
        await store.create()
        await store.commit(ONE)
        os.unlink(path)
        with pytest.raises(NoTable):
            await store.range(ALL, ReadUsage())
        shutil.copyfile(other, path)  # which may get the number of the removed file's inode
        with pytest.raises(Unavailable, match=r"log of the former file"):
            await store.range(ALL, ReadUsage())
    assert content_of(path) == content_of(other)


async def test_no_connection_opens_a_file_beside_the_log_of_the_former_one(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    await make(other)
    content = content_of(other)
    async with SQLiteStore(str(path)) as store:
        await store.create()
        os.replace(other, path)
        with pytest.raises(Unavailable, match=r"log of the former file.*remove"):
            await store.commit(LARGE)
        with pytest.raises(Unavailable, match=r"log of the former file"):
            async with store.snapshot() as snapshot:
                await snapshot.range(ALL, ReadUsage())
        with pytest.raises(Unavailable, match=r"was replaced"):  # and, once a second, with its log
            await store.commit(ONE)
        with pytest.raises(Unavailable, match=r"log of the former file"):
            await store.range(ALL, ReadUsage())
        assert store.version() is None
    assert content_of(path) == content


# -- commits -----------------------------------------------------------------------------------------------------------


async def test_reads_continue_while_another_process_writes_and_a_commit_waits(path: Path) -> None:
    await make(path, Put({"pk": "t", "sk": "a", "n": 1}))
    async with SQLiteStore(str(path)) as store:
        with written(path) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM items")
            waiting = asyncio.create_task(store.commit([Put({"pk": "t", "sk": "b"})]))
            for _ in range(20):
                assert await store.get([Key("t", "a")], ReadUsage()) == [{"pk": "t", "sk": "a", "n": 1}]
                await asyncio.sleep(0.002)
            assert not waiting.done()
            other.execute("COMMIT")
        await asyncio.wait_for(waiting, 60)
        assert [item["sk"] for item in await store.range(ALL, ReadUsage())] == ["b"]


@pytest.mark.thorough
async def test_a_commit_that_waits_too_long_for_another_process_is_unavailable(path: Path) -> None:
    await make(path)
    async with SQLiteStore(str(path)) as store:
        with written(path) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="another process"):
                await store.commit(ONE)
        await store.commit(ONE)


async def test_a_large_commit_yields_is_visible_as_a_whole_and_others_wait_for_it(path: Path) -> None:
    async with open_store(f"sqlite:///{path}") as store:
        await store.create()
        before, counts = store.version(), []
        commit = asyncio.create_task(store.commit(LARGE))
        others = [asyncio.create_task(store.commit([Put({"pk": "u", "sk": f"{n}"}, ABSENT)])) for n in range(60)]
        while not commit.done():
            counts.append(await store.count(ALL, ReadUsage()))
            await asyncio.sleep(0)
        await asyncio.gather(commit, *others)
        assert len(counts) > 3
        assert set(counts) <= {0, len(LARGE)}
        assert await store.count(ALL, ReadUsage()) == len(LARGE)
        assert await store.count(KeyRange(Index.TABLE, "u", "!", "~"), ReadUsage()) == len(others)
        assert store.version() != before


async def test_a_large_commit_that_is_cancelled_or_of_which_one_condition_fails_changes_nothing(path: Path) -> None:
    async with open_store(f"sqlite:///{path}") as store:
        await store.create()
        for turns in (1, 2, 3, 4):  # so many others had theirs before
            commit = asyncio.create_task(store.commit(LARGE))
            for _ in range(turns):
                await asyncio.sleep(0)
            assert commit.cancel()
            with pytest.raises(asyncio.CancelledError):
                await commit
            assert await store.count(ALL, ReadUsage()) == 0
        await store.commit(LARGE[-1:])
        with pytest.raises(Conflict):
            await store.commit(LARGE)
        assert await store.count(ALL, ReadUsage()) == 1
        await store.commit(LARGE[:-1])
        assert await store.count(ALL, ReadUsage()) == len(LARGE)


async def test_expired_items_are_deleted_in_bounded_steps_and_not_by_every_commit(path: Path) -> None:
    old = [Put({"pk": "t", "sk": f"{number:05}", "expires": 1000}) for number in range(PURGE_ITEMS + 200)]
    async with SQLiteStore(str(path)) as store:
        await store.create()
        await store.commit([*old, Put({"pk": "t", "sk": "later", "expires": int(time.time()) + 1000})])
        assert rows(path) == 201
        await store.commit([Put({"pk": "t", "sk": "for ever"})])
        assert rows(path) == 202
    async with SQLiteStore(str(path)) as store:
        await store.commit(ONE)
        assert rows(path) == 3


@pytest.mark.parametrize("own_checkpoint", [True, False])
async def test_a_log_that_another_program_has_made_large_is_cut_back_by_the_next_commits(
    path: Path, own_checkpoint: bool
) -> None:
    async with SQLiteStore(str(path)) as store:
        await store.create()
        with written(path) as other:
            if not own_checkpoint:
                other.execute("PRAGMA wal_autocheckpoint = 0")
            other.execute("CREATE TABLE more AS SELECT zeroblob(?) AS bytes", (2 * LOG_BYTES,))
            other.execute("VACUUM")
            assert log_bytes(path) > 2 * LOG_BYTES
            await store.commit(ONE)  # which writes the log back, where that is not done yet
            await store.commit([Put({"pk": "t", "sk": "b"})])
            assert 0 < log_bytes(path) <= LOG_BYTES
            assert other.execute("SELECT count(*) FROM items").fetchone() == (2,)


async def test_commits_are_flushed_to_the_disk(path: Path) -> None:
    async with SQLiteStore(str(path)) as store:
        await store.create()
        connection = store.database.connection()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


# -- reads -------------------------------------------------------------------------------------------------------------


async def test_keys_and_every_range_are_index_searches_without_sorting(path: Path) -> None:
    statements: list[str] = []
    async with SQLiteStore(str(path)) as store:
        await store.create()
        store.database.connection().set_trace_callback(statements.append)
        await store.get([Key("t", str(number)) for number in range(50)], ReadUsage())
        for index in Index:
            await store.range(KeyRange(index, "p", "a", "b"), ReadUsage())
            await store.count(KeyRange(index, "p", "a", "b"), ReadUsage())
    assert len(statements) == 1 + 2 * len(Index)
    with written(path) as other:
        plans = ["\n".join(row[3] for row in other.execute(f"EXPLAIN QUERY PLAN {one}")) for one in statements]
    assert "SEARCH items USING PRIMARY KEY (pk=? AND sk=?)" in plans[0]
    for plan in plans[1:]:
        assert "SEARCH items" in plan
        assert "SCAN" not in plan.replace("SCAN (subquery", "")  # of a page, which was searched for
        assert "TEMP B-TREE" not in plan


async def test_the_version_differs_after_any_write_by_any_process_and_not_otherwise(path: Path) -> None:
    async with SQLiteStore(str(path)) as store, SQLiteStore(str(path)) as other:
        assert store.version() is None
        await store.create()
        versions = [store.version()]
        for one in (store, other):
            await one.commit(ONE)
            versions.append(store.version())
        assert len(set(versions)) == 3
        for one in (store, other):
            await one.range(ALL, ReadUsage())
        assert store.version() == versions[-1]


async def test_units_are_told_as_dynamodb_would_count_them(path: Path) -> None:
    await make(path, *[Put({"pk": "t", "sk": f"#{n}#", "text": "x" * 1000}) for n in range(10)])
    async with SQLiteStore(str(path)) as store:
        one, strong, many, listed, counted = (ReadUsage() for _ in range(5))
        await store.get([Key("t", "#0#")], one)
        await store.get([Key("t", "#0#")], strong, strong=True)
        await store.get([Key("t", f"#{n}#") for n in range(11)], many)
        await store.range(below("t", "#"), listed)
        await store.count(below("t", "#"), counted)
        assert (one.units, strong.units, many.units, listed.units, counted.units) == (0.5, 1.0, 5.5, 1.5, 1.5)
