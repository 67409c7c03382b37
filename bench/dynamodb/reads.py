"""Benchmark of reads from DynamoDB, cold and warm: python -m bench.dynamodb.reads --help.

Cold: each request asks a fresh server for a tree that it has not read. Warm: the same trees are asked for again, with
the response cache off. All servers use one engine behind one proxy, whose delay stands for DynamoDB's latency. Calls,
units, rounds and times are measured with one connection and the delay, processor time with eight and without it.
Servers take turns, in another order each time: a ratio is the median of those of all rounds.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import clients, peer_servers, places
from bench.checkouts import Checkout, add_options, checkouts
from bench.clients import Load
from bench.dynamodb.proxy import Controlled, engine_and_proxy
from bench.measurement import ExpectedData
from bench.peer_servers import PEERS
from bench.places import COUNTRY_NODES, Place
from bench.queries import BREADCRUMB, PLACES, Query, body
from bench.report import number, python_build, table
from bench.servers import Server
from bench.tree import Tree

CONNECTIONS = 8  # at which processor time is measured
WARM_TREES = 4
WARMINGS = 3  # requests for each place before the measurement
SETTLE_SECONDS = 0.1
HEAD = ("server", "calls", "read units", "rounds", "p50 ms", "p99 ms", "CPU ms", "CPU against the first")

Send = Callable[..., Load]


class Cost(NamedTuple):
    """The cost of a request: calls to the engine, read units, rounds of calls, milliseconds and processor time."""

    calls: float
    units: float
    rounds: float
    p50: float
    p99: float
    cpu: float


@dataclass(frozen=True)
class Measured:
    """A server that is measured: a checkout of Clade, which is started for each cold run, or a peer that runs."""

    name: str
    checkout: Checkout | None = None
    peer: Server | None = None


@dataclass(frozen=True)
class Bench:
    """What all runs share."""

    proxy: Controlled
    expected: ExpectedData
    countries: Sequence[Place]
    """The first one only warms servers up."""
    delay_ms: float
    seconds: float

    def run(self, one: Measured, query: Query) -> tuple[Cost, Cost]:
        """The costs of a cold and of a warm request."""
        with ExitStack() as running:
            server = self.started(one, running)
            bodies = [body(query, _place(query, country), is_peer=server.is_peer) for country in self.countries]
            self._warm(server, bodies[:1])
            half = len(bodies) // 2 + 1
            cold = self._cost(server, clients.send_each, bodies[1:half], bodies[half:])
            again = bodies[:WARM_TREES]
            self._warm(server, again)
            time.sleep(2 * SETTLE_SECONDS)
            self._warm(server, again)
            warm = self._cost(server, partial(clients.send, seconds=self.seconds, to_the_end=True), again, again)
        return cold, warm

    def started(self, one: Measured, running: ExitStack) -> Server:
        """The server, which ends with the stack if it was started for it."""
        if one.peer:
            return one.peer
        assert one.checkout
        server = one.checkout.server(one.checkout.table(self.proxy.url), settle_seconds=SETTLE_SECONDS)
        running.enter_context(server.process)
        return server

    def check(self, one: Measured) -> None:
        """Raise WrongResponse unless the server returns the data."""
        with ExitStack() as running:
            server = self.started(one, running)
            for query in PLACES:
                self.expected.check(self.expected.workload(server, query))

    def _warm(self, server: Server, bodies: Sequence[bytes]) -> None:
        clients.send_each(server.process.url, list(bodies) * WARMINGS, connections=1)

    def _cost(self, server: Server, send: Send, timed: Sequence[bytes], loaded: Sequence[bytes]) -> Cost:
        self.proxy.delay(self.delay_ms)
        load = send(server.process.url, timed, connections=1)
        counts = self.proxy.take()
        self.proxy.delay(0)
        before = server.process.cpu_seconds()
        busy = send(server.process.url, loaded, connections=CONNECTIONS)
        cpu = (server.process.cpu_seconds() - before) * 1000 / busy.requests
        if load.failed or busy.failed:
            raise SystemExit(f"{server.name}: {load.failed + busy.failed} requests failed.")
        calls, units, rounds = (
            count / load.requests for count in (sum(counts.calls.values()), counts.units, counts.rounds)
        )
        return Cost(calls, units, rounds, load.p50, load.p99, cpu)


def _place(query: Query, country: Place) -> Place:
    """The place that a query is sent for: a generated country, or for a breadcrumb one of its cities."""
    if query is not BREADCRUMB:
        return country
    (key,) = country.path
    return replace(country, path=(key, f"{key}-00", f"{key}-00-00"))


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the tables, and return them."""
    options = _options(arguments)
    print(python_build(), flush=True)
    with tempfile.TemporaryDirectory() as directory, engine_and_proxy() as proxy, ExitStack() as running:
        tree = places.in_order(places.made(options.trees * COUNTRY_NODES))
        lines, peer_lines = Path(directory) / "places.jsonl", Path(directory) / "peers.jsonl"
        places.write(tree, lines)
        measured = []
        for checkout in checkouts(options):
            checkout.fill(checkout.table(proxy.engine_url), lines)
            measured.append(Measured(checkout.name, checkout))
        if options.peers:
            places.write_for_peers(tree, peer_lines)
            measured += _peers(running, proxy, peer_lines)
        countries = [place for place in tree if place.level == "COUNTRY"]
        expected = ExpectedData(Tree(tree), countries[0].path[0])
        bench = Bench(proxy, expected, countries, options.delay_ms, options.seconds)
        for one in measured:
            bench.check(one)
        queries = [query for query in PLACES if query.name in options.queries]
        written = "\n\n".join(_tables(bench, measured, query, options.rounds) for query in queries)
    print(written)
    return written


def _peers(running: ExitStack, proxy: Controlled, lines: Path) -> Iterator[Measured]:
    found = [(peer, peer.missing()) for peer in PEERS]
    if all(missing for _, missing in found):
        return print(f"Peers are left out: {found[0][1]}")
    peer_servers.fill_dynamodb(proxy.engine_url, lines)
    for peer, missing in found:
        if missing:
            print(f"{peer.name} is left out: {missing}")
            continue
        server = peer.on_dynamodb(proxy.url)
        running.enter_context(server.process)
        yield Measured(server.name, peer=server)


def _tables(bench: Bench, measured: Sequence[Measured], query: Query, rounds: int) -> str:
    """A table of cold and one of warm requests, with the medians of the rounds."""
    runs: list[dict[str, tuple[Cost, Cost]]] = []
    for turn in range(rounds):
        order = measured if turn % 2 == 0 else [*reversed(measured)]
        runs.append({one.name: bench.run(one, query) for one in order})
    parts = []
    for state, which in (("cold", 0), ("warm", 1)):
        rows = []
        for one in measured:
            costs = [run[one.name][which] for run in runs]
            ratio = median(run[one.name][which].cpu / run[measured[0].name][which].cpu for run in runs)
            rows.append([one.name, *(number(median(some)) for some in zip(*costs, strict=True)), f"{ratio:.3f} ×"])
        title = f"**{query.name}, {query.what}, {state}, {bench.delay_ms:g} ms a call**"
        parts.append(f"{title}\n\n{table(HEAD, rows)}")
    return "\n\n".join(parts)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.dynamodb.reads", description=__doc__)
    add_options(parser, seconds=3.0)
    parser.add_argument("--peers", action="store_true", help="also the servers of bench/peers that are installed")
    names = [query.name for query in PLACES]
    parser.add_argument("--queries", nargs="+", choices=names, default=names, help="queries; by default all")
    parser.add_argument("--trees", type=int, default=60, help="trees of 1,021 nodes; default 60")
    parser.add_argument("--delay-ms", type=float, default=4.0, help="delay of the engine's responses; default 4 ms")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each server; default 3, figures are medians")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
