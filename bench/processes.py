"""Processes of a measurement: started on free ports, ended by their ids, with CPU time and memory of /proc."""

import contextlib
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from tests import engines, processes
from tests.ports import free_port

CHECKOUT = Path(__file__).parent.parent
ANSWER_SECONDS = 120.0
JSON_BOTH_WAYS = {"content-type": "application/json", "accept": "application/json"}


class Silent(Exception):
    """A process ended, or does not answer; the message has its output."""


class Process(processes.Process):
    """A process of this measurement with all that it starts, until the block ends."""

    def __init__(
        self,
        command: tuple[str, ...],
        url: str,
        environment: Mapping[str, str] = MappingProxyType({}),
        directory: Path = CHECKOUT,
    ) -> None:
        super().__init__(*command, url=url, environment={**os.environ, **environment}, folder=directory)
        self.start_seconds = 0.0  # from the command to the first response

    def __enter__(self) -> Self:
        """Start it and wait for any response; raises Silent if none comes."""
        began = time.monotonic()
        try:
            self.start()
        except AssertionError as error:
            command = " ".join(map(str, self.command[:4]))
            raise Silent(f"{command} does not answer. It wrote: {str(error)[-2000:]}") from None
        self.start_seconds = time.monotonic() - began
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def answers(self) -> bool:
        return answers(self.url)

    def cpu_seconds(self) -> float:
        """User and system time so far, of all threads of the process and its children that have not ended."""
        return sum(map(_cpu_seconds, _family(self.pid)))

    def peak_mb(self) -> float:
        """Peak memory of the process itself."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) / 1024 if found else 0.0


def engine(file: Path | None = None) -> Process:
    """dynoxide, a local DynamoDB with its tables in memory or in a file. Raises Silent where it is not installed."""
    if (binary := engines.binary("dynoxide")) is None:
        raise Silent(
            "There is no DynamoDB engine; run `npm install` in tests, or name dynoxide in CLADE_TEST_DYNOXIDE."
        )
    port = free_port()
    kept = ("--db-path", str(file)) if file else ()
    return Process(
        (str(binary), "serve", "--host", "127.0.0.1", "--port", str(port), *kept), f"http://127.0.0.1:{port}"
    )


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


def ask(url: str, sent: bytes, headers: Mapping[str, str] = JSON_BOTH_WAYS) -> bytes:
    """The body of the response to a POST of JSON."""
    request = urllib.request.Request(url, sent, dict(headers))
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
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
