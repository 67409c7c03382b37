"""Benchmark of one hot tree: python -m bench.dynamodb.hot_tree --help.

Cached responses of one tree, whose proof is a strongly consistent read of the tree's version, from 1, 4 and 8 server
processes. DynamoDB serves 3,000 such reads of one item a second; the proxy rejects more than --limit. By default that
is a tenth, so that the limit and not the processor of a small machine is what shows.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import clients, places
from bench.dynamodb.checkouts import Checkout, add_options, checkouts, engine_and_proxy
from bench.dynamodb.proxy import Controlled, Policy
from bench.places import COUNTRY_NODES
from bench.queries import CHILDREN, body
from bench.report import number, table

LIMIT, DYNAMODB_LIMIT = 300.0, 3_000.0  # strongly consistent reads of one item, a second
PROCESSES, CONNECTIONS = (1, 4, 8), 64
HEAD = (
    "server", "processes", "limit", "requests/s", "failed/s", "reads of the item/s", "throttled calls/s", "p50 ms",
    "p99 ms", "CPU ms a request",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the table, and return it."""
    options = _options(arguments)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as directory, engine_and_proxy() as (engine, proxy):
        lines = Path(directory) / "places.jsonl"
        places.write(places.made(COUNTRY_NODES), lines)
        compared = checkouts(options)
        for checkout in compared:
            checkout.fill(engine.url, lines)
        for processes in options.processes:
            for checkout in compared:
                rows += measure(checkout, proxy, processes, options)
    share = options.limit / DYNAMODB_LIMIT
    written = f"The limit is {share:.0%} of DynamoDB's {DYNAMODB_LIMIT:,.0f} reads/s.\n\n{table(HEAD, rows)}"
    print(written)
    return written


def measure(checkout: Checkout, proxy: Controlled, processes: int, options: argparse.Namespace) -> Iterator[list[str]]:
    """A row without the limit, and one with it."""
    sent = [body(CHILDREN, next(places.made(1)), is_peer=False)]
    server = checkout.server(proxy.url, workers=processes, responses=True, settle_seconds=0.1)
    with server.process as process:
        for limit in (None, options.limit):
            proxy.set()
            _send(process.url, sent, options.connections, 1.0)  # each process caches the response
            proxy.set(Policy(reads=True, item_reads=limit))
            before = process.cpu_seconds()
            load = _send(process.url, sent, options.connections, options.seconds)
            used, counts = process.cpu_seconds() - before, proxy.take()
            right = load.requests - load.failed
            item_reads = counts.items[0][2] if counts.items else 0
            yield [
                checkout.name, str(processes), f"{limit:,.0f}" if limit else "none",
                *(number(count / load.seconds) for count in (right, load.failed, item_reads, counts.throttled)),
                number(load.p50), number(load.p99), number(used * 1000 / load.requests),
            ]  # fmt: skip


def _send(url: str, bodies: Sequence[bytes], connections: int, seconds: float) -> clients.Load:
    return clients.send(url, bodies, connections=connections, seconds=seconds, to_the_end=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.dynamodb.hot_tree", description=__doc__)
    add_options(parser)
    parser.add_argument("--limit", type=float, default=LIMIT, help="reads of one item a second; default 300")
    parser.add_argument("--processes", type=int, nargs="+", default=PROCESSES, help="processes; default 1 4 8")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="connections of clients; default 64")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
