"""Benchmark of writes in many trees: python -m bench.dynamodb.many_trees --help.

Cities are created in regions of 1,000 trees, first without a limit, then with one for each partition of the table and
its indexes. DynamoDB takes 1,000 write units a second for each; the proxy rejects more than --limit, by default a
tenth, so that the limit and not the processor of a small machine is what shows. The proxy computes the units from the
items: two units a KB of a transaction for the table, one for each changed entry of an index.
"""

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from bench import clients, places
from bench.dynamodb.checkouts import Checkout, add_options, checkouts, engine_and_proxy
from bench.dynamodb.proxy import Controlled, Counts, Policy
from bench.places import Place
from bench.report import number, table

LIMIT, DYNAMODB_LIMIT = 100.0, 1_000.0  # write units of one partition, a second
TREES, CONNECTIONS = 1_000, 64
CREATE = """mutation Create($parent: Path!, $key: String!) {
  createLocation(
    input: {parent: {path: $parent}, key: $key, name: "A city", attributes: {city: {}}}
  ) { node { path } userErrors { message } } }"""
HEAD = (
    "server", "limit", "transactions/s", "nodes/s", "failed/s", "throttled calls/s", "p50 ms", "p99 ms",
    "CPU ms a node",
)  # fmt: skip
PARTITIONS_HEAD = ("server", "limit", "table or index", "partition", "units/s", "units a transaction", "rejected/s")


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the tables, and return them."""
    options = _options(arguments)
    rows: list[list[str]] = []
    busiest: list[list[str]] = []
    with tempfile.TemporaryDirectory() as directory, engine_and_proxy() as (_, proxy):
        lines = Path(directory) / "places.jsonl"
        places.write(made(options.trees), lines)
        for checkout in checkouts(options):
            proxy.set(Policy(writes=True))
            checkout.fill(proxy.url, lines)  # by the proxy, so that it knows the entries of the indexes
            measure(checkout, proxy, options, rows, busiest)
    share = options.limit / DYNAMODB_LIMIT
    written = f"The limit is {share:.0%} of DynamoDB's {DYNAMODB_LIMIT:,.0f} units/s.\n\n{table(HEAD, rows)}\n\n"
    written += table(PARTITIONS_HEAD, busiest)
    print(written)
    return written


def made(trees: int) -> Iterator[Place]:
    """Trees of a country and a region."""
    for tree in range(trees):
        country = f"T{tree:04d}"
        for path, level in (((country,), "COUNTRY"), ((country, f"{country}-R"), "REGION")):
            yield Place(path, level, f"Place {tree}", path[-1], tree, path[-1], 1.5, 1.5)


def measure(
    checkout: Checkout,
    proxy: Controlled,
    options: argparse.Namespace,
    rows: list[list[str]],
    busiest: list[list[str]],
) -> None:
    """Add a row without the limit and one with it, and the busiest partitions of both."""
    server = checkout.server(proxy.url, workers=options.processes, writes="on", settle_seconds=0.1)
    with server.process as process:
        for turn, limit in enumerate((None, options.limit)):
            proxy.set(Policy(writes=True, partition_writes=limit))
            before = process.cpu_seconds()
            requests = bodies(options.trees, turn)
            load = clients.send_each(process.url, requests, connections=options.connections, seconds=options.seconds)
            used, counts = process.cpu_seconds() - before, proxy.take()
            made_nodes = load.requests - load.failed
            transactions = counts.calls.get("TransactWriteItems", 0) - counts.throttled
            name = [checkout.name, f"{limit:,.0f}" if limit else "none"]
            figures = (transactions, made_nodes, load.failed, counts.throttled)
            rows.append([
                *name, *(number(count / load.seconds) for count in figures), number(load.p50), number(load.p99),
                number(used * 1000 / load.requests),
            ])  # fmt: skip
            busiest += [[*name, *row] for row in partitions(counts, transactions, load.seconds)]


def partitions(counts: Counts, transactions: int, seconds: float) -> Iterator[list[str]]:
    rejected = {(index, partition): calls for index, partition, calls in counts.full}
    for index, partition, units in counts.partitions:
        calls = rejected.get((index, partition), 0)
        figures = (units / seconds, units / max(1, transactions), calls / seconds)
        yield [index, partition, *map(number, figures)]


def bodies(trees: int, turn: int) -> Iterator[bytes]:
    """Creations of cities, each in the region of a random tree."""
    chosen, count = random.Random(turn), 0
    while True:
        country, count = f"T{chosen.randrange(trees):04d}", count + 1
        variables = {"parent": f"{country}/{country}-R", "key": f"{turn}-{count}"}
        yield orjson.dumps({"query": CREATE, "variables": variables})


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.dynamodb.many_trees", description=__doc__)
    add_options(parser)
    parser.add_argument("--limit", type=float, default=LIMIT, help="write units of one partition a second; default 100")
    parser.add_argument("--trees", type=int, default=TREES, help="trees; default 1000")
    parser.add_argument("--processes", type=int, default=1, help="server processes; default 1")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="connections of clients; default 64")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
