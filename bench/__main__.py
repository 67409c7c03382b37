"""Benchmark of Clade and of alternatives: python -m bench --help."""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import peer_servers, places, processes, servers
from bench.growth import grow
from bench.measurement import ExpectedData, Results, Schedule, measure
from bench.peer_servers import PEERS, Peer
from bench.places import Place
from bench.processes import Silent
from bench.queries import MENU, PLACES, Query
from bench.report import Report, growth_markdown
from bench.servers import Server
from bench.start import first_answer_seconds
from bench.stores import Stores
from bench.tree import Tree, menu
from tests import engines
from tests.real_files import TAXONOMY, real_file

COUNTRY = "US"
CONNECTIONS = (1, 8, 32)

_began = time.monotonic()


@dataclass(frozen=True)
class Data:
    """A set of places, and whether the other servers are measured with it."""

    name: str
    title: str
    make: Callable[[], list[Place]]
    has_peers: bool


DEMO = Data("demo", "The demo data", places.demo, has_peers=False)
REAL = Data("real", "The countries, regions and cities of GeoNames", places.real, has_peers=True)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    schedule = Schedule(options.seconds, options.rounds, CONNECTIONS)
    wanted = [data for data in (DEMO, REAL) if options.only in (None, data.name)]
    if options.quick:
        schedule, wanted = Schedule(1.0, 2), [DEMO]
    with tempfile.TemporaryDirectory() as passing:
        directory = Path(options.data or passing).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        stores = Stores(directory, real_file(TAXONOMY))
        for data in wanted:
            report = compare(data, stores, schedule)
            report.write(directory / f"{data.name}.results.json")
            print(report.markdown(), end="\n\n", flush=True)
        if options.long:
            results = grow(Stores(directory), schedule, tell)
            Report("Growth", results).write(directory / "growth.results.json")
            print(growth_markdown(results), flush=True)


def compare(data: Data, stores: Stores, schedule: Schedule) -> Report:
    """Measure all servers that are available, with the same places."""
    tell(f"Making the stores of {data.name}")
    tree = data.make()
    expected = ExpectedData(Tree(tree), COUNTRY, menu(stores.taxonomy) if stores.taxonomy else None)
    queries = (*PLACES, *((MENU,) if stores.taxonomy else ()))
    store = stores.sqlite(data.name, lambda: tree)
    with ExitStack() as running:
        started = [*_on_sqlite(running, store, queries, stores.directory, expected)]
        started += _on_dynamodb(running, data, stores, tree, queries)
        if data.has_peers:
            started += _other_peers(running, stores.directory, stores.peer_lines(data.name, lambda: tree))
        results: Results = measure(started, queries, expected, schedule, tell)
        memory = {server.name: server.process.peak_mb() for server in started}
    tell("Measuring the start")
    return Report(f"{data.title}: {len(tree):,} nodes", results, memory, first_answer_seconds(store, tree[0]))


def _on_sqlite(
    running: ExitStack, store: str, queries: Sequence[Query], directory: Path, expected: ExpectedData
) -> Iterator[Server]:
    """Clade without and with its caches, stock Strawberry, and the static bytes of Clade's responses."""
    found = (
        servers.clade(servers.SQLITE, store, queries=queries),
        servers.clade(servers.NO_CACHE, store, queries=queries, cache_mb=0),
        servers.clade(servers.HITS, store, queries=queries, responses=True),
        servers.stock(store, queries),
    )
    for server in found:
        running.enter_context(server.process)
        yield server
    answers = directory / "answers"
    answers.mkdir(exist_ok=True)
    for query in queries:
        answer = processes.ask(found[0].process.url, expected.bodies(query)[0])
        (answers / query.name).write_bytes(answer)
    floor = servers.static(answers)
    running.enter_context(floor.process)
    yield floor


def _on_dynamodb(
    running: ExitStack, data: Data, stores: Stores, tree: Iterable[Place], queries: Sequence[Query]
) -> Iterator[Server]:
    """Clade, and the peers that are installed, on the same engine."""
    try:
        engine = running.enter_context(engines.find(stores.directory / f"{data.name}.engine.db"))
    except engines.NoEngine as missing:
        return tell(f"DynamoDB is left out: {missing}")
    table = engine.address("clade")
    with _once(stores.directory / f"{data.name}.filled") as is_first:
        if is_first:
            tell(f"Filling {engine.name}")
            stores.fill(table, stores.lines(data.name, lambda: tree))
    server = servers.clade(servers.DYNAMODB, table, queries=queries)
    running.enter_context(server.process)
    yield server
    peers = [peer for peer in _installed("DynamoDB") if data.has_peers]
    if not peers:
        return
    with _once(stores.directory / f"{data.name}.peers.filled") as is_first:
        if is_first:
            tell(f"Filling {engine.name} for other servers")
            peer_servers.fill_dynamodb(engine.url, stores.peer_lines(data.name, lambda: tree))
    for peer in peers:
        server = peer.on_dynamodb(engine.url)
        running.enter_context(server.process)
        yield server


def _other_peers(running: ExitStack, directory: Path, lines: Path) -> Iterator[Server]:
    """The peers in memory and PostGraphile, each if it is installed."""
    for peer in _installed("memory"):
        server = peer.in_memory(lines)
        running.enter_context(server.process)
        yield server
    try:
        server = running.enter_context(peer_servers.postgraphile(directory / "postgres", lines))
        running.enter_context(server.process)
    except Silent as failed:
        return tell(f"PostGraphile is left out: {failed}")
    yield server


def _installed(where: str) -> Iterator[Peer]:
    for peer in PEERS:
        if missing := peer.missing():
            tell(f"{peer.name}, {where}, is left out: {missing}")
        else:
            yield peer


@contextmanager
def _once(mark: Path) -> Iterator[bool]:
    """Yield whether this is the first time; a file marks the end of a successful block."""
    yield not mark.exists()
    mark.touch()


def tell(line: str) -> None:
    print(f"{time.monotonic() - _began:5.0f} s  {line}", flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the demo data alone, 8 connections; some two minutes")
    parser.add_argument("--only", choices=(DEMO.name, REAL.name), help="one of the two sets of data; by default both")
    parser.add_argument("--long", action="store_true", help="also stores of 10,000 to 1,000,000 generated nodes")
    parser.add_argument("--data", metavar="DIR", help="directory that keeps the stores; by default a temporary one")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of one run; default 3")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each server at 8 connections; default 5")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
