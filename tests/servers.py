"""Servers as processes of their own, so that they can be killed at any moment.

They are forked from a process that has loaded everything, since loading takes a second of each start.
"""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import httpx

import graph.app  # noqa: F401 - both are loaded here so that no server has to
from commands.serve import serve
from tests.ports import free_port

START_SECONDS = 60.0
STOP_SECONDS = 60.0
ANSWER_SECONDS = 60.0

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["pytest", "tests.servers"])  # pytest: a child looks for its main module


def fork(said: Path, settings: dict[str, str], call: Callable[..., None], *arguments: Any) -> ForkServerProcess:
    """A process that makes a call with these settings in its environment; its output is appended to a file.

    Directory and environment are those of now, not those in which the process started from which it is forked.
    """
    environment = {**os.environ, **settings}
    process = _FORKS.Process(target=_run, args=(str(said), os.getcwd(), environment, call, arguments), daemon=True)
    process.start()
    return process


def _run(
    said: str, directory: str, environment: dict[str, str], call: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    call(*arguments)


class Server:
    """`clade serve` with these settings, on another port after each start."""

    def __init__(self, folder: Path, name: str, **settings: str) -> None:
        self.said = folder / f"{name}.txt"
        self.url = ""
        self._settings = {f"CLADE_{key.upper()}": value for key, value in settings.items()}
        self._process: ForkServerProcess | None = None
        self._client = httpx.AsyncClient(timeout=ANSWER_SECONDS)

    async def start(self, *prepare: Callable[[], None]) -> None:
        """Start it and wait until it answers; `prepare` is called in it first."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._process = fork(self.said, self._settings, _serve, port, prepare)
        end = time.monotonic() + START_SECONDS
        while not await self._answers():
            assert self._process.is_alive(), self.said.read_text()
            assert time.monotonic() < end, "The server does not start."
            await asyncio.sleep(0.02)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.join(STOP_SECONDS)
            assert not self._process.is_alive()

    async def stop(self) -> None:
        """Let it end by itself, with its last lines written."""
        os.kill(self.pid, signal.SIGTERM)
        assert await self.died()

    async def disconnect(self) -> None:
        """Close the connections of its client, which asks nothing afterwards."""
        await self._client.aclose()

    async def close(self) -> None:
        """Kill it, and close its client."""
        self.kill()
        await self._client.aclose()

    @property
    def pid(self) -> int:
        assert self._process is not None
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    async def died(self) -> bool:
        """Wait until it ends by itself; whether it does in time."""
        assert self._process is not None
        await asyncio.to_thread(self._process.join, STOP_SECONDS)
        return not self._process.is_alive()

    async def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The body of a response; raises httpx.TransportError if there is none."""
        answer = await self._client.post(f"{self.url}/graphql", json={"query": query, "variables": variables})
        body: dict[str, Any] = answer.json()
        return body

    async def _answers(self) -> bool:
        try:
            return (await self._client.get(f"{self.url}/healthz")).status_code == 200
        except httpx.TransportError:
            return False


def _serve(port: int, prepare: Sequence[Callable[[], None]]) -> None:
    for call in prepare:
        call()
    serve(host="127.0.0.1", port=port, workers=1)
