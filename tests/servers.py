"""Servers as processes of their own: by the installed command, or forked, so that they can be killed at any moment.

They are forked from a process that has loaded everything, since loading takes a second of each start.
"""

import asyncio
import multiprocessing
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import graph.app  # noqa: F401 - both are loaded here so that no server has to
from commands.serve import serve
from tests import processes
from tests.processes import STOP_SECONDS

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["pytest", "tests.servers"])  # pytest: a child looks for its main module


@contextmanager
def served(folder: Path, store: str, *options: str, **variables: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """A server by the installed command: its address, and the process, which is killed where the test leaves it.

    Its output is in `said.txt` of the folder.
    """
    given = {**os.environ, "CLADE_STORE": store, **variables}
    with processes.Server(*options, environment=given, ready="/healthz", output=folder / "said.txt") as server:
        yield server.url, server.process


class Server(processes.Server):
    """`clade serve`, forked, with these settings, for tests in an event loop: what waits is a coroutine."""

    def __init__(self, folder: Path, name: str, **settings: str) -> None:
        given = {**os.environ, **{f"CLADE_{key.upper()}": value for key, value in settings.items()}}
        super().__init__(environment=given, ready="/healthz", output=folder / f"{name}.txt")
        self._prepare: Sequence[Callable[[], None]] = ()

    async def start(self, *prepare: Callable[[], None]) -> None:
        """Start it and wait until it answers; `prepare` is called in it first."""
        self._prepare = prepare
        await asyncio.to_thread(super().start)

    def _launch(self) -> None:
        port, given = int(self.url.rpartition(":")[2]), dict(self.environment or {})
        arguments = (str(self.output), os.getcwd(), given, port, self._prepare)
        self.process = _FORKS.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        self.process.join(seconds)
        assert self.process.exitcode is not None, "The server does not end."
        return int(self.process.exitcode)

    async def died(self) -> bool:
        """Wait until it ends by itself; raises AssertionError if it does not in time."""
        await asyncio.to_thread(self.wait)
        return True

    async def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The body of a response; raises OSError if there is none."""
        found: dict[str, Any] = (await asyncio.to_thread(super().ask, query, variables)).json
        return found


def _serve(
    said: str, directory: str, environment: dict[str, str], port: int, prepare: Sequence[Callable[[], None]]
) -> None:
    """Serve in the directory and the environment of now, not those in which the process began that forks."""
    output = os.open(said, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    for call in prepare:
        call()
    serve(host="127.0.0.1", port=port, workers=1)
