"""Benchmark of small requests during large ones on one server: python -m bench.beside --help.

Eight connections query breadcrumbs: first alone, then beside one connection that queries a list of 9,000 nodes again
and again, with a server without caches and with one that caches pages; then while a subtree of a tenth of the nodes is
moved, and while it is deleted. The store is an SQLite file of 400,000 nodes.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson

from bench import clients, places, servers
from bench.processes import Process
from bench.report import number, python_build, table
from bench.writes import written

NODES, TREES, SECONDS, CONNECTIONS = 400_000, 10, 6.0, 8
SMALL = [f'{{ city(path: "L0000/L0000-00/L0000-00-{n:02d}") {{ name ancestors {{ name }} }} }}' for n in range(100)]
LARGE = [f'{{ country(path: "L000{n}") {{ descendants(first: 9000) {{ nodes {{ name path }} }} }} }}' for n in (1, 2)]
WRITES = {
    "a move": 'mutation { moveLocation(input: {node: {path: "L0001/L0001-00"}, to: {parent: {path: '
    '"L0002"}}}) { move { id } } }',
    "a deletion": 'mutation { deleteLocation(input: {node: {path: "L0002/L0002-00"}, policy: '
    "CASCADE}) { move { id } } }",
}


def load_of(server: Process, queries: Sequence[str], connections: int, seconds: float) -> clients.Load:
    bodies = [orjson.dumps({"query": query}) for query in queries]
    load = clients.send(server.url, bodies, connections=connections, seconds=seconds, to_the_end=True)
    if load.failed:
        sys.exit(f"{load.failed} of {load.requests} requests failed.")
    return load


def measured(store: str, seconds: float) -> Iterator[list[str]]:
    with ThreadPoolExecutor() as threads:
        for name, cache_mb in (("without caches", 0), ("with caches", 128)):
            with servers.clade("", store, cache_mb=cache_mb).process as server:
                yield _row(f"small alone, {name}", load_of(server, SMALL, CONNECTIONS, seconds))
                large = threads.submit(load_of, server, LARGE, 1, seconds)
                yield _row(f"small beside a large one, {name}", load_of(server, SMALL, CONNECTIONS, seconds))
                yield _row(f"the large one, {name}", large.result())
        with servers.clade("", store, writes="on").process as server:
            for name, mutation in WRITES.items():
                # Small requests in windows of some seconds until the write has ended; the worst window counts.
                write, windows = threads.submit(written, server, mutation), list[clients.Load]()
                while not windows or not write.done():
                    windows.append(load_of(server, SMALL, CONNECTIONS, seconds))
                took, nodes = write.result()
                title = f"small beside {name}, {took:.1f} s, {nodes:,} nodes by the journal"
                yield _row(title, max(windows, key=lambda load: load.p99))


def _row(name: str, load: clients.Load) -> list[str]:
    return [name, number(load.requests / load.seconds), f"{load.p50:,.1f} ms", f"{load.p99:,.1f} ms"]


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the table, and return it."""
    options = _options(arguments)
    print(python_build(), flush=True)
    with tempfile.TemporaryDirectory() as name:
        lines, store = Path(name) / "places.jsonl", f"sqlite:///{name}/clade.db"
        places.write(places.made(options.nodes, regions=1, cities=options.nodes // TREES - 2), lines)
        servers.fill(store, location=lines)
        print(shown := table(("query", "requests/s", "p50", "p99"), measured(store, options.seconds)))
    return shown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, help="nodes in ten trees; default 400000")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="seconds of one run; default 6")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
