"""Read scheduler: runs the reads of one request, a limited number at a time, and counts rounds.

A round is a set of reads that are waited for together; `extensions.reads` reports the number of rounds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from resolvers.session.large_read_limit import Slot
from store.engine import LEAST_UNITS, ReadUsage

MAX_PARALLEL_READS = 32  # half of the connections to DynamoDB, so that one request leaves some to others

T = TypeVar("T")


class ReadScheduler:
    """Runs at most MAX_PARALLEL_READS reads at a time, once the request has its slot for large reads.

    Reads that may consume many units wait for each other where together they could pass the limit of `usage`.
    """

    def __init__(self, slot: Slot, usage: ReadUsage) -> None:
        self.rounds = 0
        self._slot = slot
        self._usage = usage
        self._running = 0
        self._is_stopped = False
        self._semaphore = asyncio.Semaphore(MAX_PARALLEL_READS)
        self._expected_units = 0.0
        self._read_ended = asyncio.Event()

    async def run(self, read: Callable[[], Awaitable[T]], units: float = LEAST_UNITS) -> T:
        """The result of a read, which may consume up to `units` before it checks the limit again.

        `read` is called once its turn has come, so that a request which is cancelled before leaves no coroutine behind.
        Raises BudgetExceeded where the limit is reached, and CancelledError after `stop`.
        """
        self.rounds += self._running == 0
        self._running += 1
        try:
            await self._slot.wait()
            # Reads that begin in one iteration of the event loop are one round, even if the store answers at once.
            await asyncio.sleep(0)
            async with self._semaphore:
                if self._is_stopped:
                    raise asyncio.CancelledError
                while self._expected_units and self._usage.counted + self._expected_units + units > self._usage.limit:
                    self._read_ended.clear()
                    await self._read_ended.wait()
                self._expected_units += units
                try:
                    return await read()
                finally:
                    self._expected_units -= units
                    self._read_ended.set()
        finally:
            self._running -= 1

    def stop(self) -> None:
        """Let no other read begin."""
        self._is_stopped = True
