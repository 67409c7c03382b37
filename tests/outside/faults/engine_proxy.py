"""A proxy between servers and a DynamoDB engine, in a thread of its own, and the faults that it injects at random."""

import asyncio
import threading
from typing import Any

from aiohttp import web

from tests.proxy import (
    Call,
    Fault,
    Forward,
    Proxy,
    answer_dropped,
    cancelled,
    cut,
    delayed,
    dropped,
    garbled,
    refused,
    status,
    throttled,
)

START_SECONDS = 60.0


class EngineProxy(Proxy):
    """Listens in a thread until the block ends; `handle` is the fault of each call, `running` how many are answered."""

    def __init__(self, target: str, handle: Fault) -> None:
        super().__init__(target)
        self.running = 0
        self._handle = handle
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def fault_for(self, call: Call) -> Fault:
        return self._counted

    def __enter__(self) -> "EngineProxy":
        self._thread.start()
        self._run(self.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self.__aexit__(*error))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS)

    async def _counted(self, call: Call, forward: Forward) -> web.Response:
        self.running += 1
        try:
            return await self._handle(call, forward)
        finally:
            self.running -= 1


async def _throttle(call: Call, forward: Forward) -> web.Response:
    """Throttle the call, a transaction by its first change."""
    if call.operation != "TransactWriteItems":
        return await throttled(call, forward)
    others = len(call.body["TransactItems"]) - 1
    return await cancelled("ThrottlingError", *["None"] * others)(call, forward)


def _after(fault: Fault) -> Fault:
    """The fault, but the engine has got the call."""

    async def after(call: Call, forward: Forward) -> web.Response:
        await forward(call.body)
        return await fault(call, forward)

    return after


def faults(seconds: float) -> dict[str, Fault]:
    """The faults by their names; those that delay a call or its response do so for as long."""

    async def late(call: Call, forward: Forward) -> web.Response:
        answer = await forward(call.body)
        await asyncio.sleep(seconds)
        return answer

    return {
        "throttle": _throttle,
        "drop before": dropped,
        "drop after": answer_dropped,
        "cut": cut,
        "late": late,
        "slow": delayed(seconds),
        "garble": garbled,
        "error before": refused("InternalServerError", 500),
        "error after": _after(refused("ServiceUnavailable", 503)),
        "page of a load balancer": _after(status(502)),
    }
