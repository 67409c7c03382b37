"""Benchmark of checkouts of Clade in turn: python -m bench.checkouts --checkout ../before --checkout .

Processor time of the server for the queries of `bench/queries.py`, or for any other, on SQLite with a generated tree:
warm, which is with nodes and pages cached but no responses; without caches; and as hits of the response cache. Each
checkout imports and serves by its own code. With `--gzip` each is measured once more, by clients that accept gzip. They
run in turn, in another order each time, so that other load affects all alike: figures are medians, and a ratio is the
median of the ratios of all rounds.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import places, servers
from bench.measurement import ExpectedData, Schedule, cpu, measure, middle, ratio
from bench.places import COUNTRY_NODES
from bench.processes import CHECKOUT
from bench.queries import PLACES, Query
from bench.report import number, python_build, table
from bench.servers import Server
from bench.tree import Tree

WAYS: Mapping[str, Mapping[str, Any]] = {"warm": {}, "no-cache": {"cache_mb": 0}, "hits": {"responses": True}}
GZIP = ", gzip"  # ends the names of servers whose clients accept it


@dataclass(frozen=True)
class Checkout:
    """A folder with Clade's code, which is run by the Python of the benchmark, and settings of its servers."""

    name: str
    folder: Path
    number: int
    settings: Mapping[str, str]

    def table(self, engine_url: str) -> str:
        """The URL of its table, by the URL of the engine or of a proxy."""
        return servers.table(f"clade-{self.number}", engine_url)

    def file(self, folder: Path) -> str:
        """The URL of its SQLite store."""
        return f"sqlite:///{folder}/clade-{self.number}.db"

    def fill(self, store: str, lines: Path) -> None:
        """Create its table and import places."""
        servers.fill(store, checkout=self.folder, location=lines)

    def server(self, store: str, *, way: str = "warm", queries: Sequence[Query] = PLACES, **settings: Any) -> Server:
        """`clade serve` on a store, which is not started."""
        given = {**WAYS[way], **settings, **self.settings}
        return servers.clade(self.name, store, queries=queries, checkout=self.folder, **given)


def add_options(parser: argparse.ArgumentParser, seconds: float = 1.0) -> None:
    """The options that `checkouts` reads, and the seconds of one run."""
    parser.add_argument(
        "--checkout", action="append", default=[], metavar="DIR", type=_checkout,
        help="folder with the code to measure; several are measured in turn; by default the one of this file",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="setting of the measured servers, such as CLADE_SETTLE_SECONDS=1; may be repeated",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=seconds, help=f"seconds of one run; default {seconds:g}")


def checkouts(options: argparse.Namespace) -> list[Checkout]:
    folders = options.checkout or [CHECKOUT]
    given = (one.partition("=") for one in options.set)
    settings = {name.removeprefix("CLADE_").lower(): value for name, _, value in given}
    names = ["Clade"] if len(folders) == 1 else [f"{n}, {folder.name}" for n, folder in enumerate(folders, start=1)]
    return [Checkout(name, folder, n, settings) for n, (name, folder) in enumerate(zip(names, folders, strict=True))]


def _checkout(name: str) -> Path:
    """The folder, without whose code Python would find that of its environment."""
    folder = Path(name).resolve()
    if not (folder / "commands" / "main.py").exists():
        raise argparse.ArgumentTypeError(f"{name} has no commands/main.py; name the folder of a checkout of Clade.")
    return folder


def main(arguments: Sequence[str] | None = None) -> str:
    """Print the table, and return it."""
    options = _options(arguments)
    print(python_build(), flush=True)
    queries = [query for query in PLACES if query.name in options.queries]
    queries += [Query(f"own {number}", text, text) for number, text in enumerate(options.query, start=1)]
    compared = checkouts(options)
    tree = list(places.made(options.nodes))
    expected = ExpectedData(Tree(tree), tree[0].path[0])
    names = [f"{one.name}{ending}" for ending in ("", GZIP)[: 1 + options.gzip] for one in compared]
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as name:
        lines = Path(name) / "places.jsonl"
        places.write(tree, lines)
        for one in compared:
            one.fill(one.file(Path(name)), lines)
        for way in options.ways:
            with ExitStack() as running:
                started = [one.server(one.file(Path(name)), way=way, queries=queries) for one in compared]
                for server in started:
                    running.enter_context(server.process)
                if options.gzip:
                    started += [replace(server, name=f"{server.name}{GZIP}", gzip=True) for server in started]
                results = measure(started, queries, expected, Schedule(options.seconds, options.rounds), print)
            for query in queries:
                runs = [cpu(results, name, query.name) for name in names]
                ratios = [f"{ratio(runs[0], other):.3f} ×" for other in runs[1:]]
                rows.append([f"{query.name}, {query.what}", way, *(number(middle(one).cpu) for one in runs), *ratios])
    head = ["CPU ms a request", "way", *names, *(f"{name} / {names[0]}" for name in names[1:])]
    written = table(head, rows)
    print(written)
    return written


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.checkouts", description=__doc__)
    add_options(parser)
    names = [query.name for query in PLACES]
    parser.add_argument("--queries", nargs="*", choices=names, default=names, help="queries; by default Q1 to Q4")
    parser.add_argument("--query", action="append", default=[], metavar="TEXT", help="another query; may be repeated")
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS], help="by default all three")
    parser.add_argument("--gzip", action="store_true", help="also with clients that accept compressed responses")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each server; default 9")
    parser.add_argument("--nodes", type=int, default=COUNTRY_NODES, help="at least so many nodes; default 1021")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
