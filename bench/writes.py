"""Benchmark of writes, single nodes and large moves: python -m bench.writes [NODES].

On a new SQLite file with durable commits; with an engine (CLADE_TEST_DYNOXIDE, or npm's @dynoxide/linux-x64 in tests/)
all of it goes to a local DynamoDB as well.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from store.background_moves.timing import MoveTiming
from store.connect import open_store
from store.edits.create_update import Create, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writer.writer import Writer
from tests import engines
from tests.hierarchies import CATEGORY

NODES = 10_000
SINGLE = 1_000
CLIENTS = 32
SIDE = 100  # children of each node that has any


def tree(nodes: int) -> ImportPlan:
    """About so many nodes in two levels below one root, and a second root as the target of moves."""
    plan = ImportPlan(CATEGORY)
    paths = [("other",), ("root",), *[("root", f"c{n}") for n in range(nodes // (SIDE + 1))]]
    paths += [(*path, f"p{n}") for path in paths if len(path) == 2 for n in range(SIDE)]
    for number, path in enumerate(paths):
        plan.take(Row(number, path, [Part("CATEGORY")]))
    return plan


class Clock:
    """Elapsed time since its creation, and the CPU time of this process in it, without the engine's."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def rate(self, count: int, what: str) -> str:
        seconds, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        return f"{count / seconds:,.0f} nodes {what}/s ({1000 * cpu / count:.2f} ms of CPU each)"


async def single(name: str, store: Store, count: int) -> None:
    """Create, then update, so many nodes one after another."""
    writer = Writer(store)
    await writer.write(Create(CATEGORY, ("single",), "CATEGORY", "Single", {}), ReadUsage())
    clock = Clock()
    for number in range(count):
        await writer.write(Create(CATEGORY, ("single", f"n{number}"), "CATEGORY", "A node", {"note": "1"}), ReadUsage())
    created, clock = clock.rate(count, "created"), Clock()
    for number in range(count):
        await writer.write(Update(CATEGORY, ("single", f"n{number}"), None, None, {"note": "2"}), ReadUsage())
    print(f"{name}: {created}, {clock.rate(count, 'updated')}")


async def together(name: str, store: Store, count: int) -> None:
    """Create so many nodes with concurrent clients."""
    writer = Writer(store)
    await writer.write(Create(CATEGORY, ("together",), "CATEGORY", "Together", {}), ReadUsage())

    async def client(first: int) -> None:
        for number in range(first, count, CLIENTS):
            await writer.write(Create(CATEGORY, ("together", f"n{number}"), "CATEGORY", "A node", {}), ReadUsage())

    clock = Clock()
    await asyncio.gather(*map(client, range(CLIENTS)))
    print(f"{name}: {clock.rate(count, 'created')} by {CLIENTS} clients at once")


async def watch(pauses: list[float]) -> None:
    """Record how long other tasks of this process have to wait."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0)
        pauses.append(time.perf_counter() - began)


async def large(name: str, store: Store, nodes: int) -> None:
    """Move a subtree to another tree and back, and delete it; journaled moves without their waits."""
    await load(store, tree(nodes), LoadResult())
    writer = Writer(store, MoveTiming(0.0, 0.0))
    for what, edit in (
        ("renamed", Move(CATEGORY, ("root",), ("renamed",))),
        ("moved to another tree", Move(CATEGORY, ("renamed",), ("other", "renamed"))),
        ("deleted", Delete(CATEGORY, ("other",), Policy.CASCADE)),
    ):
        pauses: list[float] = []
        watching = asyncio.create_task(watch(pauses))
        await asyncio.sleep(0)
        began = time.perf_counter()
        await writer.write(edit, ReadUsage())
        await writer.move_worker.finished()
        seconds = time.perf_counter() - began
        await asyncio.sleep(0)
        watching.cancel()
        print(f"{name}: {nodes:,} nodes {what} in {seconds:.2f} s, in which others waited {max(pauses):.2f} s at most")


async def main(nodes: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with open_store(f"sqlite:///{directory}/clade.db") as store:
            await store.create()
            await single("SQLite", store, SINGLE)
            await together("SQLite", store, SINGLE)
            await large("SQLite", store, nodes)
        try:
            engine = engines.find(Path(directory) / "engine.db")
        except engines.NoEngine as missing:
            return print(f"DynamoDB: {missing}")
        with engine:
            async with open_store(engine.address("bench")) as store:
                await store.create()
                await single(f"DynamoDB ({engine.name})", store, SINGLE // 5)
                await together(f"DynamoDB ({engine.name})", store, SINGLE // 5)
                await large(f"DynamoDB ({engine.name})", store, nodes)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else NODES))
