"""Time limits of requests that run out when a test says so, and calls of an engine that wait until then."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiohttp import web

from tests.proxy import Call, Forward
from tests.waiting import until

SECONDS = 60.0  # at most until a request begins or a call arrives, on a busy machine


class TimeLimits:
    """The time limits of all requests of this process, none of which runs out by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.running: list[tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = []
        monkeypatch.setattr("graph.execution.operation.within", self._within)

    async def _within(self, seconds: float, work: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(None) as limit:
            running = asyncio.get_running_loop(), limit
            self.running.append(running)
            try:
                return await work
            finally:
                self.running.remove(running)

    async def run_out(self) -> None:
        """End the only request that runs, which may have to begin."""
        await until(lambda: self.running)  # in the thread of the server
        ((loop, limit),) = self.running
        loop.call_soon_threadsafe(limit.reschedule, 0.0)


class Held:
    """A fault of a proxy: the call waits until `may_go` is set, and is made then."""

    def __init__(self) -> None:
        self._arrived, self.may_go = asyncio.Event(), asyncio.Event()

    async def __call__(self, call: Call, forward: Forward) -> web.Response:
        self._arrived.set()
        await self.may_go.wait()
        return await forward(call.body)

    async def arrived(self) -> None:
        await asyncio.wait_for(self._arrived.wait(), SECONDS)
