"""How the reads of one request run: so many at a time, and in rounds, which are what it waits for together."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from resolvers.turns import Turn

T = TypeVar("T")


class Rounds:
    """Runs at most `parallel` reads at a time, from when the request has its `turn`; `number` is how many rounds."""

    def __init__(self, parallel: int, turn: Turn) -> None:
        self.number = 0
        self._turn = turn
        self._running = 0
        self._stopped = False
        self._places = asyncio.Semaphore(parallel)

    async def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a read."""
        self.number += self._running == 0
        self._running += 1
        try:
            await self._turn.come()
            # What starts in the same turn of the loop is one round, also where the store answers at once.
            await asyncio.sleep(0)
            async with self._places:
                if self._stopped:
                    raise asyncio.CancelledError
                return await call
        finally:
            self._running -= 1
            call.close()  # one that never began would warn of it

    def stop(self) -> None:
        """Let no other begin."""
        self._stopped = True
