"""The servers that are measured side by side, each one process."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import processes
from bench.processes import CHECKOUT, CLADE, Process, Silent
from bench.questions import MENU, PLACES, Question
from tests.engines import free_port

SQLITE, NOTHING_KEPT = "Clade, SQLite", "Clade, SQLite, keeping nothing"
HITS, DYNAMODB = "Clade, hits", "Clade, DynamoDB"
STATIC, STOCK = "static bytes", "stock Strawberry"
IN_MEMORY, ON_DYNAMODB, POSTGRES = "Mercurius, memory", "Mercurius, DynamoDB", "PostGraphile"

PEERS = CHECKOUT.parent / "shared" / "peers"
ANY_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


@dataclass(frozen=True)
class Server:
    """A running server: its name in tables, what it is asked, and the process that stores for it alone."""

    name: str
    process: Process
    questions: Sequence[Question] = PLACES
    is_peer: bool = False
    behind: Process | None = None

    def url(self, question: Question) -> str:
        return f"{self.process.url}/{question.name}" if self.name == STATIC else self.process.url


def clade(name: str, store: str, *, questions: Sequence[Question] = PLACES, **settings: int | str) -> Server:
    """Clade as `clade serve` starts it, without its cache of answers unless a setting says otherwise."""
    port = free_port()
    told = {f"CLADE_{key.upper()}": str(value) for key, value in ({"cache_mb": 0} | settings).items()}
    command = (*CLADE, "serve", "--port", str(port))
    # As the others, none of which writes a line for each request.
    environment = {"CLADE_STORE": store, "CLADE_LOG_LEVEL": "warning", **told, **ANY_CREDENTIALS}
    return Server(name, Process(command, f"http://127.0.0.1:{port}/graphql", environment), questions)


def stock(store: str, questions: Sequence[Question]) -> Server:
    return Server(STOCK, _uvicorn("bench.stock:app", "/graphql", {"CLADE_STORE": store}), questions)


def static(answers: Path) -> Server:
    """Serves the files of a directory, which are there before it starts."""
    return Server(STATIC, _uvicorn("bench.static:app", "", {"BENCH_ANSWERS": str(answers)}), (*PLACES, MENU))


def _uvicorn(app: str, path: str, environment: Mapping[str, str]) -> Process:
    """A server with the settings that `clade serve` has."""
    port = free_port()
    command = (
        sys.executable, "-m", "uvicorn", app, "--factory", "--host", "127.0.0.1", "--port", str(port),
        "--log-level", "warning", "--no-access-log", "--no-server-header", "--interface", "asgi3",
    )  # fmt: skip
    return Process(command, f"http://127.0.0.1:{port}{path}", environment)


@dataclass(frozen=True)
class Peers:
    """Servers that users would pick instead, where their folder is there with its packages installed."""

    directory: Path
    node: str

    @classmethod
    def find(cls) -> "Peers":
        """As BENCH_PEERS and BENCH_NODE say; else beside the checkout, with the Node in the path."""
        directory = Path(os.environ.get("BENCH_PEERS") or PEERS)
        return cls(directory, os.environ.get("BENCH_NODE") or shutil.which("node") or "")

    def missing(self, *folders: str) -> str | None:
        """What of these is not there, in words."""
        if not self.node:
            return "there is no Node"
        for folder in folders:
            if not (self.directory / folder / "node_modules").is_dir():
                return f"no packages are installed in {self.directory / folder}"
        return None

    def in_memory(self, lines: Path) -> Server:
        return Server(IN_MEMORY, self._server("mercurius-memory", {"DATA": str(lines)}), is_peer=True)

    def fill_dynamodb(self, engine_url: str, lines: Path) -> None:
        """Make their own table of an engine."""
        self._run("engine", _on_engine(engine_url), "load.mjs", str(lines))

    def on_dynamodb(self, engine_url: str) -> Server:
        """On a table of the engine that is filled."""
        environment = _on_engine(engine_url)
        return Server(ON_DYNAMODB, self._server("mercurius", environment), is_peer=True)

    @contextlib.contextmanager
    def on_postgres(self, data: Path, lines: Path) -> Iterator[Server]:
        """With a PostgreSQL of its own, which is filled first and ends with the block."""
        port = free_port()
        environment = {
            "PGPEER_DATA": str(data), "PGPEER_PORT": str(port), "DATABASE_URL": f"postgres://peer@127.0.0.1:{port}/peer",
            "PGBIN": _postgres_programs(),
        }  # fmt: skip
        command = ("sh", str(self.directory / "postgraphile" / "postgres.sh"))
        database = Process(command, f"tcp://127.0.0.1:{port}", environment, self.directory / "postgraphile")
        with database:
            self._run("postgraphile", environment, "load.mjs", str(lines))
            psql = shutil.which("psql") or f"{environment['PGBIN']}/psql"
            processes.run(psql, "-q", "-f", "tags.sql", environment["DATABASE_URL"], directory=database.directory)
            process = self._server("postgraphile", environment)
            yield Server(POSTGRES, process, is_peer=True, behind=database)

    def _server(self, folder: str, environment: Mapping[str, str]) -> Process:
        port = free_port()
        told = {"NODE_ENV": "production", "PORT": str(port), **environment}
        url = f"http://127.0.0.1:{port}/graphql"
        return Process((self.node, "server.mjs"), url, told, self.directory / folder)

    def _run(self, folder: str, environment: Mapping[str, str], *command: str) -> None:
        processes.run(self.node, *command, environment=environment, directory=self.directory / folder)


def _on_engine(url: str) -> dict[str, str]:
    return {"DYNAMO_ENDPOINT": url, **ANY_CREDENTIALS}


def _postgres_programs() -> str:
    """Where `initdb` and `postgres` are: Debian leaves them out of the path. Raises Silent where they are not."""
    if found := shutil.which("initdb"):
        return str(Path(found).parent)
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not versions:
        raise Silent("There is no PostgreSQL.")
    return str(versions[-1].parent)
