"""Benchmark of Clade and of alternatives: python -m bench --help."""

import argparse
import gzip
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import peer_servers, places, processes, servers
from bench.measurement import ExpectedData, Schedule, measure
from bench.peer_servers import PEERS, Peer
from bench.places import Place
from bench.processes import CHECKOUT, Silent
from bench.queries import MENU, PLACES
from bench.report import Report
from bench.servers import Server
from bench.tree import Tree, menu

COUNTRY = "US"
CONNECTIONS = (1, 8, 32)
QUERIES = (*PLACES, MENU)
TAXONOMY = CHECKOUT / "tests" / "data" / "google-product-taxonomy.txt.gz"

_began = time.monotonic()


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    schedule = Schedule(options.seconds, options.rounds, CONNECTIONS)
    if options.quick:
        schedule, options.inhabitants = Schedule(1.0, 2), places.POPULATIONS[-1]
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(options.data or passing).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        tree = places.real(options.inhabitants)
        title = f"Countries, regions and cities of at least {options.inhabitants:,} inhabitants, of GeoNames"
        print(compare(title, tree, COUNTRY, folder, schedule), flush=True)


def compare(title: str, tree: list[Place], country: str, folder: Path, schedule: Schedule) -> str:
    """Measure all servers that are available, with the same places; the report in Markdown."""
    taxonomy = gzip.decompress(TAXONOMY.read_bytes()).decode()
    (folder / "taxonomy.txt").write_text(taxonomy, "utf-8")
    places.write(tree, folder / "places.jsonl")
    places.write_for_peers(tree, folder / "peers.jsonl")
    expected = ExpectedData(Tree(tree), country, menu(taxonomy))
    with ExitStack() as running:
        started = [*_on_sqlite(running, folder, expected), *_on_dynamodb(running, folder), *_others(running, folder)]
        results = measure(started, QUERIES, expected, schedule, tell)
        return Report(f"{title}: {len(tree):,} nodes", results, started).markdown()


def _on_sqlite(running: ExitStack, folder: Path, expected: ExpectedData) -> Iterator[Server]:
    """Clade without and with its caches, and the static bytes of Clade's responses."""
    store = f"sqlite:///{folder}/clade.db"
    _fill_once(store, folder, "sqlite")
    found = (
        servers.clade(servers.SQLITE, store, queries=QUERIES),
        servers.clade(servers.NO_CACHE, store, queries=QUERIES, cache_mb=0),
        servers.clade(servers.HITS, store, queries=QUERIES, responses=True),
    )
    yield from (_started(running, server) for server in found)
    answers = folder / "answers"
    answers.mkdir(exist_ok=True)
    for query in QUERIES:
        (answers / query.name).write_bytes(processes.ask(found[0].process.url, expected.bodies(query)[0]))
    yield _started(running, servers.static(answers))


def _on_dynamodb(running: ExitStack, folder: Path) -> Iterator[Server]:
    """Clade, and the peers that are installed, on the same engine."""
    try:
        engine = running.enter_context(processes.engine(folder / "engine.db"))
    except Silent as missing:
        return tell(f"DynamoDB is left out: {missing}")
    store = servers.table("clade", engine.url)
    _fill_once(store, folder, "dynamodb")
    yield _started(running, servers.clade(servers.DYNAMODB, store, queries=QUERIES))
    if peers := [*_installed("DynamoDB")]:
        with _once(folder / "peers.filled") as is_first:
            if is_first:
                tell("Filling the engine for other servers")
                peer_servers.fill_dynamodb(engine.url, folder / "peers.jsonl")
    yield from (_started(running, peer.on_dynamodb(engine.url)) for peer in peers)


def _others(running: ExitStack, folder: Path) -> Iterator[Server]:
    """The peers in memory and PostGraphile, each if it is installed."""
    lines = folder / "peers.jsonl"
    yield from (_started(running, peer.in_memory(lines)) for peer in _installed("memory"))
    try:
        yield _started(running, running.enter_context(peer_servers.postgraphile(folder / "postgres", lines)))
    except Silent as missing:
        tell(f"PostGraphile is left out: {missing}")


def _started(running: ExitStack, server: Server) -> Server:
    running.enter_context(server.process)
    return server


def _installed(where: str) -> Iterator[Peer]:
    for peer in PEERS:
        if missing := peer.missing():
            tell(f"{peer.name}, {where}, is left out: {missing}")
        else:
            yield peer


def _fill_once(store: str, folder: Path, name: str) -> None:
    with _once(folder / f"{name}.filled") as is_first:
        if is_first:
            tell(f"Filling {name}")
            servers.fill(store, location=folder / "places.jsonl", category=folder / "taxonomy.txt")


@contextmanager
def _once(mark: Path) -> Iterator[bool]:
    """Yield whether this is the first time; a file marks the end of a successful block."""
    yield not mark.exists()
    mark.touch()


def tell(line: str) -> None:
    print(f"{time.monotonic() - _began:5.0f} s  {line}", flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="large cities alone, 8 connections; some two minutes")
    parser.add_argument(
        "--inhabitants", type=int, choices=places.POPULATIONS, default=places.POPULATIONS[0],
        help="the least of a city; default 500",
    )  # fmt: skip
    parser.add_argument("--data", metavar="DIR", help="directory that keeps the stores; by default a temporary one")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of one run; default 3")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each server at 8 connections; default 5")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
