"""Cooperative yielding: long computation in a coroutine, interrupted so that the event loop serves others."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, Self, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

T = TypeVar("T")

CHUNK_LENGTH = 500  # of nodes or rows, with which most things take some milliseconds
SLICE_SECONDS = 0.01  # of computation at a time, by all coroutines of one event loop together
AT_A_TIME = 32  # coroutines that are resumed in one iteration of the loop


class _TimeSlice:
    """The current slice of computation of one event loop, and the coroutines that wait for the next.

    All coroutines of the loop share it, and are resumed a few at a time: a thousand that were ready in the same
    iteration of the loop would else compute for a thousand slices before anything else is served.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._began = time.monotonic()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

    def is_over(self) -> bool:
        return time.monotonic() - self._began >= SLICE_SECONDS

    async def next(self) -> None:
        while self.is_over():
            turn = self._loop.create_future()
            self._waiting.append(turn)
            self._schedule()
            await turn

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._resume)  # in the next iteration, after the loop has looked for other events

    def _resume(self) -> None:
        self._is_scheduled = False
        if self.is_over():
            self._began = time.monotonic()
        resumed = 0
        while self._waiting and resumed < AT_A_TIME:
            turn = self._waiting.popleft()
            if not turn.done():  # nobody has cancelled it
                turn.set_result(None)
                resumed += 1
        if self._waiting:
            self._schedule()


_slices: WeakKeyDictionary[asyncio.AbstractEventLoop, _TimeSlice] = WeakKeyDictionary()


def _slice() -> _TimeSlice:
    loop = asyncio.get_running_loop()
    found = _slices.get(loop)
    if found is None:
        found = _slices[loop] = _TimeSlice(loop)
    return found


def is_slice_over() -> bool:
    """Whether the loop's slice of computation is used up, so that `give_way` would yield."""
    return _slice().is_over()


async def yield_to_loop() -> None:
    """Yield to the event loop if its slice of computation is used up; returns at once if not.

    A coroutine that calls this every few milliseconds never blocks the loop for long, and its time limit and its
    cancellation take effect although it waits for nothing.
    """
    current = _slice()
    if current.is_over():
        await current.next()


class in_chunks(Generic[T]):
    """All of some things in pieces of at most so many, yielding between two of them where a slice is used up."""

    # No generator: the loop looks after each of these, which takes longer than most lists do.
    def __init__(self, things: Sequence[T], piece: int = CHUNK_LENGTH) -> None:
        self._things = things
        self._piece = piece
        self._start = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[T]:
        start = self._start
        if start >= len(self._things):
            raise StopAsyncIteration
        if start:
            await yield_to_loop()
        self._start = start + self._piece
        return self._things[start : self._start]


class TreeLocks:
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
