"""Servers of the benchmark, each one process."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.processes import CHECKOUT, CLADE, Process
from bench.queries import MENU, PLACES, Query
from tests.engines import free_port

SQLITE, NO_CACHE = "Clade, SQLite", "Clade, SQLite, no cache"
HITS, DYNAMODB = "Clade, hits", "Clade, DynamoDB"
STATIC, STOCK = "static bytes", "stock Strawberry"
IN_MEMORY, ON_DYNAMODB, POSTGRES = "Mercurius, memory", "Mercurius, DynamoDB", "PostGraphile"

ANY_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


# No setting disables the cached responses alone, but a benchmark sends the same few requests again and again.
_WITHOUT_RESPONSES = """
import graph.app
from commands.main import run
from graph.execution.response_cache import ResponseCache

graph.app.ResponseCache = lambda max_bytes: ResponseCache(0)
run()
"""


@dataclass(frozen=True)
class Server:
    """A server: its name in tables, its queries, and the database process behind it."""

    name: str
    process: Process
    queries: Sequence[Query] = PLACES
    is_peer: bool = False
    behind: Process | None = None

    def url(self, query: Query) -> str:
        return f"{self.process.url}/{query.name}" if self.name == STATIC else self.process.url


def clade(
    name: str,
    store: str,
    *,
    queries: Sequence[Query] = PLACES,
    checkout: Path = CHECKOUT,
    workers: int = 1,
    responses: bool = False,
    **settings: float | str,
) -> Server:
    """`clade serve` of a checkout, which caches responses only with `responses`; several workers always do."""
    port = free_port()
    given = {"drain_seconds": 0} | settings
    variables = {f"CLADE_{key.upper()}": str(value) for key, value in given.items()}
    program = CLADE if responses else (sys.executable, "-c", _WITHOUT_RESPONSES)
    command = (*program, "serve", "--port", str(port), "--workers", str(workers))
    # As the others, none of which writes a line for each request.
    environment = {"CLADE_STORE": store, "CLADE_LOG_LEVEL": "warning", **variables, **ANY_CREDENTIALS}
    return Server(name, Process(command, f"http://127.0.0.1:{port}/graphql", environment, checkout), queries)


def stock(store: str, queries: Sequence[Query]) -> Server:
    return Server(STOCK, _uvicorn("bench.stock:app", "/graphql", {"CLADE_STORE": store}), queries)


def static(answers: Path) -> Server:
    """A server of the files of a directory, which exist before it starts."""
    return Server(STATIC, _uvicorn("bench.static:app", "", {"BENCH_ANSWERS": str(answers)}), (*PLACES, MENU))


def _uvicorn(app: str, path: str, environment: Mapping[str, str]) -> Process:
    """A server with the settings that `clade serve` has."""
    port = free_port()
    command = (
        sys.executable, "-m", "uvicorn", app, "--factory", "--host", "127.0.0.1", "--port", str(port),
        "--log-level", "warning", "--no-access-log", "--no-server-header", "--interface", "asgi3",
    )  # fmt: skip
    return Process(command, f"http://127.0.0.1:{port}{path}", environment)
