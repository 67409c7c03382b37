"""Limit of large reads: the number of requests that may hold many nodes in memory at a time."""

import asyncio

LARGE_READ_NODES = 500  # a request that reads no more never waits
MAX_LARGE_READS = 4  # more at a time would finish no sooner, since they compete for one processor


class LargeReadLimiter:
    """Slots for large reads, given out first come, first served.

    A request that has a slot never waits for another request, so there is no deadlock.
    """

    def __init__(self, max_slots: int = MAX_LARGE_READS) -> None:
        self.max_slots = max_slots
        self.slots_taken = 0
        self._waiting: dict[asyncio.Future[None], None] = {}  # an ordered set, since any of them may leave

    def take(self) -> "asyncio.Future[None]":
        """A slot, which is taken when the future is done; it has to be released, also before that."""
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[slot] = None
        self._assign()
        return slot

    def release(self, slot: "asyncio.Future[None]") -> None:
        """Release a slot, or stop waiting for it."""
        if slot.cancel():
            del self._waiting[slot]
        else:  # it was taken
            self.slots_taken -= 1
        self._assign()

    def _assign(self) -> None:
        while self._waiting and self.slots_taken < self.max_slots:
            slot = next(iter(self._waiting))
            del self._waiting[slot]
            slot.set_result(None)
            self.slots_taken += 1


class Slot:
    """The slot of one request, taken as soon as it expects to read more than LARGE_READ_NODES nodes.

    Without a limiter it never waits. After `close` no slot is taken.
    """

    def __init__(self, limiter: LargeReadLimiter | None) -> None:
        self._limiter = limiter
        self._expected_nodes = 0
        self._taken: asyncio.Future[None] | None = None
        self._is_closed = False

    def expect(self, nodes: int) -> None:
        """Announce that up to `nodes` more nodes are about to be read."""
        self._expected_nodes += nodes
        if (
            self._expected_nodes > LARGE_READ_NODES
            and self._taken is None
            and self._limiter is not None
            and not self._is_closed
        ):
            self._taken = self._limiter.take()

    async def wait(self) -> None:
        """Wait until the request may read the nodes that it expects."""
        if self._taken is not None and not self._taken.done():
            await asyncio.shield(self._taken)  # other reads of the request wait for it, too

    def close(self) -> None:
        """Release the slot, and take none again."""
        self._is_closed = True
        if self._taken is not None and self._limiter is not None:
            self._limiter.release(self._taken)
            self._taken = None
