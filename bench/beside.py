"""Benchmark of small requests during large ones on one server: python -m bench.beside.

Eight connections query breadcrumbs: first alone, then beside one connection that queries a list of 9,000 nodes again
and again, with a server without caches and with one that caches pages; then while a subtree of 40,000 nodes is moved,
and while it is deleted. The store is an SQLite file of 400,000 nodes.
"""

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import orjson

from bench import clients
from bench.million import made
from bench.places import write
from bench.processes import CLADE, Process, run
from bench.servers import clade

NODES = 400_000
SMALL = [f'{{ city(path: "C0/R0/{n:03d}/000") {{ name ancestors {{ name }} }} }}' for n in range(100)]
LARGE = '{ country(path: "C%d") { descendants(first: 9000) { nodes { name path } } } }'
WRITES = {
    "a move": 'mutation { moveLocation(input: {node: {path: "C1/R1"}, to: {parent: {path: "C2"}}}) { move { id } } }',
    "a deletion": 'mutation { deleteLocation(input: {node: {path: "C2/R1"}, policy: CASCADE}) { move { id } } }',
}
MOVES = "{ moves(hierarchy: LOCATION, first: 1) { state nodes } }"
CONNECTIONS = 8
SECONDS = 6.0
WRITE_SECONDS = 120.0


def load_of(server: Process, *, connections: int, queries: list[str]) -> clients.Load:
    bodies = [orjson.dumps({"query": query}) for query in queries]
    load = clients.send(server.url, bodies, connections=connections, seconds=SECONDS, to_the_end=True)
    if load.failed:
        sys.exit(f"{load.failed} of {load.requests} requests failed.")
    return load


def written(server: Process, mutation: str) -> tuple[float, int]:
    """Move or delete a subtree; the seconds until that has ended, and the number of its nodes."""
    began = time.perf_counter()
    response = httpx.post(server.url, json={"query": mutation}, timeout=WRITE_SECONDS).json()
    if "errors" in response and response["errors"][0]["extensions"]["code"] != "TIMEOUT":
        sys.exit(str(response["errors"]))
    while time.perf_counter() - began < WRITE_SECONDS:
        (move,) = httpx.post(server.url, json={"query": MOVES}, timeout=WRITE_SECONDS).json()["data"]["moves"]
        if move["state"] in ("DONE", "UNDONE"):
            return time.perf_counter() - began, move["nodes"]
        time.sleep(0.2)
    sys.exit(f"The write has not ended after {WRITE_SECONDS:.0f} s.")


def beside_writes(server: Process, threads: ThreadPoolExecutor) -> None:
    """Small requests in windows of some seconds until each write has ended; the worst window counts."""
    for name, mutation in WRITES.items():
        write, windows = threads.submit(written, server, mutation), []
        while not write.done():
            windows.append(load_of(server, connections=CONNECTIONS, queries=SMALL))
        seconds, nodes = write.result()
        tell(f"small beside {name} of {nodes:,} nodes, {seconds:.1f} s", max(windows, key=lambda load: load.p99))


def tell(name: str, load: clients.Load) -> None:
    print(f"| {name} | {load.requests / load.seconds:,.0f} | {load.p50:,.1f} ms | {load.p99:,.1f} ms |", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor() as threads:
        lines, store = Path(directory) / "places.jsonl", f"sqlite:///{directory}/clade.db"
        write(made(NODES), lines)
        run(*CLADE, "import", "location", str(lines), environment={"CLADE_STORE": store})
        print("| query | requests/s | p50 | p99 |\n| --- | --- | --- | --- |")
        for name, cache_mb in (("without caches", 0), ("with caches", 128)):
            with clade("", store, cache_mb=cache_mb).process as server:
                tell(f"small alone, {name}", load_of(server, connections=CONNECTIONS, queries=SMALL))
                large = threads.submit(load_of, server, connections=1, queries=[LARGE % 1, LARGE % 2])
                tell(f"small beside a large one, {name}", load_of(server, connections=CONNECTIONS, queries=SMALL))
                tell(f"the large one, {name}", large.result())
        with clade("", store, writes="on").process as server:
            beside_writes(server, threads)


if __name__ == "__main__":
    main()
