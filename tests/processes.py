"""Processes that tests start, such as servers, and what they answer over HTTP. Nothing of Clade is imported here.

with Process("node", "server.mjs", url="http://127.0.0.1:8000", ready="/") as process:
    …
"""

import contextlib
import functools
import http.client
import itertools
import json
import os
import signal
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from tests.ports import free_port
from tests.user_errors import take_user_errors
from tests.waiting import eventually

CLADE = Path(sysconfig.get_path("scripts")) / "clade"
START_SECONDS = 120.0
STOP_SECONDS = 60.0
ANSWER_SECONDS = 60.0

_numbers = itertools.count(1)


class Process:
    """A process with its output in a file, which is killed at the end of its block.

    One with a URL has started when it answers 200 at the path `ready`.
    """

    process: Any = None  # of subprocess, or of multiprocessing
    stdout: int | None = None  # the file, which has its standard error in any case

    def __init__(
        self,
        *command: str | Path,
        url: str = "",
        ready: str = "/readyz",
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        output: Path | None = None,
    ) -> None:
        self.command, self.url, self.ready = command, url, ready
        self.environment, self.folder = environment, folder
        self.output = output or Path(_outputs().name, f"{next(_numbers)}.txt")
        self.output.write_bytes(b"")

    def start(self, seconds: float = START_SECONDS) -> Self:
        """Start it, and wait until it answers."""
        self._launch()
        try:
            if self.url:
                eventually(lambda: self.answers() or not self.is_alive, seconds, lambda: AssertionError(self.said()))
                assert self.is_alive, self.said()
        except BaseException:
            self.kill()
            raise
        return self

    def _launch(self) -> None:
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=self.stdout or output, stderr=output,
            )  # fmt: skip

    def answers(self) -> bool:
        return status_of(f"{self.url}{self.ready}") == 200

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.is_alive:
            os.kill(self.pid, number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """The exit status; raises subprocess.TimeoutExpired."""
        return int(self.process.wait(seconds))

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self.process is not None:
            self.wait()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal, or by SIGKILL where that takes too long."""
        self.send(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process is not None:
                self.wait()
        self.kill()

    def __enter__(self) -> Self:
        return self if self.is_alive else self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


class Server(Process):
    """`clade serve` with these options and this environment, on another port after each start."""

    def __init__(self, *options: str, clade: Path | str = CLADE, **how: Any) -> None:
        super().__init__(**how)
        self._clade, self._options = clade, options

    def start(self, seconds: float = START_SECONDS) -> Self:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.command = (self._clade, "serve", "--port", str(port), *self._options)
        return super().start(seconds)

    def ask(self, query: str, variables: dict[str, Any] | None = None, **headers: str) -> "Answer":
        """The response to one operation; raises OSError if there is none."""
        sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        body = {"query": query, **({"variables": variables} if variables else {})}
        return send(f"{self.url}/graphql", json.dumps(body).encode(), sent)


class Answer:
    """The response of one GraphQL request: HTTP status, headers, body.

    A payload whose user errors were asked for is null in `json` if it has some, and they are among its errors.
    """

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.bytes = status, headers, body

    @functools.cached_property
    def json(self) -> Any:
        found = json.loads(self.bytes)
        data = found.get("data") if isinstance(found, dict) else None
        for name in data or {}:
            if faults := take_user_errors({name: data[name]}):
                data[name] = None
                errors = [{**one, "path": [name], "extensions": {"code": one["code"]}} for one in faults]
                found["errors"] = [*found.get("errors", []), *errors]
        return found

    @property
    def data(self) -> Any:
        """The data of an answer without errors."""
        found = self.json
        assert not found.get("errors"), found["errors"]
        return found["data"]

    @property
    def errors(self) -> list[dict[str, Any]]:
        return list(self.json.get("errors") or ())

    @property
    def codes(self) -> list[str]:
        return [error.get("extensions", {}).get("code", "") for error in self.errors]


def send(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """The response to a POST of this body, or else to a GET; raises OSError if there is none."""
    address = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(address.netloc, timeout=ANSWER_SECONDS)) as connection:
        return sent_on(connection, "GET" if body is None else "POST", address.path, body, headers or {})


def sent_on(
    connection: http.client.HTTPConnection, method: str, address: str, body: bytes | None, headers: Mapping[str, str]
) -> Answer:
    """The response on a connection; raises OSError if there is none."""
    try:
        connection.request(method, address, body, dict(headers))
        response = connection.getresponse()
        named = {name.lower(): text for name, text in response.getheaders()}
        return Answer(response.status, named, response.read())
    except http.client.HTTPException as error:
        raise ConnectionResetError("the response ended in its middle") from error


def status_of(url: str) -> int | None:
    """The status of the response to a GET; None if there is none."""
    with contextlib.suppress(OSError):
        return send(url).status
    return None


@functools.cache
def _outputs() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="clade-tests-")
