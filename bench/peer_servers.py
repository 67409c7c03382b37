"""Peer servers: other GraphQL servers over the same places, in bench/peers.

They are there after `npm install` in bench/peers, and PostGraphile after `npm install` in bench/peers/postgraphile.
Node is that of the path, or BENCH_NODE.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import processes
from bench.processes import CHECKOUT, Process, Silent
from bench.servers import ANY_CREDENTIALS, POSTGRES, Server
from tests.ports import free_port

FOLDER = CHECKOUT / "bench" / "peers"
NODE = os.environ.get("BENCH_NODE") or shutil.which("node") or "node"
BUN = str(FOLDER / "node_modules" / "@oven" / "bun-linux-x64" / "bin" / "bun")


@dataclass(frozen=True)
class Peer:
    """A server of bench/peers, over places in memory or in DynamoDB."""

    name: str
    program: str
    script: str

    def missing(self) -> str | None:
        """A message about what is not installed; None if nothing is missing."""
        return missing_program(self.program) or missing_packages(FOLDER)

    def in_memory(self, lines: Path) -> Server:
        return self._server("memory", {"DATA": str(lines)})

    def on_dynamodb(self, engine_url: str) -> Server:
        """On the table that `fill_dynamodb` makes."""
        return self._server("DynamoDB", _on_engine(engine_url))

    def _server(self, where: str, environment: Mapping[str, str]) -> Server:
        command = (self.program, self.script)
        return Server(f"{self.name}, {where}", _process(command, environment, FOLDER), is_peer=True)


PEERS = (
    Peer("Mercurius", NODE, "mercurius.mjs"),
    Peer("Yoga on Bun", BUN, "yoga.mjs"),
    Peer("graphql-breadth on Bun", BUN, "breadth.mjs"),
)


def missing_program(program: str) -> str | None:
    return None if shutil.which(program) else f"{program} is not installed"


def missing_packages(folder: Path) -> str | None:
    return None if (folder / "node_modules").is_dir() else f"no packages are installed in {folder}"


def fill_dynamodb(engine_url: str, lines: Path) -> None:
    """Make the peers' table of an engine."""
    processes.run(NODE, "load.mjs", str(lines), environment=_on_engine(engine_url), directory=FOLDER)


@contextlib.contextmanager
def postgraphile(data: Path, lines: Path) -> Iterator[Server]:
    """PostGraphile with a PostgreSQL of its own, which is filled first and ends with the block.

    Raises Silent where a part is missing.
    """
    folder, port = FOLDER / "postgraphile", free_port()
    if missing := missing_program(NODE) or missing_packages(folder):
        raise Silent(missing)
    environment = {
        "PGPEER_DATA": str(data), "PGPEER_PORT": str(port), "DATABASE_URL": f"postgres://peer@127.0.0.1:{port}/peer",
        "PGBIN": _postgres_programs(),
    }  # fmt: skip
    database = Process(("sh", "postgres.sh"), f"tcp://127.0.0.1:{port}", environment, folder)
    with database:
        processes.run(NODE, "load.mjs", str(lines), environment=environment, directory=folder)
        psql = shutil.which("psql") or f"{environment['PGBIN']}/psql"
        processes.run(psql, "-q", "-f", "tags.sql", environment["DATABASE_URL"], directory=folder)
        process = _process((NODE, "server.mjs"), environment, folder)
        yield Server(POSTGRES, process, is_peer=True, behind=database)


def _process(command: tuple[str, ...], environment: Mapping[str, str], folder: Path) -> Process:
    port = free_port()
    variables = {"NODE_ENV": "production", "PORT": str(port), **environment}
    return Process(command, f"http://127.0.0.1:{port}/graphql", variables, folder)


def _on_engine(url: str) -> dict[str, str]:
    return {"DYNAMO_ENDPOINT": url, **ANY_CREDENTIALS}


def _postgres_programs() -> str:
    """The folder of `initdb` and `postgres`, which Debian leaves out of the path. Raises Silent where there is none."""
    if found := shutil.which("initdb"):
        return str(Path(found).parent)
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not versions:
        raise Silent("There is no PostgreSQL.")
    return str(versions[-1].parent)
