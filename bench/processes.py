"""Processes of a measurement: started on free ports, ended by their ids, with CPU time and memory of /proc."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

CHECKOUT = Path(__file__).parent.parent
START_SECONDS = 120.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 120.0
JSON_BOTH_WAYS = {"content-type": "application/json", "accept": "application/json"}
CLADE = (sys.executable, "-c", "from commands.main import run; run()")


class Silent(Exception):
    """A process ended, or does not answer; the message has its output."""


@dataclass
class Process:
    """A process of this measurement with all that it starts, until the block ends."""

    command: tuple[str, ...]
    url: str
    """Its URL."""
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path = CHECKOUT
    _process: subprocess.Popen[bytes] | None = None
    _output: Any = None

    def __enter__(self) -> Self:
        """Start it and wait for any response; raises Silent if none comes."""
        self.start()
        with self._ended_on_failure():
            self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        self._process = None

    def start(self) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - the process writes to it until its end
        self._process = subprocess.Popen(
            self.command, cwd=self.directory, env={**os.environ, **self.environment},
            stdout=self._output, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def wait(self, *, pause: float = 0.05) -> None:
        end = time.monotonic() + START_SECONDS
        while not answers(self.url):
            if time.monotonic() > end or self._running.poll() is not None:
                self._output.seek(0)
                written = self._output.read()[-2000:].decode(errors="replace")
                raise Silent(f"{' '.join(self.command[:4])} does not answer. It wrote: {written}")
            time.sleep(pause)

    @property
    def pid(self) -> int:
        return self._running.pid

    def cpu_seconds(self) -> float:
        """User and system time so far, of all threads of the process and its children that have not ended."""
        return sum(map(_cpu_seconds, _family(self.pid)))

    def peak_mb(self) -> float:
        """Peak memory of the process itself."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) / 1024 if found else 0.0

    def memory_mb(self) -> float:
        """Resident memory of the process itself."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) / 1024 if found else 0.0

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "The process is not started."
        return self._process

    @contextlib.contextmanager
    def _ended_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.__exit__()
            raise


def run(*command: str, environment: Mapping[str, str] | None = None, directory: Path = CHECKOUT) -> None:
    """Run a command; raises Silent with its output if it fails."""
    full = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(command, cwd=directory, env=full, capture_output=True, check=False)
    except OSError as missing:
        raise Silent(f"{command[0]} cannot be run: {missing}") from missing
    if done.returncode:
        written = (done.stdout + done.stderr)[-2000:].decode(errors="replace")
        raise Silent(f"{' '.join(command[:4])} failed. It wrote: {written}")


def ask(
    url: str, sent: bytes, *, seconds: float = ANSWER_SECONDS, headers: Mapping[str, str] = JSON_BOTH_WAYS
) -> bytes:
    """The body of the response to a POST of JSON."""
    request = urllib.request.Request(url, sent, dict(headers))
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        found: bytes = answer.read()
        return found


def answers(url: str) -> bool:
    """Whether the process answers: over HTTP, or by accepting a connection if the URL begins with tcp."""
    try:
        if url.startswith("tcp://"):
            host, port = url.removeprefix("tcp://").split(":")
            socket.create_connection((host, int(port)), timeout=1).close()
            return True
        ask(url, b'{"query": "{ __typename }"}')
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def _cpu_seconds(pid: int) -> float:
    """In nanoseconds, unlike the ticks of 10 ms in /proc/PID/stat."""
    with contextlib.suppress(OSError):
        threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
    return 0.0


def _family(pid: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found
