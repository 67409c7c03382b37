"""Benchmark of imports: `clade import` of a file, beside bare writes of the rows that result from it.

The places of GeoNames are imported as JSON lines into a new SQLite file, once into a hierarchy without search and once
into one with it. The bare writes are INSERTs of exactly the rows of that file into another one with the same table,
settings and size of transactions: in the order of the table, which is the fastest, and in that of the trees, which any
import has that leaves each tree consistent. With a DynamoDB engine (see tests/engines.py) a part of the places goes to
that as well, beside BatchWriteItem of the same items. Both ways take turns, and the least of each counts.

Usage: python -m bench.importing [--inhabitants 500] [--rounds 2] [--engine-nodes 20000]
"""

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from bench.processes import CHECKOUT, CLADE, run
from clade.demo import cities, countries
from store.connect import open_store
from store.dynamodb import codec
from store.dynamodb.client import DynamoDBClient
from store.engine.usage import ReadUsage
from store.model.items import Item
from store.sqlite.connection import CHECKPOINT_PAGES
from store.sqlite.rows import decode
from store.sqlite.sql import INSERT, SCHEMA
from store.sqlite.store import MAX_CHANGES
from tests import engines

HIERARCHIES = {
    "without search": str(CHECKOUT / "bench" / "unsearched.py"),
    "with search": "graph.hierarchies.locations",
}
BATCH = 25  # items of one BatchWriteItem
CALLS = 8  # at once, as many as an import has

HEAD = """| | time | processor time | the import, in times of this time | of this processor time |
| --- | --- | --- | --- | --- |"""
SQLITE_LINES = ("clade import", "INSERT in the order of the table", "INSERT in the order of the trees")

Row = tuple[Any, ...]


class Cost(NamedTuple):
    """Seconds by the clock, and of the processor."""

    seconds: float
    cpu: float

    def line(self, title: str, other: "Cost") -> str:
        """A line of the table; `other` is the cost of the import, in times of this one."""
        ratios = f"{other.seconds / self.seconds:.2f} × | {other.cpu / self.cpu:.2f} ×"
        return f"| {title} | {self.seconds:.1f} s | {self.cpu:.1f} s | {ratios} |"


def write_places(file: Path, inhabitants: int) -> int:
    """Write the places as JSON lines, as `clade export` does; their number."""
    cities.MIN_POPULATION = inhabitants
    lines = [orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in (*countries.rows(), *cities.rows())]
    file.write_bytes(b"".join(lines))
    return len(lines)


def imported(file: Path, store: str, hierarchies: str) -> Cost:
    """The cost of a process that imports a file into a new store."""
    environment = {**os.environ, "CLADE_STORE": store, "CLADE_HIERARCHIES": hierarchies}
    run(*CLADE, "table", "create", environment=environment)
    began = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    pid = os.posix_spawn(CLADE[0], [*CLADE, "import", "location", str(file)], environment, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"clade import ended with {os.waitstatus_to_exitcode(status)}.")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime)


def rows_of(file: Path) -> list[Row]:
    """The rows of an SQLite store in the order of its table."""
    with sqlite3.connect(file) as connection:
        return connection.execute("SELECT * FROM items ORDER BY pk, sk").fetchall()


def tree_of(row: Row) -> tuple[str, str]:
    """The key of the node that a row is about, which orders rows as trees are written."""
    item: dict[str, Any] = decode((*row[:5], row[-1]))
    if "tree" in item:  # the record of an id
        return item["tree"], item["key"]
    if "line" in item:  # an item of search
        root, divider, rest = item["at"].partition("#")
        return f"location#{root}", divider + rest
    return row[0], row[1]


def inserted(rows: Sequence[Row], file: Path) -> Cost:
    """The cost of INSERTs into a new file."""
    connection = sqlite3.connect(file, isolation_level=None)
    for statement in (
        "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}",
        *SCHEMA,
    ):  # fmt: skip
        connection.execute(statement)
    began, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(rows), MAX_CHANGES):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, rows[start : start + MAX_CHANGES])
        connection.execute("COMMIT")
    cost = Cost(time.perf_counter() - began, time.process_time() - cpu)
    connection.close()
    file.unlink()
    return cost


def compared(file: Path, folder: Path, hierarchies: str) -> list[Cost]:
    """The costs of an import into SQLite, and of the INSERTs in the order of the table and of the trees."""
    target, other = folder / "imported.db", folder / "bare.db"
    target.unlink(missing_ok=True)
    cost = imported(file, f"sqlite:///{target}", hierarchies)
    rows = rows_of(target)
    by_table = inserted(rows, other)
    return [cost, by_table, inserted(sorted(rows, key=tree_of), other)]


async def items_of(url: str) -> list[Item]:
    """All items of a store."""
    async with open_store(url) as store:
        return [item async for page in store.scan(ReadUsage()) for item in page]


async def batch_written(items: Sequence[Item], table: str, engine: engines.Engine) -> Cost:
    """The cost of BatchWriteItem of these items into a new table."""
    async with open_store(engine.address(table)) as store:
        await store.create()
    puts = [{"PutRequest": {"Item": codec.encode(item)}} for item in items]
    batches = iter([puts[start : start + BATCH] for start in range(0, len(puts), BATCH)])

    async def write(client: DynamoDBClient) -> None:
        for batch in batches:
            answer = await client.call("BatchWriteItem", RequestItems={table: batch})
            assert not answer.get("UnprocessedItems"), "A local engine has no limit of units."

    async with DynamoDBClient(table, "eu-west-1", engine.url) as client:
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[write(client) for _ in range(CALLS)])
        return Cost(time.perf_counter() - began, time.process_time() - cpu)


def compared_on_engine(file: Path, engine: engines.Engine, hierarchies: str, number: int) -> list[Cost]:
    """The costs of an import into a table of the engine, and of BatchWriteItem; `number` makes the tables' names."""
    with engine:  # anew, since its tables are in its memory
        url = engine.address(f"imported{number}")
        cost = imported(file, url, hierarchies)
        return [cost, asyncio.run(batch_written(asyncio.run(items_of(url)), f"bare{number}", engine))]


def least(costs: Sequence[Sequence[Cost]]) -> list[Cost]:
    """The least cost of each way in all rounds."""
    return [Cost(*map(min, *ways, ways[0])) for ways in zip(*costs, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.importing", description="Benchmark of imports.")
    parser.add_argument("--inhabitants", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engine-nodes", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file, part = folder / "places.jsonl", folder / "part.jsonl"
        nodes = write_places(file, options.inhabitants)
        with file.open("rb") as lines:
            part.write_bytes(b"".join(islice(lines, options.engine_nodes)))
        for title, hierarchies in HIERARCHIES.items():
            print(f"\n**{nodes:,} nodes, {title}**\n\n{HEAD}")
            found = least([compared(file, folder, hierarchies) for _ in range(options.rounds)])
            for line, cost in zip(SQLITE_LINES, found, strict=True):
                print(cost.line(line, found[0]), flush=True)
            if not options.engine_nodes:
                continue
            engine = engines.find()
            turns = range(options.rounds)
            found = least([compared_on_engine(part, engine, hierarchies, number) for number in turns])
            for line, cost in zip(("clade import into DynamoDB", "BatchWriteItem"), found, strict=True):
                print(cost.line(f"{line}, {min(nodes, options.engine_nodes):,} nodes", found[0]), flush=True)


if __name__ == "__main__":
    main()
