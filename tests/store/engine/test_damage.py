"""SQLite files of which bytes were overwritten: nothing ends in a traceback, and nothing wrong is said to be right.

The long form: pytest --examples 2000 tests/store/engine/test_damage.py
"""

import asyncio
import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of
from graph.app import create_app
from graph.hierarchies.categories import CategoryNode
from store.connect import open_store
from store.edits.create_update import Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.engine.usage import ReadUsage
from store.errors import Damaged
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.writer import Writer
from tests.selection import examples
from tests.serving import serving

FILES = examples(8, 16)
CATEGORY = CategoryNode.definition()
NODES = 300
LEAST_BYTES = 32  # fewer can turn a value into another one, which only a sum over it would tell

QUERIES = (
    '{ category(path: "A") { childCount children(first: 400) { totalCount nodes { id name path } } } }',
    '{ category(path: "A") { descendants(first: 400) { totalCount nodes { id name updatedAt } } } }',
    "{ categories { nodes { name childCount children(last: 9) { nodes { name } } } } }",
    '{ category(path: "A/Old3") { id name path ancestors { name } } }',
    '{ changes(hierarchy: CATEGORY, tree: "A") { changes { event nodeId path } } }',
)


async def make(path: Path) -> None:
    """A file with some hundred nodes of one hierarchy, revisions, aliases and deleted nodes."""
    async with open_store(f"sqlite:///{path}") as store:
        await store.create()
        wanted = ImportPlan(CATEGORY)
        rows = [
            "A",
            "B",
            *[f"A/Node{number}" for number in range(NODES)],
            *[f"A/Node7/{number}" for number in range(9)],
        ]
        for number, row in enumerate(rows):
            wanted.take(Row(number, parse_path(row), [Part("CATEGORY")]))
        await load(store, wanted, LoadResult())
        writer = Writer(store)
        for number in range(20):
            place = parse_path(f"A/Node{number}")
            await writer.write(Update(CATEGORY, place, f"Name {number}", None, {}), ReadUsage())
            await writer.write(Move(CATEGORY, place, parse_path(f"A/Old{number}")), ReadUsage())
            await writer.write(Delete(CATEGORY, parse_path(f"A/Node{40 + number}"), Policy.CASCADE), ReadUsage())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "clade.db"
    asyncio.run(make(path))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


def damaged(content: bytes, seed: int) -> bytes:
    """The content with random bytes in one to three places: whole pages, or parts of them."""
    chance, changed = random.Random(seed), bytearray(content)  # noqa: S311 - no secret
    for _ in range(chance.randint(1, 3)):
        size = chance.choice([LEAST_BYTES, 100, 1000, 4096])
        start = chance.randrange(len(content) // 4096) * 4096 + (0 if size == 4096 else chance.randrange(4096 - size))
        changed[start : start + size] = chance.randbytes(size)
    return bytes(changed)


def run(path: Path, *words: str) -> Result:
    return CliRunner().invoke(app_of(), [*words], env={"CLADE_STORE": f"sqlite:///{path}"})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, httpx.Client]]:
    """A server of a file that is replaced under it."""
    path = tmp_path_factory.mktemp("served") / "clade.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLADE_STORE", f"sqlite:///{path}")
        app = create_app()
    with serving(app) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield path, client


def put(path: Path, content: bytes) -> None:
    new = path.with_name("new.db")
    new.write_bytes(content)
    new.replace(path)


def answers(client: httpx.Client) -> list[str]:
    found = [client.post("/graphql", json={"query": query}).json() for query in QUERIES]
    codes = {error["extensions"]["code"] for answer in found for error in answer.get("errors", [])}
    assert codes <= {"UNAVAILABLE", "BAD_DATA"}, found
    return [json.dumps(answer.get("data"), sort_keys=True) for answer in found]


def exported(path: Path) -> bytes | None:
    """The lines of an export, None where it fails."""
    target = path.with_name("out.jsonl")
    target.unlink(missing_ok=True)
    done = run(path, "export", "category", "--output", str(target))
    assert done.exception is None or type(done.exception).__module__ == "store.errors", done.exception
    assert (done.exit_code == 0) == target.exists()
    return target.read_bytes() if target.exists() else None


def is_right(path: Path) -> bool:
    """Whether a check finds nothing."""
    done = run(path, "check", "category")
    assert done.exception is None or isinstance(done.exception, SystemExit | Damaged), done.exception
    assert (done.exit_code == 0) == ("no findings" in done.stdout)
    return done.exit_code == 0


def test_damage_is_reported_without_a_traceback(whole: bytes, served: tuple[Path, httpx.Client]) -> None:
    path, client = served
    put(path, whole)
    told, lines = answers(client), exported(path)
    assert is_right(path)
    found = 0
    for seed in range(FILES):
        put(path, damaged(whole, seed))
        same = answers(client) == told
        kept = exported(path)
        right = is_right(path)
        assert same or not right, seed
        assert kept in (None, lines) or not right, seed
        found += not right
    assert found > FILES / 2


SOME = "rank > 'CATEGORY#Node2'"


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
    define(path, "parent IS NOT NULL", SOME)
    with closing(sqlite3.connect(path)) as database:
        database.execute("REINDEX by_parent")
    define(path, SOME, "parent IS NOT NULL")
    for command in (("check",), ("repair",), ("export", "category")):
        assert isinstance(run(path, *command).exception, Damaged)
