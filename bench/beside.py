"""What a large question does to small ones at the same server: python -m bench.beside.

Eight connections ask for breadcrumbs, first alone, then beside one that asks for a list of 9,000 nodes again and again.
Both come from SQLite, by a server that reads everything each time and by one that keeps what it has read.
"""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson

from bench import clients
from bench.million import made
from bench.places import write
from bench.processes import CLADE, Process, run
from bench.servers import clade

NODES = 100_000
SMALL = [f'{{ city(path: "C0/R0/{n:03d}/000") {{ name ancestors {{ name }} }} }}' for n in range(100)]
LARGE = '{ country(path: "C%d") { descendants(first: 9000) { nodes { name path } } } }'
CONNECTIONS = 8
SECONDS = 6.0


def asked(server: Process, *, connections: int, questions: list[str]) -> clients.Load:
    bodies = [orjson.dumps({"query": question}) for question in questions]
    load = clients.send(server.url, bodies, connections=connections, seconds=SECONDS, to_the_end=True)
    if load.failed:
        sys.exit(f"{load.failed} of {load.requests} requests failed.")
    return load


def tell(name: str, load: clients.Load) -> None:
    print(f"| {name} | {load.requests / load.seconds:,.0f} | {load.p50:,.1f} ms | {load.p99:,.1f} ms |", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor() as threads:
        lines, store = Path(directory) / "places.jsonl", f"sqlite:///{directory}/clade.db"
        write(made(NODES), lines)
        run(*CLADE, "import", "location", str(lines), environment={"CLADE_STORE": store})
        print("| question | requests/s | p50 | p99 |\n| --- | --- | --- | --- |")
        for name, keep_mb in (("keeping nothing", 0), ("keeping", 64)):
            with clade("", store, keep_mb=keep_mb).process as server:
                tell(f"small alone, {name}", asked(server, connections=CONNECTIONS, questions=SMALL))
                large = threads.submit(asked, server, connections=1, questions=[LARGE % 1, LARGE % 2])
                tell(f"small beside a large one, {name}", asked(server, connections=CONNECTIONS, questions=SMALL))
                tell(f"the large one, {name}", large.result())


if __name__ == "__main__":
    main()
