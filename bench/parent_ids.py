"""Benchmark of imports by parent ids, beside the same tree by paths: python -m bench.parent_ids [NODES] [ROUNDS].

The places of `bench.million` are written as two CSV files: with a path in each row, in the order of paths, and with a
parent id in each row, in a random order. `clade import` of each into a new SQLite file takes turns. Time, processor
time and peak memory of each run are printed, and the least processor times are compared.
"""

import csv
import multiprocessing
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.million import NODES, made
from bench.processes import CHECKOUT, CLADE

FORMS: dict[str, list[str]] = {"paths": [], "parents": ["--tree-by", "id=id,parent=parent,level=level"]}
"""The options of the command by the names of the files."""


class Cost(NamedTuple):
    """Seconds by the clock and of the processor, and the peak memory in MB."""

    seconds: float
    cpu: float
    peak: float


def write_files(folder: Path, nodes: int) -> None:
    """Write both files."""
    names: dict[tuple[str, ...], str] = {}
    by_path, by_parent = [], []
    for place in made(nodes):
        own = ".".join(place.path)
        names[place.path] = f"{names[place.path[:-1]]}/{place.name}" if len(place.path) > 1 else place.name
        by_path.append((names[place.path], place.level, place.name, own))
        by_parent.append((own, ".".join(place.path[:-1]), place.level, place.name))
    random.Random(1).shuffle(by_parent)
    _write(folder / "paths.csv", ("path", "level", "name", "id"), by_path)
    _write(folder / "parents.csv", ("id", "parent", "level", "name"), by_parent)


def _write(file: Path, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([header, *rows])


def imported(words: list[str], store: Path) -> Cost:
    """The cost of a process that imports a file into a new store."""
    unsearched = str(CHECKOUT / "bench" / "unsearched.py")
    environment = {**os.environ, "CLADE_STORE": f"sqlite:///{store}", "CLADE_HIERARCHIES": unsearched}
    began = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(CLADE[0], [*CLADE, "import", "location", *words], environment, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"clade import ended with {os.waitstatus_to_exitcode(status)}.")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main(nodes: int = NODES, rounds: int = 1) -> None:
    """Print the costs as a table."""
    least: dict[str, float] = {}
    print("| rows with | time | processor time | peak memory |\n| --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as name:
        # In a process of its own, since the peak of a process begins with that of its parent.
        writer = multiprocessing.get_context("spawn").Process(target=write_files, args=(Path(name), nodes))
        writer.start()
        writer.join()
        for number in range(rounds):
            for form, words in FORMS.items():
                cost = imported([f"{name}/{form}.csv", *words], Path(name) / f"{form}{number}.db")
                least[form] = min(least.get(form, cost.cpu), cost.cpu)
                print(f"| {form} | {cost.seconds:.1f} s | {cost.cpu:.1f} s | {cost.peak:,.0f} MB |", flush=True)
    print(f"\nBy parent ids {least['parents'] / least['paths']:.2f} times the processor time of paths.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
