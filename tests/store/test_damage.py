"""SQLite files of which pages were overwritten: nothing ends in a traceback, and nothing wrong is said to be right."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of
from graph.hierarchies.categories import CategoryNode
from store.connect import open_store
from store.errors import CladeError, Damaged
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.selection import examples

PAGE = 4096
SOME, ALL = "rank > 'CATEGORY#Node2'", "parent IS NOT NULL"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with some hundred nodes of one tree."""
    path = tmp_path_factory.mktemp("whole") / "clade.db"

    async def make() -> None:
        async with open_store(f"sqlite:///{path}") as store:
            await store.create()
            wanted = ImportPlan(CategoryNode.definition())
            for number, row in enumerate(["A", *[f"A/Node{number}" for number in range(300)]]):
                wanted.take(Row(number, parse_path(row), [Part("CATEGORY")]))
            await load(store, wanted, LoadResult())

    asyncio.run(make())
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


def run(path: Path, *words: str) -> Result:
    done = CliRunner().invoke(app_of(), [*words], env={"CLADE_STORE": f"sqlite:///{path}"})
    assert done.exception is None or isinstance(done.exception, SystemExit | CladeError), done.exception
    return done


def test_damage_is_found_by_a_check_or_changes_no_export(whole: bytes, tmp_path: Path) -> None:
    path, out, found = tmp_path / "clade.db", tmp_path / "out.jsonl", 0

    def exported(content: bytes) -> bytes | None:
        """The lines of an export, None where it fails."""
        path.write_bytes(content)
        out.unlink(missing_ok=True)
        done = run(path, "export", "category", "--output", str(out))
        assert (done.exit_code == 0) == out.exists()
        return out.read_bytes() if out.exists() else None

    told, pages = exported(whole), len(whole) // PAGE
    assert told
    assert run(path, "check").exit_code == 0
    chance = random.Random(pages)  # noqa: S311 - no secret
    for start in (PAGE * page for page in chance.sample(range(pages), examples(6, 60))):
        kept = exported(whole[:start] + chance.randbytes(1000) + whole[start + 1000 :])
        is_right = run(path, "check").exit_code == 0
        assert not is_right or kept in (None, told), start
        found += not is_right
    assert found > 3
    assert exported(whole[: pages // 2 * PAGE]) is None


def define(path: Path, condition: str, other: str) -> None:
    """Have an index say that it is of the rows with another condition, whatever it holds."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA writable_schema = ON")
        change = "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = 'by_parent'"
        database.execute(change, (condition, other))
        database.commit()


def test_an_index_without_some_rows_is_damage(whole: bytes, tmp_path: Path) -> None:
    """As where a write to one page never came to the disk."""
    path = tmp_path / "clade.db"
    path.write_bytes(whole)
    define(path, ALL, SOME)
    with closing(sqlite3.connect(path)) as database:
        database.execute("REINDEX by_parent")
    define(path, SOME, ALL)
    for command in (("check",), ("repair",), ("export", "category")):
        assert isinstance(run(path, *command).exception, Damaged)
