"""Benchmark of moves with search: how much longer a move of a large subtree takes where its nodes are searched.

Two tables have the same nodes, one of a class without `search=`, one of a class with it. A subtree is moved to and fro
below two nodes of its tree, in both tables in turns. On a new SQLite file with durable commits; with an engine
(CLADE_TEST_DYNOXIDE, or npm's @dynoxide/linux-x64 in tests/) on a local DynamoDB as well.

Usage: python -m bench.search_moves [--nodes 5000] [--rounds 9]
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from store.background_moves.timing import MoveTiming
from store.connect import open_store
from store.edits.move import Move
from store.engine.usage import ReadUsage
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.writer import Writer
from tests import engines
from tests.hierarchies import CATEGORY

CLASSES = {"without": CATEGORY, "with": replace(CATEGORY, search=Search(SearchScope.HIERARCHY))}
SIDE = 100  # children of each node that has any
WAIT_SECONDS = 60.0


def tree(hierarchy: Hierarchy, nodes: int) -> ImportPlan:
    """A subtree of about so many nodes, each of two words, and two nodes below which it may be."""
    plan = ImportPlan(hierarchy)
    paths = [("root",), ("root", "a"), ("root", "b"), ("root", "a", "moved")]
    for middle in range(nodes // (SIDE + 1)):
        path = (*paths[3], f"c{middle}")
        paths += [path, *[(*path, f"p{number}") for number in range(SIDE)]]
    for number, path in enumerate(paths):
        plan.take(Row(number, path, [Part("CATEGORY", f"Garden chair {number}")]))
    return plan


@asynccontextmanager
async def writer_of(url: str, hierarchy: Hierarchy, nodes: int) -> AsyncIterator[Writer]:
    async with open_store(url) as store:
        await store.create()
        await load(store, tree(hierarchy, nodes), LoadResult())
        yield Writer(store, MoveTiming(0.0, 0.0, WAIT_SECONDS), {"category": hierarchy})


async def seconds_of_move(writer: Writer, hierarchy: Hierarchy, round_number: int) -> tuple[float, float]:
    """The elapsed time of one move, and the processor time of this process in it."""
    source, target = ("a", "b") if round_number % 2 == 0 else ("b", "a")
    began, cpu = time.perf_counter(), time.process_time()
    await writer.write(Move(hierarchy, ("root", source, "moved"), ("root", target, "moved")), ReadUsage())
    await writer.move_worker.finished()
    return time.perf_counter() - began, time.process_time() - cpu


async def compare(name: str, urls: dict[str, str], nodes: int, rounds: int) -> str:
    """A line of the report: the medians of both tables, and the median of the ratios of each round."""
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in CLASSES}
    async with (
        writer_of(urls["without"], CLASSES["without"], nodes) as without,
        writer_of(urls["with"], CLASSES["with"], nodes) as searched,
    ):
        writers = {"without": without, "with": searched}
        for number in range(rounds):
            for kind in sorted(CLASSES, reverse=number % 2 == 0):
                times[kind].append(await seconds_of_move(writers[kind], CLASSES[kind], number))
    cells = []
    for part in (0, 1):
        plain, searched = [[one[part] for one in times[kind]] for kind in CLASSES]
        ratio = median([one / other for one, other in zip(searched, plain, strict=True)])
        cells += [f"{median(plain):.2f} s", f"{median(searched):.2f} s", f"{ratio:.2f}"]
    return f"| {name} | {' | '.join(cells)} |"


async def report(nodes: int, rounds: int) -> None:
    print("| store | without search | with | ratio | processor, without | with | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        urls = {kind: f"sqlite:///{Path(folder, kind)}.db" for kind in CLASSES}
        print(await compare("SQLite", urls, nodes, rounds), flush=True)
    try:
        engine = engines.find()
    except engines.NoEngine as error:
        print(error)
        return
    with engine:
        urls = {kind: engine.address(f"bench-{kind}") for kind in CLASSES}
        print(await compare(engine.name, urls, nodes, rounds))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search_moves", description="Benchmark of moves with search.")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    asyncio.run(report(options.nodes, options.rounds))


if __name__ == "__main__":
    main()
