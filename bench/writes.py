"""Benchmark of writes by `clade serve`, single nodes and large moves: python -m bench.writes --help.

On a new SQLite file with durable commits, and on a local DynamoDB where dynoxide is installed. Processor time is that
of the server, without the engine's. Elapsed times of large moves include their waits for running requests.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from bench import clients, places, processes
from bench.checkouts import Checkout, add_options, checkouts
from bench.places import Place
from bench.processes import Process, Silent, ask
from bench.report import number, python_build, table

NODES, SINGLE, CLIENTS = 10_000, 1_000, 32
POLL_SECONDS, MOVE_SECONDS = 0.05, 3600.0
REQUEST_SECONDS = 5  # and some more is what large moves wait for running requests
OTHER = Place(("OTHER",), "COUNTRY", "Other", "OTHER")
CREATE = """mutation($key: String!) {
  createLocation(input: {parent: {path: "OTHER"}, key: $key, name: "A city", attributes: {city: {}}}) { node {
    path } } }"""
UPDATE = (
    "mutation($path: Path!, $key: String!) { updateLocation(input: {node: {path: $path}, name: "
    "$key}) { node { path } } }"
)
LARGE = {
    "renamed": 'mutation { moveLocation(input: {node: {path: "L0000/L0000-00"}, key: "renamed"}) { move { id } } }',
    "moved to another tree": 'mutation { moveLocation(input: {node: {path: "L0000/renamed"}, to: '
    '{parent: {path: "OTHER"}}}) { move { id } } }',
    "deleted": 'mutation { deleteLocation(input: {node: {path: "OTHER/renamed"}, policy: CASCADE}) { move { id } } }',
}
MOVES = "{ moves(hierarchy: LOCATION, first: 1) { state nodes } }"
HEAD = ("store", "server", "nodes", "seconds", "nodes a second", "CPU ms a node")


def written(server: Process, mutation: str) -> tuple[float, int]:
    """Send a mutation; the seconds until it has ended, also in the background, and the nodes of a large move."""
    began = time.perf_counter()
    response = _asked(server, mutation)
    if "errors" in response and response["errors"][0]["extensions"]["code"] != "TIMEOUT":
        sys.exit(str(response["errors"]))
    while time.perf_counter() - began < MOVE_SECONDS:
        moves = _asked(server, MOVES)["data"]["moves"]
        if all(move["state"] in ("DONE", "UNDONE") for move in moves):
            return time.perf_counter() - began, sum(move["nodes"] for move in moves)
        time.sleep(POLL_SECONDS)
    sys.exit(f"The write has not ended after {MOVE_SECONDS:.0f} s.")


def _asked(server: Process, query: str) -> Any:
    return orjson.loads(ask(server.url, orjson.dumps({"query": query})))


def measured(server: Process, nodes: int, single: int) -> Iterator[list[str]]:
    """What was done to how many nodes, seconds, nodes a second, and milliseconds of CPU for each."""
    for what, mutation, first, connections in (
        ("created, one after another", CREATE, 0, 1),
        ("updated, one after another", UPDATE, 0, 1),
        (f"created by {CLIENTS} clients at once", CREATE, single, CLIENTS),
    ):
        keys = [f"n{number}" for number in range(first, first + single)]
        bodies = [orjson.dumps({"query": mutation, "variables": {"path": f"OTHER/{key}", "key": key}}) for key in keys]
        cpu = server.cpu_seconds()
        load = clients.send_each(server.url, bodies, connections=connections)
        if load.failed:
            sys.exit(f"{load.failed} of {load.requests} mutations failed.")
        yield _row(what, single, load.seconds, server.cpu_seconds() - cpu)
    for what, mutation in LARGE.items():
        cpu = server.cpu_seconds()
        seconds, _ = written(server, mutation)
        yield _row(what, nodes, seconds, server.cpu_seconds() - cpu)


def _row(what: str, nodes: int, seconds: float, cpu: float) -> list[str]:
    return [f"{nodes:,} {what}", number(seconds), number(nodes / seconds), number(1000 * cpu / nodes)]


def compare(one: Checkout, store: str, lines: Path, options: argparse.Namespace) -> Iterator[list[str]]:
    one.fill(store, lines)
    server = one.server(store, writes="on", settle_seconds=0.1, request_seconds=REQUEST_SECONDS)
    with server.process as process:
        for row in measured(process, options.nodes, options.single):
            yield [store.partition(":")[0], one.name, *row]


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the table, and return it."""
    options = _options(arguments)
    print(python_build(), flush=True)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder, lines = Path(name), Path(name) / "places.jsonl"
        places.write([*places.made(1, regions=1, cities=options.nodes), OTHER], lines)
        for one in checkouts(options):
            rows += compare(one, one.file(folder), lines, options)
        try:
            with processes.engine(folder / "engine.db") as engine:
                for one in checkouts(options):
                    rows += compare(one, one.table(engine.url), lines, options)
        except Silent as missing:
            print(f"DynamoDB is left out: {missing}")
    print(shown := table(HEAD, rows))
    return shown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.writes", description=__doc__)
    add_options(parser)
    parser.add_argument("--nodes", type=int, default=NODES, help="nodes of the large writes; default 10000")
    parser.add_argument("--single", type=int, default=SINGLE, help="nodes that are written alone; default 1000")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
