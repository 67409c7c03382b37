"""Benchmark of imports, speed and memory: python -m bench.load [NODES].

A CSV file of made-up places is imported into a new SQLite file by a process of its own, as `clade import` does it, and
then once more, when nothing changes. With an engine (CLADE_TEST_DYNOXIDE, or npm's @dynoxide/linux-x64 in tests/) a
tenth of the nodes go into a local DynamoDB as well.
"""

import asyncio
import csv
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from commands.importing.command import import_file
from store.connect import open_store
from tests import engines

NODES = 240_000
STATES, CITIES, STORES = 10, 20, 9  # in each country, state and city
OPTIONS = {
    "levels": ["country=Country", "state=State", "city=City", "store=Number"],
    "names": ["store=Name"],
    "attributes": ["store.street=Street", "store.longitude=Longitude"],
}


def make(file: Path, nodes: int) -> None:
    """Write a CSV file for about so many nodes."""
    countries = max(1, nodes // (STATES * CITIES * (STORES + 1)))
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["Country", "State", "City", "Number", "Name", "Street", "Longitude"])
        for number in range(countries * STATES * CITIES * STORES):
            city = number // STORES
            place = [f"C{city // CITIES // STATES}", f"State {city // CITIES}", f"City {city}"]
            writer.writerow([*place, f"{number:08d}", f"Shop {number}", f"{number % 999} Main Street", number % 180])


def timed(name: str, file: Path, url: str) -> None:
    """Import in this process and print time and memory; run it in a process of its own."""
    began, began_cpu = time.perf_counter(), time.process_time()
    sys.stdout, printed = open(os.devnull, "w"), sys.stdout  # noqa: SIM115 - ends with the process
    import_file("location", file, **OPTIONS, store=url)  # type: ignore[arg-type]
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with file.open() as lines:
        rows = sum(1 for _ in lines) - 1
    nodes = rows + rows // STORES + rows // STORES // CITIES + rows // STORES // CITIES // STATES
    took = f"{seconds:.1f} s ({cpu_seconds:.1f} s of this process's CPU)"
    print(f"{name}: {nodes:,} nodes in {took}, {nodes / seconds:,.0f} nodes/s, peak {peak:.0f} MB", file=printed)


def alone(call: Callable[..., None], *arguments: object) -> None:
    process = multiprocessing.get_context("spawn").Process(target=call, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


async def create(url: str) -> None:
    async with open_store(url) as store:
        await store.create()


def main(nodes: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "places.csv"
        make(file, nodes)
        url = f"sqlite:///{directory}/clade.db"
        alone(timed, "SQLite, new", file, url)
        alone(timed, "SQLite, the same again", file, url)
        try:
            engine = engines.find(Path(directory) / "engine.db")
        except engines.NoEngine as missing:
            return print(f"DynamoDB: {missing}")
        make(file, nodes // 10)
        with engine:
            asyncio.run(create(engine.address("bench")))
            alone(timed, f"DynamoDB ({engine.name}), new", file, engine.address("bench"))
            alone(timed, f"DynamoDB ({engine.name}), the same again", file, engine.address("bench"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NODES)
