"""Benchmark of reads beside clients that send mutations and leave: python -m bench.mutating_clients --help.

Each of 60 clients connects, sends a creation, closes the connection without reading, and begins again. Meanwhile
another client reads, each time over a new connection: children that it has not read before, and a response that is
cached. The store is an SQLite file. All share the processors of this machine.
"""

import argparse
import asyncio
import os
import tempfile
import time
import urllib.error
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import orjson

from bench import places
from bench.checkouts import Checkout, add_options, checkouts
from bench.processes import Process, ask
from bench.report import number, table
from bench.writes import CREATE, OTHER

CLIENTS, TRIES, BEFORE_SECONDS = 60, 10, 3.0
CHILDREN = '{{ region(path: "L0000/L0000-{:02d}") {{ children {{ nodes {{ name path }} }} }} }}'
HIT = '{ country(path: "L0000") { children { nodes { name path } } } }'
HEAD = (
    "read",
    "server",
    "median ms",
    "longest ms",
    "rejected",
    "CPU of the server",
    "creations",
    "load of the machine",
)


@contextmanager
def leaving_clients(url: str, clients: int) -> Iterator[None]:
    """Clients that send mutations and leave, in a process of their own, until the block ends."""
    process = get_context("fork").Process(target=_leave, args=(url, clients), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _leave(url: str, clients: int) -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*[_send_and_leave(url, one) for one in range(clients)])

    asyncio.run(all_of_them())


async def _send_and_leave(url: str, client: int) -> None:
    address, sent = urlsplit(url), 0
    head = f"POST {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
    while True:
        sent += 1
        body = orjson.dumps({"query": CREATE, "variables": {"key": f"n{client}-{sent}"}})
        with suppress(OSError):
            _, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            writer.close()
            await writer.wait_closed()


def measured(server: Process, name: str, clients: int) -> Iterator[list[str]]:
    """A row for each kind of read: the milliseconds until its response, of those that were not rejected."""
    ask(server.url, orjson.dumps({"query": HIT}))
    with leaving_clients(server.url, clients):
        time.sleep(BEFORE_SECONDS)
        for what, queries in {"children": [CHILDREN.format(n) for n in range(TRIES)], "hit": [HIT] * TRIES}.items():
            took, cpu, began = [], server.cpu_seconds(), time.perf_counter()
            before = _creations(server.url)
            for query in queries:
                start = time.perf_counter()
                with suppress(urllib.error.HTTPError):
                    ask(server.url, orjson.dumps({"query": query}))
                    took.append(1000 * (time.perf_counter() - start))
            seconds = time.perf_counter() - began
            share = f"{100 * (server.cpu_seconds() - cpu) / seconds:.0f} %"
            times = [number(median(took)), number(max(took))] if took else ["–", "–"]
            created = number((_creations(server.url) - before) / seconds) + "/s"
            yield [what, name, *times, str(TRIES - len(took)), share, created, f"{os.getloadavg()[0]:.1f}"]


def _creations(url: str) -> int:
    while True:
        with suppress(urllib.error.HTTPError):
            query = b'{"query": "{ country(path: \\"OTHER\\") { childCount } }"}'
            return int(orjson.loads(ask(url, query))["data"]["country"]["childCount"])


def compare(one: Checkout, store: str, lines: Path, options: argparse.Namespace) -> Iterator[list[str]]:
    one.fill(store, lines)
    with one.server(store, way="hits", writes="on").process as process:
        yield from measured(process, one.name, options.clients)


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the table, and return it."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as name:
        lines = Path(name) / "places.jsonl"
        places.write([*places.made(1), OTHER], lines)
        rows = [row for one in checkouts(options) for row in compare(one, one.file(Path(name)), lines, options)]
    print(shown := table(HEAD, rows))
    return shown


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.mutating_clients", description=__doc__)
    add_options(parser)
    parser.add_argument("--clients", type=int, default=CLIENTS, help="clients that send mutations; default 60")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
