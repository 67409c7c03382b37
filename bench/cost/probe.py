"""Probe in the measured process: the longest time that its event loop was blocked, its reads, and its memory.

It is an ASGI application around the measured one, and answers at PATH. A timer that is due every few milliseconds sees
how late it comes. Beside that time, in which another process may have had the core, it sees how much CPU the loop's
thread took meanwhile: that is what a computation blocks, also on a machine that is busy with others.
"""

import asyncio
import ctypes
import gc
import json
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/cost"
COLLECT = b"collect"  # as the query string of PATH: collect garbage and give memory back first
TICK_SECONDS = 0.005
MEMORY_LIMIT_BYTES = 6 * 1024**3


class Probe:
    """Adds PATH to an application; `requests` and `units` are the reads of its store so far."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.blocked = self.stalled = 0.0
        self._at = self._cpu = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH:
            await self._answer(scope["query_string"] == COLLECT, send)
            return
        if scope["type"] == "lifespan":
            self.start()
        await self._app(scope, receive, send)

    def start(self) -> None:
        """Start to watch the running event loop."""
        self._at, self._cpu = time.monotonic(), time.thread_time()
        asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def told(self) -> dict[str, float]:
        """The figures since the last call, and the reads since the start."""
        figures = {
            "blocked": self.blocked,
            "stalled": self.stalled,
            "requests": _tally.requests,
            "units": _tally.units,
            "memory_mb": memory_mb(),
        }
        self.blocked = self.stalled = 0.0
        return figures

    def _tick(self) -> None:
        now, cpu = time.monotonic(), time.thread_time()
        self.stalled = max(self.stalled, now - self._at - TICK_SECONDS)
        self.blocked = max(self.blocked, cpu - self._cpu)
        self._at, self._cpu = now, cpu
        asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    async def _answer(self, collects: bool, send: Send) -> None:
        if collects:
            await asyncio.sleep(2 * TICK_SECONDS)  # what ran before is seen by a tick, and what comes is not counted
            figures = self.told()
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
            self.start_anew()
            figures["memory_mb"] = memory_mb()
        else:
            await asyncio.sleep(2 * TICK_SECONDS)
            figures = self.told()
        body = json.dumps(figures).encode()
        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def start_anew(self) -> None:
        """Reset the figures."""
        self._at, self._cpu = time.monotonic(), time.thread_time()


class _Tally:
    """The reads of all requests."""

    def __init__(self) -> None:
        self.requests, self.units = 0, 0.0
        self._lock = threading.Lock()

    def counting(self, add: Callable[..., None]) -> Callable[..., None]:
        """`Reads.add`, which is counted here as well, even if it raises."""

        def counted(reads: Any, *given: Any, **named: Any) -> None:
            requests, units = reads.requests, reads.units
            try:
                add(reads, *given, **named)
            finally:
                with self._lock:
                    self.requests += reads.requests - requests
                    self.units += reads.units - units

        return counted


_tally = _Tally()


def install() -> None:
    """Make `clade serve` in this process serve the probe, with a limit of memory."""
    from commands.serving import workers
    from store.engine.usage import ReadUsage

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    ReadUsage.add = _tally.counting(ReadUsage.add)  # type: ignore[method-assign]
    make = workers.worker_app
    workers.worker_app = lambda: Probe(make())


def memory_mb(pid: int | str = "self", what: str = "VmRSS") -> float:
    """Memory of a process in MB, now or at its peak (`VmHWM`)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return 0.0
