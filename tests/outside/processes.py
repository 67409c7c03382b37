"""Processes that users start: the command `clade`, its server, and a DynamoDB engine. All end by their process ids."""

import contextlib
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tests import engines
from tests.engines import KEY_PAIR
from tests.outside.failures import Wrong
from tests.ports import free_port
from tests.user_errors import ALIAS, with_user_errors

HERE = Path(__file__).parent
EXTREMES = HERE / "classes" / "extremes.py"
START_SECONDS = 60.0
STOP_SECONDS = 60.0
ANSWER_SECONDS = 60.0
INVALID = (b'"GRAPHQL_PARSE_FAILED"', b'"GRAPHQL_VALIDATION_FAILED"')


def clade_command() -> str:
    """The command under test: CLADE_TEST_COMMAND, or the one of this Python's environment."""
    return os.environ.get("CLADE_TEST_COMMAND") or str(Path(sys.executable).parent / "clade")


class Process:
    """A process with its output in a file."""

    _outputs = itertools.count(1)

    def __init__(self, folder: Path, name: str) -> None:
        self.output = folder / f"{name}-{next(self._outputs)}.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, *command: str, **environment: str) -> None:
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment or None
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: int) -> None:
        if self.is_alive:
            assert self._process is not None
            self._process.send_signal(number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """The exit status; raises subprocess.TimeoutExpired."""
        assert self._process is not None
        return self._process.wait(seconds)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(STOP_SECONDS)

    def stop(self) -> None:
        """End it by SIGTERM, or by SIGKILL where that takes too long."""
        self.send(signal.SIGTERM)
        try:
            if self._process is not None:
                self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def said(self) -> str:
        return self.output.read_text(errors="replace")


class Answer:
    """The response of one GraphQL request: HTTP status, headers, body.

    A payload with user errors is null in `json`, and they are among its errors.
    """

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.bytes = status, headers, body

    @property
    def json(self) -> Any:
        found = json.loads(self.bytes)
        data = found.get("data") if isinstance(found, dict) else None
        for name, payload in (data or {}).items():
            faults = payload.pop(ALIAS, []) if isinstance(payload, dict) else []
            if faults:
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


class Server(Process):
    """`clade serve` with these settings, named without CLADE_ and in small letters."""

    _numbers = itertools.count(1)

    def __init__(self, folder: Path, store: str, **settings: str) -> None:
        super().__init__(folder, f"server-{next(self._numbers)}")
        self.settings = settings_of(store, **settings)
        self.url = ""

    def start(self) -> "Server":
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.launch(clade_command(), "serve", "--port", str(port), **self.settings)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self.is_alive, self.said()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                if answer.status == 200:
                    return self
            time.sleep(0.05)
        raise AssertionError(f"the server did not start: {self.said()}")

    def ask(
        self, query: str, variables: dict[str, Any] | None = None, *, key: str | None = None, **headers: str
    ) -> Answer:
        """Send one operation; raises OSError if there is no response, and Wrong if the document is invalid: two servers
        that both refuse it would agree.
        """
        body = json.dumps(
            {"query": with_user_errors(query), **({"variables": variables} if variables else {})}
        ).encode()
        sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        if key:
            sent["authorization"] = f"Bearer {key}"
        answer = self.post(body, sent)
        if any(code in answer.bytes for code in INVALID):
            raise Wrong("the documents of the suite match the schema", [query], "a valid document", answer.json)
        return answer

    def post(self, body: bytes, headers: dict[str, str]) -> Answer:
        request = urllib.request.Request(f"{self.url}/graphql", body, headers, method="POST")
        try:
            return _answer(request)
        except http.client.HTTPException as error:
            raise ConnectionResetError("the response ended in its middle") from error

    def __enter__(self) -> "Server":
        return self if self.is_alive else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _answer(request: urllib.request.Request) -> Answer:
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return Answer(answer.status, _lower(answer.headers), answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return Answer(refused.code, _lower(refused.headers), refused.read())


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): text for name, text in headers.items()}


def settings_of(store: str, **settings: str) -> dict[str, str]:
    """An environment with these settings of Clade and no others of it."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("CLADE_", "AWS_"))}
    ours = {f"CLADE_{name.upper()}": text for name, text in settings.items()}
    return {
        **kept,
        **KEY_PAIR,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CLADE_STORE": store,
        "CLADE_LOG_FORMAT": "json",
        **ours,
    }


def command(
    *arguments: str, store: str, seconds: float = 600, status: int | None = 0, **settings: str
) -> subprocess.CompletedProcess[str]:
    """A run of `clade` to its end; `status` is the exit status that is expected, None for any."""
    done = subprocess.run(
        [clade_command(), *arguments],
        env=settings_of(store, **settings),
        capture_output=True,
        text=True,
        timeout=seconds,
        stdin=subprocess.DEVNULL,
    )
    assert status is None or done.returncode == status, f"{arguments}: {done.stdout}{done.stderr}"
    return done


class Place:
    """A folder with one store and the processes that were started in it, which end with it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self._processes: list[Process | engines.Engine] = []
        self._tables = itertools.count(1)
        self.engine: engines.Engine | None = None

    @cached_property
    def store(self) -> str:
        """The URL of the store that parts share."""
        return self.new_store()

    def new_store(self, *, created: bool = True) -> str:
        """The URL of another new store of the same kind."""
        if self.kind == "sqlite":
            url = f"sqlite:///{self.folder}/store-{next(self._tables)}.db"
        else:
            if self.engine is None:
                self.engine = _engine()
                self.engine.start()
                self._processes.append(self.engine)
            url = f"dynamodb://outside-{os.getpid()}-{next(self._tables)}?region=eu-west-1&endpoint={self.engine.url}"
        if created:
            command("table", "create", store=url)
        return url

    def server(self, store: str | None = None, **settings: str) -> Server:
        """A running server of the hierarchy of extremes with mutations, unless the settings say otherwise."""
        server = Server(self.folder, store or self.store, **{"hierarchies": str(EXTREMES), "writes": "on", **settings})
        self._processes.append(server)
        return server.start()

    def close(self) -> None:
        for process in reversed(self._processes):
            process.stop()


def _engine() -> engines.Engine:
    """ExtendDB, if CLADE_TEST_ENGINE names it, with indexes that are current, or another engine."""
    is_extenddb = os.environ.get("CLADE_TEST_ENGINE") == "extenddb"
    return engines.extenddb(index_delay_ms=0) if is_extenddb else engines.find()


def missing(kind: str) -> str:
    """Why a store of this kind cannot be tried here; empty if it can be."""
    is_there = kind == "sqlite" or os.environ.get("CLADE_TEST_DYNAMODB") or engines.dynoxide()
    return "" if is_there else "npm's @dynoxide/linux-x64 is missing: scripts/test installs it"


@contextlib.contextmanager
def place(kind: str) -> Iterator[Place]:
    """A new place for a store of a kind, `sqlite` or `dynamodb`, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="clade-outside-") as folder:
        found = Place(kind, Path(folder))
        try:
            yield found
        finally:
            found.close()
