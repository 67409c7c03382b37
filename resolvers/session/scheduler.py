"""Schedulers of reads: what bounds the reads that run at once, in a request and in a process.

A *round* is a set of reads that are waited for together; `extensions.reads` reports the number of rounds.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

from resolvers.session.budget import gather_outcomes, raise_first_error
from store.concurrency import started, yield_to_loop
from store.engine import LEAST_UNITS, ReadUsage, Store
from store.errors import DamagedItem
from store.model.keys import Key, tree_version_key
from store.model.records import Item

T = TypeVar("T")
Items = dict[Key, Item | Exception | None]
"""Items by key, None where there is none, or the error of a failed read."""


def outcome_of(item: Item | Exception | None, read: Callable[[Item | None], T]) -> T | Exception:
    """What is read of an item, or the error of a failed read or of a damaged item."""
    try:
        return item if isinstance(item, Exception) else read(item)
    except DamagedItem as error:
        return error


LARGE_READ_NODES = 500  # a request that reads no more never waits for a permit
MAX_LARGE_READS = 4  # more at a time would finish no sooner, since they compete for one processor
MAX_PARALLEL_READS = 32  # half of the connections to DynamoDB, so that one request leaves some to others
READS_AT_ONCE = 8  # of an embedded store, between two yields to the event loop; larger reads yield themselves
MAX_ALIKE = 4


class DeferredRead(Generic[T]):
    """A read that begins when it is first awaited, at once and without a task; all who await it share its result."""

    __slots__ = ("_future", "_read")

    def __init__(self, read: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._read = read
        self._future: asyncio.Future[T] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        if self._future is None:
            self._future = started(self._read())
        return self._future.__await__()

    def cancel(self) -> None:
        """Cancel the read if it is running, and let it not begin."""
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
        self._future.cancel()


StartedRead = asyncio.Future[T] | DeferredRead[T]


class ReadScheduler:
    """Runs the reads of one request, and counts its rounds.

    At most MAX_PARALLEL_READS run at a time. Those of an embedded store would not overlap, so those that the task of
    the request makes, as a plan does, are made at once, where they are awaited: a small request makes no task and never
    waits. Those of other tasks, as of dataloaders, wait for the event loop: its iteration is their round.

    Before the request reads more than LARGE_READ_NODES nodes, it waits for one of the `permits`, which bound the
    requests that may hold many nodes in memory at a time; first come, first served. None for no bound. A request that
    has a permit never waits for another request, so there is no deadlock.

    Reads that may consume many units wait for each other where together they could pass the limit of `usage`.
    """

    def __init__(self, usage: ReadUsage, permits: asyncio.Semaphore | None, *, is_embedded: bool) -> None:
        self.rounds = 0
        self._usage, self._permits, self._is_embedded = usage, permits, is_embedded
        self._task = asyncio.current_task()
        self._permit: asyncio.Task[bool] | None = None
        self._expected_nodes = 0
        self._running = 0
        self._is_stopped = False
        self._expected_units = 0.0
        self._read_at_once = 0

    @property
    def _is_at_once(self) -> bool:
        return self._is_embedded and asyncio.current_task() is self._task

    @cached_property
    def _semaphore(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(MAX_PARALLEL_READS)

    @cached_property
    def _read_ended(self) -> asyncio.Event:
        return asyncio.Event()

    def expect(self, nodes: int) -> None:
        """Announce that up to `nodes` more nodes are about to be read."""
        self._expected_nodes += nodes

    async def run(self, read: Callable[[], Awaitable[T]], units: float = LEAST_UNITS) -> T:
        """The result of a read, which may consume up to `units` before it checks the limit again.

        `read` is called once its turn has come, so that a request which is cancelled before leaves no coroutine behind.
        Raises BudgetExceeded where the limit is reached, and CancelledError after `stop`.
        """
        self.rounds += self._running == 0
        self._running += 1
        try:
            if self._expected_nodes > LARGE_READ_NODES and self._permits is not None and not self._is_stopped:
                await self._take_permit(self._permits)
            if self._is_at_once:
                return await self._run_at_once(read)
            await asyncio.sleep(0)  # reads that begin in one iteration of the event loop are one round
            async with self._semaphore:
                if self._is_stopped:
                    raise asyncio.CancelledError
                while self._expected_units and self._expected_units + units > self._usage.units_left:
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

    async def _run_at_once(self, read: Callable[[], Awaitable[T]]) -> T:
        self._read_at_once += 1
        if self._read_at_once % READS_AT_ONCE == 0:
            await yield_to_loop()
        if self._is_stopped:
            raise asyncio.CancelledError
        return await read()

    def start(self, read: Callable[[], Coroutine[Any, Any, T]]) -> StartedRead[T]:
        """A read that several may await; it begins now, or if reads are made at once, when it is first awaited."""
        return DeferredRead(read) if self._is_at_once else asyncio.ensure_future(read())

    async def gather_outcomes(self, calls: Sequence[Awaitable[T]]) -> list[T | Exception]:
        """The results of calls whose reads are made together, as the function of this name returns them.

        Calls that are made at once have the rounds of the one that has the most.
        """
        if len(calls) == 1 or not self._is_at_once:
            return await gather_outcomes(calls)
        outcomes: list[T | Exception] = []
        before = last = self.rounds
        try:
            for call in calls:
                self.rounds = before
                try:
                    outcomes.append(await call)
                except Exception as error:
                    outcomes.append(error)
                last = max(last, self.rounds)
        finally:
            self.rounds = last
            for call in calls[len(outcomes) :]:
                if isinstance(call, Coroutine):  # not begun, since the request was cancelled
                    call.close()
        return outcomes

    async def gather_all(self, calls: Sequence[Awaitable[Any]]) -> list[Any]:
        """The results of calls whose reads are made together; once all have ended, raises the first Exception."""
        outcomes = await self.gather_outcomes(calls)
        raise_first_error(outcomes)
        return outcomes

    async def _take_permit(self, permits: asyncio.Semaphore) -> None:
        if self._permit is None:
            self._permit = asyncio.create_task(permits.acquire())
        if not self._permit.done():
            await asyncio.shield(self._permit)  # other reads of the request wait for it, too

    def stop(self) -> None:
        """Let no other read begin, and release the permit."""
        self._is_stopped = True
        taken, self._permit = self._permit, None
        if taken is not None and self._permits is not None and not taken.cancel() and not taken.cancelled():
            self._permits.release()


@dataclass(eq=False, slots=True)
class _Next:
    """A read that has not begun: how it is made, who is charged for it, and its result."""

    read: Callable[[ReadUsage], Awaitable[Any]]
    usage: ReadUsage
    result: "asyncio.Future[Any]"


class CoalescedReads:
    """The reads of one process that run now, by any value that is equal for reads that are alike.

    Only MAX_ALIKE of these run at the same time; callers that arrive meanwhile share the next one, which begins after
    all of them have arrived. So its result is as current as that of a separate read, while a read that is already
    running may be older than a write that they have seen. One item serves at most 3,000 strongly consistent reads a
    second, so the versions of trees that are read often are read like this.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
    """

    def __init__(self) -> None:
        self._running: Counter[Hashable] = Counter()
        self._next: dict[Hashable, _Next] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, identity: Hashable, read: Callable[[ReadUsage], Awaitable[T]], usage: ReadUsage) -> T:
        """The result of `read`, by a call of its own or by the next one that is shared; raises its errors."""
        if not self._begin(identity):
            return await self._share(identity, read, usage)
        try:
            return await read(usage)
        finally:
            self._end(identity)

    async def items(self, store: Store, keys: Sequence[Key], usage: ReadUsage, *, strong: bool) -> Items:
        """The items at these keys in one request, and in others the tree versions that are being read by too many."""
        versions = [key for key in keys if strong and key == tree_version_key(key.pk)]
        begun = [key for key in versions if self._begin(key)]
        try:
            shared = [key for key in versions if key not in begun]
            own = [key for key in keys if key not in shared]
            calls: list[Awaitable[list[Item | None]]] = [
                self._share(key, partial(store.get, [key], strong=True), usage) for key in shared
            ]
            if own:
                calls.append(store.get(own, usage, strong=strong))
            outcomes: list[Any] = await gather_outcomes(calls)
            raise_first_error(outcomes)
            items = [item for some in outcomes for item in some]
            return dict(zip([*shared, *own], items, strict=True))
        finally:
            for key in begun:
                self._end(key)

    def _begin(self, identity: Hashable) -> bool:
        """Whether another read like this may begin; then `_end` has to be called once it has ended."""
        if self._running[identity] >= MAX_ALIKE:
            return False
        self._running[identity] += 1
        return True

    def _end(self, identity: Hashable) -> None:
        """A read has ended, and the next one begins, if somebody waits for it."""
        self._running[identity] -= 1
        following = self._next.pop(identity, None)
        if following is not None:
            self._running[identity] += 1
            task = asyncio.ensure_future(self._run_next(identity, following))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif not self._running[identity]:
            del self._running[identity]

    def _share(
        self, identity: Hashable, read: Callable[[ReadUsage], Awaitable[T]], usage: ReadUsage
    ) -> "asyncio.Future[T]":
        """The result of the next read, which the first who waits for it is charged for; registered at once."""
        following = self._next.get(identity)
        if following is None:
            following = self._next[identity] = _Next(read, usage, asyncio.get_running_loop().create_future())
            # Its error is marked as retrieved, for the case that everyone who waits is cancelled.
            following.result.add_done_callback(lambda result: result.cancelled() or result.exception())
        return asyncio.shield(following.result)  # others share it

    async def _run_next(self, identity: Hashable, following: _Next) -> None:
        used = ReadUsage(limit=following.usage.limit)  # a budget of its own, since not everyone's may be used up
        try:
            following.result.set_result(await following.read(used))
        except Exception as error:
            following.result.set_exception(error)
        finally:
            following.usage.include(used)
            self._end(identity)
