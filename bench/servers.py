"""Servers of the benchmark, each one process, and the stores that they serve."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import processes
from bench.processes import CHECKOUT, Process
from bench.queries import MENU, PLACES, Query
from tests.ports import free_port

SQLITE, NO_CACHE = "Clade, SQLite", "Clade, SQLite, no cache"
HITS, DYNAMODB = "Clade, hits", "Clade, DynamoDB"
STATIC = "static bytes"
IN_MEMORY, ON_DYNAMODB, POSTGRES = "Mercurius, memory", "Mercurius, DynamoDB", "PostGraphile"

ANY_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
CLADE = (sys.executable, "-c", "from commands.main import run; run()")

# No setting disables the cached responses alone, but a benchmark sends the same few requests again and again.
_WITHOUT_RESPONSES = """
import graph.app
from commands.main import run

cache = graph.app.ResponseCache
graph.app.ResponseCache = lambda max_bytes, *others: cache(0, *others)
run()
"""


@dataclass(frozen=True)
class Server:
    """A server: its name in tables, its queries, the database behind it, and whether its clients accept gzip."""

    name: str
    process: Process
    queries: Sequence[Query] = PLACES
    is_peer: bool = False
    behind: Process | None = None
    gzip: bool = False

    def url(self, query: Query) -> str:
        return f"{self.process.url}/{query.name}" if self.name == STATIC else self.process.url


def clade(
    name: str,
    store: str,
    *,
    queries: Sequence[Query] = PLACES,
    checkout: Path = CHECKOUT,
    responses: bool = False,
    **settings: float | str,
) -> Server:
    """`clade serve` of a checkout with its access log, which caches responses only with `responses`."""
    port = free_port()
    given = {"drain_seconds": 0} | settings
    variables = {f"CLADE_{key.upper()}": str(value) for key, value in given.items()}
    program = CLADE if responses else (sys.executable, "-c", _WITHOUT_RESPONSES)
    environment = {"CLADE_STORE": store, **variables, **ANY_CREDENTIALS}
    command = (*program, "serve", "--port", str(port))
    return Server(name, Process(command, f"http://127.0.0.1:{port}/graphql", environment, checkout), queries)


def static(answers: Path) -> Server:
    """A server of the files of a directory, which exist before it starts, with the settings of `clade serve`."""
    port = free_port()
    command = (
        sys.executable, "-m", "uvicorn", "bench.static:app", "--factory", "--host", "127.0.0.1", "--port", str(port),
        "--log-level", "warning", "--no-access-log", "--no-server-header", "--interface", "asgi3",
    )  # fmt: skip
    process = Process(command, f"http://127.0.0.1:{port}", {"BENCH_ANSWERS": str(answers)})
    return Server(STATIC, process, (*PLACES, MENU))


def table(name: str, engine_url: str) -> str:
    """The URL of a table, by the URL of an engine or of a proxy before it."""
    return f"dynamodb://{name}?region=eu-west-1&endpoint={engine_url}"


def fill(store: str, *, checkout: Path = CHECKOUT, **files: Path) -> None:
    """Create the table of a store, and import a file into each of the named hierarchies."""
    environment = {"CLADE_STORE": store, **ANY_CREDENTIALS}
    for command in (("table", "create"), *(("import", name, str(file)) for name, file in files.items())):
        processes.run(*CLADE, *command, environment=environment, directory=checkout)
