"""Benchmark of a large store, from import to move: python -m bench.million [NODES] [STORE].

Generated places in ten countries of one region each are imported by `clade import`, checked by `clade check`, and
queried from a server without caches; then a region, a tenth of all, is moved to another country, and the store is
checked again. Each step is a process of its own, whose time, processor time and peak memory are printed. STORE is the
URL of an empty store; by default it is a temporary SQLite file.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from bench.places import Place, write
from bench.processes import CLADE, ask
from bench.servers import clade

NODES = 1_000_000
COUNTRIES, COUNTIES = 10, 100  # a country has one region, and that so many counties
MOVE_SECONDS = 3600.0
TIMES = 20  # that each query is sent

QUERIES = {
    "breadcrumb": '{ city(path: "C0/R0/050/000") { name ancestors { name } } }',
    "children": '{ region(path: "C0/R0") { children { nodes { name } } } }',
    "nested": '{ region(path: "C0/R0") { children(first: 50) { nodes { children(first: 20) { nodes { name } } } } } }',
    "flat": '{ country(path: "C0") { descendants(first: 1000) { nodes { name path } } } }',
}
MOVE = """mutation {
  moveLocation(input: {node: {path: "C1/R1"}, to: {parent: {path: "C0"}}}) { node { path descendantCount } } }"""


def made(nodes: int) -> Iterator[Place]:
    """About so many places."""
    cities = max(1, nodes // COUNTRIES // COUNTIES - 1)
    for number in range(COUNTRIES):
        country, region = f"C{number}", f"R{number}"
        yield _place("COUNTRY", country)
        yield _place("REGION", country, region)
        for county in range(COUNTIES):
            yield _place("COUNTY", country, region, f"{county:03d}")
            for city in range(cities):
                yield _place("CITY", country, region, f"{county:03d}", f"{city:03d}")


def _place(level: str, *path: str) -> Place:
    number = int(path[-1].lstrip("CR"))
    return Place(path, level, f"{level.capitalize()} {number}", "-".join(path), number, path[-1], 1.5, 1.5)


def timed(name: str, *arguments: str, store: str) -> None:
    """Run a command of Clade and print its cost."""
    began = time.perf_counter()
    pid = os.posix_spawn(
        CLADE[0],
        [*CLADE, *arguments],
        {**os.environ, "CLADE_STORE": store},
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"{' '.join(arguments)} ended with {os.waitstatus_to_exitcode(status)}.")
    tell(name, time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def tell(name: str, seconds: float, cpu_seconds: float, peak_mb: float) -> None:
    print(f"| {name} | {seconds:,.3g} s | {cpu_seconds:,.3g} s | {peak_mb:,.0f} MB |", flush=True)


def queried(store: str) -> None:
    """Send each query some times and print the mean cost."""
    server = clade("", store, cache_mb=0).process
    with server:
        for name, query in QUERIES.items():
            checked_request(server.url, query)
            began, cpu = time.perf_counter(), server.cpu_seconds()
            for _ in range(TIMES):
                checked_request(server.url, query)
            seconds, cpu_seconds = time.perf_counter() - began, server.cpu_seconds() - cpu
            tell(name, seconds / TIMES, cpu_seconds / TIMES, server.peak_mb())


def moved(store: str, nodes: int) -> None:
    """Move the region of the second country to the first."""
    server = clade("", store, request_seconds=int(MOVE_SECONDS)).process
    server.environment = {**server.environment, "CLADE_WRITES": "on"}
    with server:
        began, cpu = time.perf_counter(), server.cpu_seconds()
        checked_request(server.url, MOVE)
        seconds, cpu_seconds = time.perf_counter() - began, server.cpu_seconds() - cpu
        tell(f"move of {nodes // COUNTRIES:,} nodes", seconds, cpu_seconds, server.peak_mb())


def checked_request(url: str, query: str) -> None:
    answer = ask(url, orjson.dumps({"query": query}), seconds=MOVE_SECONDS)
    if b'"errors"' in answer:
        sys.exit(f"{query} got {answer[:500].decode()}")


def main(nodes: int, store: str | None) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "places.jsonl"
        write(made(nodes), file)
        with file.open("rb") as lines:
            count = sum(1 for _ in lines)
        store = store or f"sqlite:///{directory}/clade.db"
        print(f"{count:,} nodes\n\n| step | time | processor time | peak |\n| --- | --- | --- | --- |", flush=True)
        timed("import", "import", "location", str(file), store=store)
        timed("the same again, when nothing changes", "import", "location", str(file), store=store)
        timed("check", "check", "location", store=store)
        queried(store)
        moved(store, count)
        timed("check", "check", "location", store=store)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NODES, sys.argv[2] if len(sys.argv) > 2 else None)
