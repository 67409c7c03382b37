"""Benchmark of imports: `clade import` of a file, compared with bare writes of the rows that result from it.

The places of GeoNames are imported as JSON lines into a new SQLite file, then once more, when nothing changes: into a
hierarchy without search and into one with it. The bare writes are INSERTs of exactly the rows of that file, in the
order of the table, which is the fastest, into another file in WAL mode with durable commits. Where dynoxide is
installed a part of the places goes to it as well. All take turns, and the least of each counts.

Usage: python -m bench.importing [--inhabitants 500] [--rounds 2] [--engine-nodes 20000] [--checkout DIR …]
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench import places, processes
from bench.checkouts import Checkout, add_options, checkouts
from bench.processes import CHECKOUT, Silent
from bench.report import number, python_build, table
from bench.servers import ANY_CREDENTIALS, CLADE

HIERARCHIES = {
    "without search": str(CHECKOUT / "bench" / "unsearched.py"),
    "with search": "graph.hierarchies.locations",
}
TRANSACTION = 1_000  # rows
HEAD = ("", "seconds", "processor time, s", "peak memory, MB")


class Cost(NamedTuple):
    """Seconds by the clock and of the processor, and peak memory."""

    seconds: float
    cpu: float
    peak_mb: float


def imported(one: Checkout, file: Path, store: str, hierarchies: str) -> Cost:
    """The cost of a process that imports a file into a store."""
    given = {"CLADE_STORE": store, "CLADE_HIERARCHIES": hierarchies, **ANY_CREDENTIALS}
    processes.run(*CLADE, "table", "create", environment=given, directory=one.folder)
    began, null = time.perf_counter(), subprocess.DEVNULL
    command = [*CLADE, "import", "location", str(file)]
    process = subprocess.Popen(command, cwd=one.folder, env={**os.environ, **given}, stdout=null, stderr=null)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(f"clade import ended with {process.returncode}.")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def inserted(source: Path, target: Path) -> Cost:
    """The cost of INSERTs of the rows of a store into a new file with the same table."""
    with sqlite3.connect(source) as connection:
        schema = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        rows = connection.execute("SELECT * FROM items ORDER BY pk, sk").fetchall()
    connection = sqlite3.connect(target, isolation_level=None)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", *schema):
        connection.execute(statement)
    insert = f"INSERT INTO items VALUES ({', '.join('?' * len(rows[0]))})"  # noqa: S608 - question marks alone
    began, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(rows), TRANSACTION):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(insert, rows[start : start + TRANSACTION])
        connection.execute("COMMIT")
    cost = Cost(time.perf_counter() - began, time.process_time() - cpu, 0.0)
    connection.close()
    return cost


def compared(compared: Sequence[Checkout], file: Path, part: Path, hierarchies: str) -> dict[str, Cost]:
    """The costs of one round, by what was done."""
    costs: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory() as name:
        for one in compared:
            store = one.file(Path(name))
            costs[f"{one.name}, import"] = imported(one, file, store, hierarchies)
            costs[f"{one.name}, the same again"] = imported(one, file, store, hierarchies)
        source = Path(compared[0].file(Path(name)).removeprefix("sqlite:///"))
        costs["INSERTs of the same rows"] = inserted(source, Path(name) / "bare.db")
        try:
            with processes.engine() as engine:
                for one in compared:
                    costs[f"{one.name}, into DynamoDB"] = imported(one, part, one.table(engine.url), hierarchies)
        except Silent as missing:
            print(f"DynamoDB is left out: {missing}")
    return costs


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the tables, and return them."""
    options = _options(arguments)
    print(python_build(), flush=True)
    parts = []
    with tempfile.TemporaryDirectory() as name:
        file, part = Path(name) / "places.jsonl", Path(name) / "part.jsonl"
        places.write(places.real(options.inhabitants), file)
        with file.open("rb") as lines:
            part.write_bytes(b"".join(islice(lines, options.engine_nodes)))
        for title, hierarchies in HIERARCHIES.items():
            runs = [compared(checkouts(options), file, part, hierarchies) for _ in range(options.rounds)]
            rows = [
                [what, *(number(min(some)) for some in zip(*(run[what] for run in runs), strict=True))]
                for what in runs[0]
            ]
            parts.append(f"**Places of at least {options.inhabitants} inhabitants, {title}**\n\n{table(HEAD, rows)}")
            print(parts[-1], flush=True)
    return "\n\n".join(parts)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.importing", description="Benchmark of imports.")
    add_options(parser)
    parser.add_argument("--inhabitants", type=int, choices=places.POPULATIONS, default=500, help="default 500")
    parser.add_argument("--rounds", type=int, default=2, help="default 2")
    parser.add_argument("--engine-nodes", type=int, default=20_000, help="places for DynamoDB; default 20000")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
