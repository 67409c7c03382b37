"""SQLite store: missing and invalid files, other processes, kills."""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from store.connect import open_store
from store.engine.usage import ReadUsage
from store.errors import BadInput, CladeError, Conflict, NoTable, Unavailable, Uncertain
from store.model.items import ABSENT, Put
from store.model.keys import Index, Key
from store.model.ranges import KeyRange, below
from store.retry import RetryPolicy
from store.sqlite.connection import LOGS
from store.sqlite.store import LARGE_CHANGES, PURGE_ITEMS, SQLiteStore

ALL = KeyRange(Index.TABLE, "t", "!", "~")
LARGE = [Put({"pk": "t", "sk": f"n{n:05}", "n": n}, ABSENT) for n in range(3 * LARGE_CHANGES)]


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of its own that runs `code` within an async function, with a store at its first argument."""
    program = f"""
import asyncio, sys
from store.errors import Conflict
from store.engine.usage import ReadUsage
from store.model.items import ABSENT, Put
from store.model.keys import Index, Key
from store.model.ranges import KeyRange
from store.sqlite.store import SQLiteStore

async def main(path, *arguments):
    async with SQLiteStore(path) as store:
{"".join(f"        {line}{chr(10)}" for line in code.strip().splitlines())}
asyncio.run(main(*sys.argv[1:]))
"""
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output


# -- the file ----------------------------------------------------------------------------------------------------------


async def test_a_file_is_made_by_create_and_never_by_opening(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    async with SQLiteStore(str(path)) as store:
        with pytest.raises(NoTable, match=r"no file.*new\.db.*clade table create"):
            await store.health()
        assert not path.exists()
        assert await store.create()
        assert path.exists()


async def test_a_file_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with SQLiteStore(str(tmp_path / "new.db")) as store:
        await store.create()
        modes = {name: os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)}
    assert modes == dict.fromkeys(["new.db", "new.db-wal", "new.db-shm"], 0o600)


async def test_the_mode_of_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    path.touch(0o640)
    async with SQLiteStore(str(path)) as store:
        await store.create()
    assert path.stat().st_mode & 0o777 == 0o640


async def test_a_table_made_by_another_process_is_found_without_reopening(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    async with SQLiteStore(str(path)) as store:
        with pytest.raises(NoTable):
            await store.health()
        finish(run('await store.create(); await store.commit([Put({"pk": "t", "sk": "a"})])', path))
        assert await store.get([Key("t", "a")], ReadUsage()) == [{"pk": "t", "sk": "a"}]


async def test_a_file_that_is_no_database_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Ann, " * 500)
    async with SQLiteStore(str(path)) as store:
        for verb in (store.health, store.create):
            with pytest.raises(Unavailable, match=r"letter\.txt.* is no SQLite database"):
                await verb()
    assert path.read_text() == "Dear Ann, " * 500


async def test_the_database_of_another_program_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, price REAL)")
    other.close()
    async with SQLiteStore(str(path)) as store:
        with pytest.raises(BadInput, match=r"shop\.db.*of another program"):
            await store.create()


async def test_an_empty_file_has_no_table(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    async with SQLiteStore(str(path)) as store:
        with pytest.raises(NoTable, match="clade table create"):
            await store.get([Key("t", "a")], ReadUsage())
        assert await store.create()


async def test_the_error_for_a_missing_file_has_the_command_that_makes_it(tmp_path: Path) -> None:
    async with SQLiteStore(str(tmp_path / "a b.db")) as store:
        with pytest.raises(NoTable) as caught:
            await store.get([Key("t", "a")], ReadUsage())
    command = str(caught.value).partition("create it with: ")[2]
    assert shlex.split(command) == ["clade", "table", "create", "--store", f"sqlite:///{tmp_path}/a b.db"]


@pytest.mark.parametrize(
    ("name", "message"), [("", "is a folder; name a file in it."), ("no/a.db", "is not a folder; create")]
)
async def test_a_folder_is_no_file_of_a_store(tmp_path: Path, name: str, message: str) -> None:
    async with SQLiteStore(str(tmp_path / name)) as store:
        with pytest.raises(Unavailable, match=message):
            await store.create()


async def test_a_file_without_a_table_is_no_backup(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    async with SQLiteStore(str(tmp_path / "clade.db")) as store:
        with pytest.raises(BadInput, match=r"has no table of Clade; name a file that clade backup wrote"):
            await store.put_back(tmp_path / "empty.db")


async def test_a_file_name_may_have_characters_that_a_uri_may_not(tmp_path: Path) -> None:
    path = tmp_path / "a b?mode=ro#100%.db"
    async with SQLiteStore(str(path)) as store:
        await store.create()
    assert path.exists()


async def test_a_store_in_memory_has_its_table_and_lives_as_long_as_it_is_open() -> None:
    for _ in range(2):
        async with open_store("sqlite://:memory:") as store:
            await store.health()
            assert not await store.create()
            await store.commit([Put({"pk": "t", "sk": "a"}, ABSENT)])


async def test_an_address_names_a_file() -> None:
    with pytest.raises(BadInput, match="no file"):
        open_store("sqlite://")
    with pytest.raises(BadInput, match="is not a store"):
        open_store("postgres://localhost")


async def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "clade.db"))
    with pytest.raises(RuntimeError, match="not open"):
        await store.create()
    async with store:
        await store.create()
    with pytest.raises(RuntimeError, match="not open"):
        await store.health()


# -- a file that is replaced -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize(("statement", "error"), [("BEGIN IMMEDIATE", Unavailable), ("COMMIT", Uncertain)])
async def test_a_commit_into_a_file_that_is_replaced_meanwhile_is_not_reported_as_done(
    tmp_path: Path, mode: str, statement: str, error: type[CladeError]
) -> None:
    path, other = tmp_path / "clade.db", tmp_path / "other.db"

    def replace(said: str) -> None:
        if said == statement:
            os.replace(other, path)

    for file in (path, other):
        async with SQLiteStore(str(file)) as store:
            await store.create()
            await store.commit([Put({"pk": "t", "sk": "!", "in": file.name})])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
    async with SQLiteStore(str(path)) as store:
        store.database.connection().set_trace_callback(replace)
        with pytest.raises(CladeError, match="was replaced or removed") as caught:
            await store.commit([Put({"pk": "t", "sk": "a"})])
        assert type(caught.value) is error
        for end in LOGS if mode == "WAL" else ():
            os.unlink(f"{path}{end}")
        assert await store.range(ALL, ReadUsage()) == [{"pk": "t", "sk": "!", "in": "other.db"}]


async def test_a_copy_in_place_of_a_removed_file_is_not_opened_beside_the_log_of_that_file(tmp_path: Path) -> None:
    path, other = tmp_path / "clade.db", tmp_path / "other.db"
    async with SQLiteStore(str(other)) as store:
        await store.create()
    async with SQLiteStore(str(path)) as store:
        await store.create()
        await store.commit([Put({"pk": "t", "sk": "a"})])
        path.unlink()
        while True:  # until it looks at the file
            try:
                await store.range(ALL, ReadUsage())
            except NoTable:
                break
        shutil.copyfile(other, path)  # which may get the number of the removed file's inode
        with pytest.raises(Unavailable, match=r"log of the former file"):
            await store.range(ALL, ReadUsage())
    assert path.read_bytes() == other.read_bytes()


async def test_no_connection_opens_a_file_beside_the_log_of_the_former_one(tmp_path: Path) -> None:
    path, other = tmp_path / "clade.db", tmp_path / "other.db"
    async with SQLiteStore(str(other)) as store:
        await store.create()
    content = other.read_bytes()
    async with SQLiteStore(str(path)) as store:
        await store.create()
        os.replace(other, path)
        with pytest.raises(Unavailable, match=r"log of the former file.*remove"):
            await store.commit(LARGE)
        with pytest.raises(Unavailable, match=r"log of the former file"):
            async with store.snapshot() as snapshot:
                await snapshot.range(ALL, ReadUsage())
        with pytest.raises(Unavailable, match=r"was replaced or removed"):
            await store.commit([Put({"pk": "t", "sk": "a"})])
        with pytest.raises(Unavailable, match=r"log of the former file"):
            await store.range(ALL, ReadUsage())
        assert store.version() is None
    assert path.read_bytes() == content


# -- several processes -------------------------------------------------------------------------------------------------


@pytest.mark.thorough
async def test_processes_that_make_the_table_at_once_make_it_once(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    start = time.time() + 1  # all at the same moment, however long each took to be there
    code = "import time\nwhile time.time() < float(arguments[0]): pass\nprint(await store.create())"
    racers = [run(code, path, start) for _ in range(4)]
    assert sorted(finish(racer).strip() for racer in racers) == ["False", "False", "False", "True"]


@pytest.mark.thorough
async def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each raises the same number by one, many times, and requires that nobody did so since it looked."""
    path = tmp_path / "clade.db"
    code = """
done = 0
while done < 60:
    (seen,) = await store.get([Key("t", "!")], ReadUsage())
    n = seen["n"] if seen else 0
    put = Put({"pk": "t", "sk": "!", "n": n + 1}, {"n": n} if seen else ABSENT)
    try:
        await store.commit([put, Put({"pk": "t", "sk": f"w{n + 1:05}"}, ABSENT)])
        done += 1
    except Conflict:
        await asyncio.sleep(0)
"""
    async with SQLiteStore(str(path)) as store:
        await store.create()
        for writer in [run(code, path) for _ in range(3)]:
            finish(writer)
        assert await store.get([Key("t", "!")], ReadUsage()) == [{"pk": "t", "sk": "!", "n": 180}]
        assert await store.count(KeyRange(Index.TABLE, "t", "w", "x"), ReadUsage()) == 180


async def test_a_killed_writer_leaves_whole_commits_only(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    async with SQLiteStore(str(path)) as store:
        await store.create()
        writer = run(
            """
for number in range(100_000):
    await store.commit([Put({"pk": "t", "sk": f"{side}{number}", "text": "x" * 2000}) for side in "abc"])
    print(number, flush=True)
""",
            path,
        )
        assert writer.stdout is not None
        for _ in range(20):
            told = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        told = max([told, *map(int, writer.stdout.read().split())])  # the last line is whole: print writes it in one go
        writer.wait(timeout=60)
        counts = {side: await store.count(KeyRange(Index.TABLE, "t", side, side + "~"), ReadUsage()) for side in "abc"}
        assert len(set(counts.values())) == 1
        assert told + 1 <= counts["a"] <= told + 2  # what was told as done is there


async def test_reads_continue_while_another_process_writes_and_a_commit_waits(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    async with SQLiteStore(str(path)) as store:
        await store.create()
        await store.commit([Put({"pk": "t", "sk": "a", "n": 1})])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM items")
        waiting = asyncio.create_task(store.commit([Put({"pk": "t", "sk": "b"})]))
        for _ in range(20):
            assert await store.get([Key("t", "a")], ReadUsage()) == [{"pk": "t", "sk": "a", "n": 1}]
            await asyncio.sleep(0.002)
        assert not waiting.done()
        other.execute("COMMIT")
        other.close()
        await asyncio.wait_for(waiting, 10)
        assert [item["sk"] for item in await store.range(ALL, ReadUsage())] == ["b"]


async def test_a_large_commit_yields_and_is_visible_as_a_whole(
    tmp_path: Path,
) -> None:
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as store:
        await store.create()
        before, counts = store.version(), []
        commit = asyncio.create_task(store.commit(LARGE))
        while not commit.done():
            counts.append(await store.count(ALL, ReadUsage()))
            await asyncio.sleep(0)
        await commit
        assert len(counts) > 3
        assert set(counts) <= {0, len(LARGE)}
        assert await store.count(ALL, ReadUsage()) == len(LARGE)
        assert store.version() != before


async def test_a_small_commit_beside_a_large_one_waits_for_it(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as store:
        await store.create()
        small = [Put({"pk": "t", "sk": "small"}, ABSENT)]
        await asyncio.gather(store.commit(LARGE), store.commit(small), store.commit([Put({"pk": "u", "sk": "s"})]))
        assert await store.count(ALL, ReadUsage()) == len(LARGE) + 1


async def test_a_process_waits_for_its_own_large_commit_without_a_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sqlite.connection.BUSY_RETRIES", RetryPolicy(0.0, 0.0, attempts=1))
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as store:
        await store.create()
        commits = [asyncio.create_task(store.commit(LARGE))]
        for number in range(60):  # whose turns it takes itself come in between
            await asyncio.sleep(0)
            commits.append(asyncio.create_task(store.commit([Put({"pk": "u", "sk": f"{number}"})])))
        await asyncio.gather(*commits)
        assert await store.count(ALL, ReadUsage()) == len(LARGE)


async def test_a_large_commit_that_is_cancelled_changes_nothing(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as store:
        await store.create()
        for turns in (1, 2, 3, 4):  # so many others had theirs before
            commit = asyncio.create_task(store.commit(LARGE))
            for _ in range(turns):
                await asyncio.sleep(0)
            assert commit.cancel()
            with pytest.raises(asyncio.CancelledError):
                await commit
            assert await store.count(ALL, ReadUsage()) == 0
        await store.commit(LARGE)
        assert await store.count(ALL, ReadUsage()) == len(LARGE)


async def test_a_large_commit_is_rejected_by_one_failed_condition(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}/clade.db") as store:
        await store.create()
        await store.commit(LARGE[-1:])
        with pytest.raises(Conflict):
            await store.commit(LARGE)
        assert await store.count(ALL, ReadUsage()) == 1


async def test_a_commit_that_waits_too_long_for_another_process_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sqlite.connection.BUSY_RETRIES", RetryPolicy(0.01, 0.01, deadline_seconds=0.05))
    path = tmp_path / "clade.db"
    async with SQLiteStore(str(path)) as store:
        await store.create()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="another process"):
            await store.commit([Put({"pk": "t", "sk": "b"})])
        other.close()
        await store.commit([Put({"pk": "t", "sk": "b"})])


# -- how it lies -------------------------------------------------------------------------------------------------------


async def test_expired_items_are_deleted_in_bounded_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.sqlite.store.PURGE_SECONDS", 0.0)
    path = tmp_path / "clade.db"
    count = "SELECT count(*) FROM items"
    async with SQLiteStore(str(path)) as store:
        await store.create()
        old = [Put({"pk": "t", "sk": f"{number:05}", "expires": 1000}) for number in range(PURGE_ITEMS + 200)]
        await store.commit([*old, Put({"pk": "t", "sk": "later", "expires": int(time.time()) + 1000})])
        with sqlite3.connect(path) as other:
            assert other.execute(count).fetchone() == (201,)
            await store.commit([Put({"pk": "t", "sk": "for ever"})])
            assert other.execute(count).fetchone() == (2,)
        other.close()


async def test_expired_items_are_not_deleted_by_every_commit(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    async with SQLiteStore(str(path)) as store:
        await store.create()
        await store.commit([Put({"pk": "t", "sk": "a"})])
        await store.commit([Put({"pk": "t", "sk": "b", "expires": 1000})])
        await store.commit([Put({"pk": "t", "sk": "c"})])
        with sqlite3.connect(path) as other:
            assert other.execute("SELECT count(*) FROM items").fetchone() == (3,)
        other.close()


@pytest.mark.parametrize("index", Index)
async def test_every_range_is_an_index_search_without_sorting(tmp_path: Path, index: Index) -> None:
    path = tmp_path / "clade.db"
    async with SQLiteStore(str(path)) as store:
        await store.create()
        with sqlite3.connect(path) as other:
            for verb in (store.range, store.count):
                plan = await _plan_of(other, store, verb, KeyRange(index, "p", "a", "b"))
                assert "SEARCH items" in plan
                assert "SCAN" not in plan.replace("SCAN (subquery", "")  # of a page, which was searched for
                assert "TEMP B-TREE" not in plan
        other.close()


async def test_many_keys_are_index_searches_and_never_a_scan(tmp_path: Path) -> None:
    path = tmp_path / "clade.db"
    async with SQLiteStore(str(path)) as store:
        await store.create()
        with sqlite3.connect(path) as other:
            keys = [Key("t", str(number)) for number in range(50)]
            plan = await _plan_of(other, store, store.get, keys)
            assert "SEARCH items USING PRIMARY KEY (pk=? AND sk=?)" in plan
        other.close()


async def _plan_of(other: sqlite3.Connection, store: SQLiteStore, verb: object, *arguments: object) -> str:
    """The query plan of the one statement that a verb runs."""
    statements: list[str] = []
    connection = store.database.connection()
    connection.set_trace_callback(statements.append)
    await verb(*arguments, ReadUsage())  # type: ignore[operator]
    connection.set_trace_callback(None)
    (statement,) = statements
    return "\n".join(row[3] for row in other.execute(f"EXPLAIN QUERY PLAN {statement}"))


async def test_the_version_differs_after_any_write_by_any_process_and_not_otherwise(tmp_path: Path) -> None:
    path = str(tmp_path / "clade.db")
    async with SQLiteStore(path) as store, SQLiteStore(path) as other:
        assert store.version() is None
        await store.create()
        versions = [store.version()]
        await store.commit([Put({"pk": "t", "sk": "a"})])
        versions.append(store.version())
        await other.commit([Put({"pk": "t", "sk": "b"})])
        versions.append(store.version())
        assert len(set(versions)) == 3
        await store.range(ALL, ReadUsage())
        await other.range(ALL, ReadUsage())
        assert store.version() == versions[-1]


async def test_commits_are_flushed_to_the_disk(tmp_path: Path) -> None:
    async with SQLiteStore(str(tmp_path / "clade.db")) as store:
        await store.create()
        connection = store.database.connection()
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


async def test_units_are_told_as_dynamodb_would_count_them(tmp_path: Path) -> None:
    async with SQLiteStore(str(tmp_path / "clade.db")) as store:
        await store.create()
        await store.commit([Put({"pk": "t", "sk": f"#{n}#", "text": "x" * 1000}) for n in range(10)])
        one, strong, many, listed, counted = (ReadUsage() for _ in range(5))
        await store.get([Key("t", "#0#")], one)
        await store.get([Key("t", "#0#")], strong, strong=True)
        await store.get([Key("t", f"#{n}#") for n in range(11)], many)
        await store.range(below("t", "#"), listed)
        await store.count(below("t", "#"), counted)
        assert (one.units, strong.units, many.units, listed.units, counted.units) == (0.5, 1.0, 5.5, 1.5, 1.5)
