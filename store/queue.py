"""The order in which this process writes to a tree: one transaction after another, first come, first served.

Every transaction requires the stamp that it saw, so two at a time would only make one of them repeat its reads.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary


class Queue:
    """The turns of all trees that anybody waits for."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, partitions: Iterable[str]) -> AsyncIterator[None]:
        """Wait until nobody else here writes to these partitions; all wait in one order, so none in a ring."""
        locks = [self._locks.setdefault(one, asyncio.Lock()) for one in sorted(set(partitions))]
        async with AsyncExitStack() as held:
            for lock in locks:
                await held.enter_async_context(lock)
            yield
