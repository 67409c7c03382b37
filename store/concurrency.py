"""Concurrency of one process: long computation that yields so that the event loop serves others, coroutines that run
at once until they wait, locks of trees, and the delays between attempts.
"""

import asyncio
import itertools
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, Self, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

T = TypeVar("T")
CHUNK_LENGTH = 500  # nodes or rows; most computations take some milliseconds for so many
SLICE_SECONDS = 0.01  # of computation at a time, by all coroutines of one event loop together
MAX_RESUMED = 32  # coroutines, in one iteration of the loop


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


async def yield_to_loop() -> None:
    """Yield to the event loop if its slice of computation is used up, else return at once.

    A coroutine that calls this every few milliseconds never blocks the loop for long, and its timeout and cancellation
    take effect although it awaits no I/O.
    """
    current = _slice()
    if current.is_over():
        await current.next()


class _TimeSlice:
    """The current slice of computation of one event loop, and the coroutines that wait for the next one.

    All coroutines of the loop share it, and a few are resumed at a time: a thousand of them in one iteration of the
    loop would compute for a thousand slices before anything else is served.
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
        while self._waiting and resumed < MAX_RESUMED:
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


class EagerCoroutine(Generic[T]):
    """A coroutine that has run until it first waits; awaiting this object continues it.

    It has to be awaited in the same task where the coroutine uses the current one, as `asyncio.timeout` does. Raises
    the errors of the coroutine.
    """

    __slots__ = ("_waits_for", "_work", "is_done", "result")

    result: T

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.is_done = False
        try:
            self._waits_for: Any = work.send(None)
        except StopIteration as ended:
            self._finish(ended)

    def __await__(self) -> Generator[Any, Any, T]:
        # As `yield from` does it: futures go up to the task, results and errors go down to the coroutine.
        while not self.is_done:
            try:
                try:
                    sent = yield self._waits_for
                except BaseException as error:
                    self._waits_for = self._work.throw(error)
                else:
                    self._waits_for = self._work.send(sent)
            except StopIteration as ended:
                self._finish(ended)
        return self.result

    def _finish(self, ended: StopIteration) -> None:
        self.is_done = True
        self.result = ended.value


def started(work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
    """The future of a coroutine that has run until it first waits, and then goes on as a task."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    try:
        eager = EagerCoroutine(work)
        if not eager.is_done:
            return asyncio.ensure_future(eager)
        future.set_result(eager.result)
    except asyncio.CancelledError:
        future.cancel()
    except Exception as error:
        future.set_exception(error)
        future.exception()  # marks it as retrieved
    return future


async def in_task() -> None:
    """Go on within a task. What runs before its first wait (`EagerCoroutine`) may be in none, but asyncio's timeouts
    need one, as do libraries and the code of users.
    """
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine. Raises TimeoutError if it waits for longer than `seconds`."""
    started = EagerCoroutine(work)
    if not started.is_done:
        await in_task()
        async with asyncio.timeout(seconds):
            await started
    return started.result


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks, which end while the block runs; of their errors the first is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


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


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The bound of a delay is `first_seconds`, and doubles with each attempt up to `longest_seconds`.

    There are at most `attempts`, None for any number, and none that begins later than `deadline_seconds` after the
    first one has failed.
    """

    first_seconds: float
    longest_seconds: float
    attempts: int | None = None
    deadline_seconds: float = inf

    def delays(self) -> Iterator[float]:
        """The seconds to wait before each attempt, 0 before the first."""
        yield 0.0
        yield from self.pauses()

    def pauses(self) -> Iterator[float]:
        """The seconds to wait after each attempt that has failed but the last."""
        end = time.monotonic() + self.deadline_seconds
        bound = self.first_seconds
        for _ in itertools.count() if self.attempts is None else range(self.attempts - 1):
            if time.monotonic() > end:
                return
            yield random.uniform(0.0, bound)  # noqa: S311 - no secret
            bound = min(2 * bound, self.longest_seconds)
