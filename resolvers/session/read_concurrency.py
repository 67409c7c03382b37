"""Scheduler of one request's reads: so many at a time, and in rounds, which are what it waits for together."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from resolvers.session.large_read_limit import Slot
from store.engine.usage import LEAST_UNITS, ReadUsage

T = TypeVar("T")


class ReadScheduler:
    """Runs at most `parallel` reads at a time, from when the request has its `turn`; `number` is how many rounds.

    Reads that may take many units wait for each other where together they could pass the limit of `reads`.
    """

    def __init__(self, parallel: int, turn: Slot, reads: ReadUsage) -> None:
        self.number = 0
        self._turn = turn
        self._reads = reads
        self._running = 0
        self._stopped = False
        self._places = asyncio.Semaphore(parallel)
        self._expected = 0.0
        self._ended: asyncio.Event | None = None

    async def run(self, call: Coroutine[Any, Any, T], units: float = LEAST_UNITS) -> T:
        """The result of a read, which may take so many units until it looks at the limit again.

        Raises BudgetExceeded where the limit is reached.
        """
        self.number += self._running == 0
        self._running += 1
        try:
            await self._turn.come()
            # What starts in the same turn of the loop is one round, also where the store answers at once.
            await asyncio.sleep(0)
            async with self._places:
                if self._stopped:
                    raise asyncio.CancelledError
                while self._expected and self._reads.units + self._expected + units > self._reads.limit:
                    await self._until_one_ends()
                self._expected += units
                try:
                    return await call
                finally:
                    self._expected -= units
                    if self._ended is not None:
                        self._ended.set()
        finally:
            self._running -= 1
            call.close()  # one that never began would warn of it

    async def _until_one_ends(self) -> None:
        if self._ended is None or self._ended.is_set():
            self._ended = asyncio.Event()
        await self._ended.wait()

    def stop(self) -> None:
        """Let no other begin."""
        self._stopped = True
