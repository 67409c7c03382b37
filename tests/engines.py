"""DynamoDB engines: local servers with DynamoDB's API, started and stopped by the tests.

The engine is the endpoint that CLADE_TEST_DYNAMODB names; else dynoxide, from CLADE_TEST_DYNOXIDE or npm; else moto,
which reports no consumed capacity and does not page.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

START_SECONDS = 30.0
STOP_SECONDS = 10.0

_CHECKOUT = Path(__file__).parent.parent
_PACKAGE = "node_modules/@dynoxide/linux-x64/dynoxide"


class NoEngine(Exception):
    """No engine is available; the message says what is missing."""


@dataclass
class Engine:
    """One engine; `exact` if its consumed capacity and pages are those of DynamoDB."""

    name: str
    url: str
    exact: bool
    command: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process and wait until it answers."""
        if not self.command:
            return
        with tempfile.TemporaryFile() as output:
            self.process = subprocess.Popen(self.command, stdout=output, stderr=subprocess.STDOUT)
            try:
                self._await_answer()
            except NoEngine as error:
                self.stop()
                output.seek(0)
                raise NoEngine(f"{error} It wrote: {output.read()[-2000:].decode(errors='replace')}") from None

    def stop(self) -> None:
        """Terminate the process, or kill it if it does not end."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
        self.process = None

    def kill(self) -> None:
        """Kill the process."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(STOP_SECONDS)
        self.process = None

    def address(self, table: str) -> str:
        """The URL of a table of this engine, for `open_store`."""
        return f"dynamodb://{table}?region=eu-west-1&endpoint={self.url}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _await_answer(self) -> None:
        host, port = self.url.removeprefix("http://").split(":")
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process is not None and self.process.poll() is not None:
                raise NoEngine(f"{self.name} ended at once with status {self.process.returncode}.")
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
                return
            time.sleep(0.01)
        raise NoEngine(f"{self.name} did not answer within {START_SECONDS:.0f} seconds.")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def find(db_path: Path | None = None) -> Engine:
    """The best engine that is available, not started; with `db_path` it stores its tables there (only dynoxide).

    Raises NoEngine where there is none.
    """
    if url := os.environ.get("CLADE_TEST_DYNAMODB"):
        return Engine("CLADE_TEST_DYNAMODB", url, exact=True)
    if binary := _dynoxide():
        port = free_port()
        keep = ("--db-path", str(db_path)) if db_path else ()
        command = (str(binary), "serve", "--host", "127.0.0.1", "--port", str(port), *keep)
        return Engine("dynoxide", f"http://127.0.0.1:{port}", exact=True, command=command)
    return moto()


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


def _dynoxide() -> Path | None:
    if named := os.environ.get("CLADE_TEST_DYNOXIDE"):
        return Path(named)
    places = (_CHECKOUT / _PACKAGE, _CHECKOUT / "tests" / _PACKAGE)
    return next((place for place in places if place.exists()), None)
