"""Limit of large reads: the number of requests that may hold many nodes in memory at a time.

A request that has a slot never waits for another request, so there is no deadlock.
"""

import asyncio

LARGE_READ_NODES = 500  # a request that reads no more never waits
MAX_LARGE_READS = 4  # more at a time would finish no sooner, since they compete for one processor


class Slot:
    """The slot of one request, taken before it reads more than LARGE_READ_NODES nodes; first come, first served.

    `limiter` counts the slots that are left; without one it never waits. After `close` no slot is taken.
    """

    def __init__(self, limiter: asyncio.Semaphore | None) -> None:
        self._limiter = limiter
        self._expected_nodes = 0
        self._taken: asyncio.Task[bool] | None = None
        self._is_closed = False

    def expect(self, nodes: int) -> None:
        """Announce that up to `nodes` more nodes are about to be read."""
        self._expected_nodes += nodes

    async def wait(self) -> None:
        """Wait until the request may read the nodes that it expects."""
        if self._expected_nodes <= LARGE_READ_NODES or self._limiter is None or self._is_closed:
            return
        if self._taken is None:
            self._taken = asyncio.create_task(self._limiter.acquire())
        if not self._taken.done():
            await asyncio.shield(self._taken)  # other reads of the request wait for it, too

    def close(self) -> None:
        """Release the slot, and take none again."""
        self._is_closed = True
        taken, self._taken = self._taken, None
        if taken is not None and self._limiter is not None and not taken.cancel() and not taken.cancelled():
            self._limiter.release()
