"""Cooperative yielding: long computation in a coroutine, interrupted so that the event loop serves others."""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, Self, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

T = TypeVar("T")

CHUNK_LENGTH = 500  # nodes or rows; most computations take some milliseconds for so many
SLICE_SECONDS = 0.01  # of computation at a time, by all coroutines of one event loop together
MAX_RESUMED = 32  # coroutines, in one iteration of the loop
GATHER_SECONDS = 0.1


class TimeSlice:
    """The current slice of computation of one event loop, and the coroutines that wait for the next one in their order.

    All coroutines that compute share one of the loop, and a few are resumed at a time: a thousand of them in one
    iteration of the loop would compute for a thousand slices before anything else is served.
    """

    def __init__(self, *, gathers: bool = False) -> None:
        """With `gathers` a slice begins when no other coroutine comes any more, but waits at most for as long as the
        slice before has taken, and for GATHER_SECONDS.
        """
        self._gathers = gathers
        self._gathers_until = 0.0
        self._has_come = False
        self._began = time.monotonic()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []  # a heap by the numbers of their turns
        self._numbers = itertools.count()
        self._is_scheduled = False
        self._is_new = False

    def is_over(self) -> bool:
        return time.monotonic() - self._began >= SLICE_SECONDS

    def has_waiting(self) -> bool:
        return bool(self._waiting)

    async def next(self) -> None:
        """Wait for a slice that is not used up. Who finds it used up by those before keeps its place."""
        number, self._has_come = next(self._numbers), True
        while True:
            turn = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (number, turn))
            self._schedule()
            await turn
            if self._is_new:  # so that the first one continues, however long the loop served others before
                self._is_new, self._began = False, time.monotonic()
                return
            if not self.is_over():
                return

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            # In the next iteration, after the loop has looked for other events.
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        self._is_scheduled = False
        if self._gathers and self._goes_on_gathering():
            return self._schedule()
        self._is_new = self._is_new or self.is_over()
        resumed = 0
        while self._waiting and resumed < MAX_RESUMED:
            _, turn = heapq.heappop(self._waiting)
            if not turn.done():  # nobody has cancelled it
                turn.set_result(None)
                resumed += 1
        if self._waiting:
            self._schedule()

    def _goes_on_gathering(self) -> bool:
        has_come, self._has_come, now = self._has_come, False, time.monotonic()
        if not self._gathers_until:
            self._gathers_until = now + min(now - self._began, GATHER_SECONDS)
        if has_come and now < self._gathers_until:
            return True
        self._gathers_until = 0.0
        return False


_slices: WeakKeyDictionary[asyncio.AbstractEventLoop, TimeSlice] = WeakKeyDictionary()


def _slice() -> TimeSlice:
    loop = asyncio.get_running_loop()
    found = _slices.get(loop)
    if found is None:
        found = _slices[loop] = TimeSlice()
    return found


def is_slice_over() -> bool:
    """Whether the loop's slice of computation is used up, so that `yield_to_loop` would yield."""
    return _slice().is_over()


async def yield_to_loop() -> None:
    """Yield to the event loop if its slice of computation is used up, else return at once.

    A coroutine that calls this every few milliseconds never blocks the loop for long, and its timeout and cancellation
    take effect although it awaits no I/O.
    """
    current = _slice()
    if current.is_over():
        await current.next()


class in_chunks(Generic[T]):
    """Iterate over items in chunks of at most `length`, yielding between two where a slice is used up."""

    # No generator: the loop tracks each asynchronous one, which takes longer than most lists do.
    def __init__(self, items: Sequence[T], length: int = CHUNK_LENGTH) -> None:
        self._items = items
        self._length = length
        self._start = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[T]:
        start = self._start
        if start >= len(self._items):
            raise StopAsyncIteration
        if start:
            await yield_to_loop()
        self._start = start + self._length
        return self._items[start : self._start]


class TreeLocks:
    """Locks of partitions (trees, and hierarchies for their roots), so that writers of one process queue for them."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, partitions: Iterable[str]) -> AsyncIterator[None]:
        """Hold the locks of these partitions; all are acquired in the same order, so there is no deadlock."""
        locks = [self._locks.setdefault(partition, asyncio.Lock()) for partition in sorted(set(partitions))]
        async with AsyncExitStack() as held:
            for lock in locks:
                await held.enter_async_context(lock)
            yield
