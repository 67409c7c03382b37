"""DynamoDB engines: local servers with DynamoDB's API, started and stopped by the tests.

The engine is the endpoint that CLADE_TEST_DYNAMODB names; else the one that CLADE_TEST_ENGINE names, `dynoxide` or
`extenddb`; else dynoxide, from CLADE_TEST_DYNOXIDE or npm; else moto, which reports no consumed capacity and does not
page. ExtendDB checks signatures, and its indexes are as late as CLADE_TEST_INDEX_DELAY_MS says.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.ports import free_port
from tests.processes import Process
from tests.waiting import eventually

START_SECONDS = 60.0

INDEX_DELAY_MS = "400"

# AWS's documented example, which ExtendDB knows as its only key pair.
KEY_PAIR = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}

_CHECKOUT = Path(__file__).parent.parent


class NoEngine(Exception):
    """No engine is available; the message says what is missing."""


class Engine(Process):
    """One engine, which runs already if it has no command; `exact` if its capacity and pages are those of DynamoDB."""

    def __init__(self, name: str, url: str, *, exact: bool, command: Sequence[str] = ()) -> None:
        super().__init__(*command, url=url)
        self.name, self.exact = name, exact

    def start(self, seconds: float = START_SECONDS) -> Self:
        """Start it and wait until it accepts connections. Raises NoEngine with its output if it does not."""
        try:
            return super().start(seconds) if self.command else self
        except AssertionError as error:
            raise NoEngine(f"{self.name} did not start. It wrote: {error}") from None

    def answers(self) -> bool:
        address = urlsplit(self.url)
        with contextlib.suppress(OSError):
            socket.create_connection((address.hostname, address.port), timeout=1).close()
            return True
        return False

    def address(self, table: str) -> str:
        """The URL of a table of this engine, for `open_store`."""
        return f"dynamodb://{table}?region=eu-west-1&endpoint={self.url}"


class ExtendDB(Engine):
    """ExtendDB, whose tables are there at once and whose indexes are late."""

    config = Path()
    index_delay_ms = 0

    def start(self, seconds: float = START_SECONDS) -> Self:
        super().start(seconds)
        self._set("control_plane_delay_seconds", "0")
        self._set("index_propagation_delay_ms", str(self.index_delay_ms))
        return self

    def _set(self, name: str, value: str) -> None:
        command = (self.command[0], "settings", "--config", str(self.config), "set", name, value)

        def is_set() -> bool:  # not while its database is locked, or not there yet
            return subprocess.run(command, capture_output=True, timeout=START_SECONDS).returncode == 0

        eventually(is_set, START_SECONDS, lambda: NoEngine(f"{self.name} did not take {name}."))


def find(db_path: Path | None = None) -> Engine:
    """The best engine that is available, not started; with `db_path` it stores its tables there (only dynoxide).

    Raises NoEngine where there is none.
    """
    if url := os.environ.get("CLADE_TEST_DYNAMODB"):
        return Engine("CLADE_TEST_DYNAMODB", url, exact=True)
    match os.environ.get("CLADE_TEST_ENGINE", ""):
        case "extenddb":
            os.environ.update(KEY_PAIR)  # it is the engine of the whole run, and checks them
            return extenddb(db_path, int(os.environ.get("CLADE_TEST_INDEX_DELAY_MS", INDEX_DELAY_MS)))
        case "dynoxide" | "":
            return dynoxide(db_path) or moto()
        case unknown:
            raise NoEngine(f"CLADE_TEST_ENGINE={unknown} is neither dynoxide nor extenddb.")


def dynoxide(db_path: Path | None = None) -> Engine | None:
    """dynoxide, in memory or with its tables in a file; None if it is not installed."""
    if (found := binary("dynoxide")) is None:
        return None
    port = free_port()
    keep = ("--db-path", str(db_path)) if db_path else ()
    command = (str(found), "serve", "--host", "127.0.0.1", "--port", str(port), *keep)
    return Engine("dynoxide", f"http://127.0.0.1:{port}", exact=True, command=command)


def extenddb(db_path: Path | None = None, index_delay_ms: int = 0) -> Engine:
    """ExtendDB with indexes that are so late. Its tables are in a file, since only a file lets its settings be changed.

    Raises NoEngine if it is not installed.
    """
    if (found := binary("extenddb")) is None:
        raise NoEngine("ExtendDB is not installed: npm's @extenddb/linux-x64")
    folder = db_path.parent if db_path else Path(tempfile.mkdtemp(prefix="clade-extenddb-"))
    config = folder / "extenddb.toml"
    file = db_path or folder / "extenddb.db"
    config.write_text(f'[storage]\nbackend = "sqlite"\n[storage.sqlite]\npath = "{file}"\n')
    port = free_port()
    command = (str(found), "serve", "--foreground", "--config", str(config), "--port", str(port))
    url = f"http://127.0.0.1:{port}"
    engine = ExtendDB("extenddb", url, exact=True, command=command)
    engine.config, engine.index_delay_ms = config, index_delay_ms
    return engine


def moto() -> Engine:
    """moto, which has more of the API around tables. Raises NoEngine if it is not installed."""
    try:
        import moto.server  # noqa: F401
    except ImportError:
        raise NoEngine(
            "no engine speaks DynamoDB's API here: install npm's @dynoxide/linux-x64 or PyPI's moto[server], "
            "or name an endpoint in CLADE_TEST_DYNAMODB"
        ) from None
    port = free_port()
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    return Engine("moto", f"http://127.0.0.1:{port}", exact=False, command=command)


def binary(name: str) -> Path | None:
    """The program of npm's package, or the one that CLADE_TEST_DYNOXIDE or CLADE_TEST_EXTENDDB names."""
    if named := os.environ.get(f"CLADE_TEST_{name.upper()}"):
        return Path(named)
    package = f"node_modules/@{name}/linux-x64/{name}"
    return next((place for place in (_CHECKOUT / package, _CHECKOUT / "tests" / package) if place.exists()), None)
