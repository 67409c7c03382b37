"""Coalesced reads: only a few equal reads run at the same time in one process; callers that arrive meanwhile share the
next one. The next one begins after all callers that share it have arrived. So its result is as current as that of a
separate read, while a read that is already running may be older than a write that they have seen. One item serves at
most 3,000 strongly consistent reads a second, so the versions of trees that are read often are read like this.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html

Limit of large reads: the number of requests that may hold many nodes in memory at a time.

A request that has a slot never waits for another request, so there is no deadlock.

Read scheduler: runs the reads of one request, a limited number at a time, and counts rounds.

A round is a set of reads that are waited for together; `extensions.reads` reports the number of rounds.

Shared reads: the reads of one attempt at a response, each started once and awaited by everyone who needs it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from resolvers.session.budget import gather_all
from store.engine import LEAST_UNITS, ReadUsage, Store, units_of
from store.errors import CladeError
from store.model.keys import Key, tree_version_key
from store.model.records import Item

T = TypeVar("T")
Items = dict[Key, Item | Exception | None]

MAX_ALIKE = 4


@dataclass(eq=False, slots=True)
class _Next:
    """A read that has not begun: how it is made, who is charged for it, and its result."""

    read: Callable[[ReadUsage], Awaitable[Any]]
    usage: ReadUsage
    result: "asyncio.Future[Any]"


class CoalescedReads:
    """The reads of one process that run now, by any value that is equal for reads that are alike."""

    def __init__(self) -> None:
        self._running: Counter[Hashable] = Counter()
        self._next: dict[Hashable, _Next] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, identity: Hashable) -> bool:
        """Whether another read like this may begin; then `end` has to be called once it has ended."""
        if self._running[identity] >= MAX_ALIKE:
            return False
        self._running[identity] += 1
        return True

    def end(self, identity: Hashable) -> None:
        """A read has ended, and the next one begins, if somebody waits for it."""
        self._running[identity] -= 1
        following = self._next.pop(identity, None)
        if following is not None:
            self._running[identity] += 1
            task = asyncio.ensure_future(self._run(identity, following))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif not self._running[identity]:
            del self._running[identity]

    async def run(self, identity: Hashable, read: Callable[[ReadUsage], Awaitable[T]], usage: ReadUsage) -> T:
        """The result of `read`, by a call of its own or by the next one that is shared; raises its errors."""
        if not self.begin(identity):
            return await self.next(identity, read, usage)
        try:
            return await read(usage)
        finally:
            self.end(identity)

    def next(
        self, identity: Hashable, read: Callable[[ReadUsage], Awaitable[T]], usage: ReadUsage
    ) -> "asyncio.Future[T]":
        """The result of the next read, which the first who waits for it is charged for; registered at once."""
        following = self._next.get(identity)
        if following is None:
            following = self._next[identity] = _Next(read, usage, asyncio.get_running_loop().create_future())
            following.result.add_done_callback(_retrieve)
        return asyncio.shield(following.result)  # others share it

    async def _run(self, identity: Hashable, following: _Next) -> None:
        used = ReadUsage(limit=following.usage.limit)  # a budget of its own, since not everyone's may be used up
        try:
            following.result.set_result(await following.read(used))
        except Exception as error:
            following.result.set_exception(error)
        finally:
            following.usage.include(used)
            self.end(identity)


def _retrieve(result: "asyncio.Future[Any]") -> None:
    """Mark the error of a read as retrieved, for the case that everyone who waited was cancelled."""
    if not result.cancelled():
        result.exception()


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


MAX_PARALLEL_READS = 32  # half of the connections to DynamoDB, so that one request leaves some to others


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


BATCH_KEYS = 100  # DynamoDB's limit of one BatchGetItem, which fails as a whole


class SharedReads:
    """Reads of a store, by key (of items) or by any other value that identifies them.

    `coalesced` are the reads of the process that are shared between requests: of tree versions, and of ranges. After
    `end`, running reads are cancelled, their results are dropped, and no read begins.
    """

    def __init__(self, store: Store, usage: ReadUsage, scheduler: ReadScheduler, coalesced: CoalescedReads) -> None:
        self._store, self._usage, self._scheduler, self._coalesced = store, usage, scheduler, coalesced
        self._reads: dict[Hashable, asyncio.Future[Any]] = {}
        self._strong: set[Key] = set()
        self._has_ended = False

    def end(self) -> None:
        self._has_ended = True
        for read in self._reads.values():
            read.cancel()
        self._reads = {}

    async def run(self, read: Callable[[], Awaitable[T]], units: float = LEAST_UNITS) -> T:
        """The result of a read that is not shared, as from `ReadScheduler.run`; raises CancelledError after the end."""
        result = await self._scheduler.run(read, units)
        if self._has_ended:
            raise asyncio.CancelledError
        return result

    def once(self, identity: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Future[T]":
        """The read of this identity: the one that was started before, or else a new one, started at once."""
        return self._reads.get(identity) or self._start(identity, read)

    def _start(self, identity: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Future[T]":
        if self._has_ended:
            raise asyncio.CancelledError
        started = self._reads[identity] = asyncio.ensure_future(read())
        return started

    def has_read(self, key: Key) -> bool:
        """Whether the read of an item was started before."""
        return key in self._reads

    def forget_items(self, is_outdated: Callable[[Key], bool]) -> None:
        """Let the items at these keys be read again."""
        self._reads = {
            identity: read
            for identity, read in self._reads.items()
            if not (isinstance(identity, Key) and is_outdated(identity))
        }

    async def items(self, keys: Sequence[Key], needs_strong: Callable[[Key], bool]) -> Items:
        """The items at these keys in their order, None where there is none, or the error of a failed read.

        Each key is read once, or twice if the first read was weak and the key now `needs_strong` consistency.
        """
        if not keys:
            return {}
        new = [key for key in keys if key not in self._reads or (needs_strong(key) and key not in self._strong)]
        for start in range(0, len(new), BATCH_KEYS):
            batch = new[start : start + BATCH_KEYS]
            strong = any(map(needs_strong, batch))
            if strong:
                self._strong.update(batch)
            read = self._start(batch[0], partial(self._read_batch, batch, strong=strong))
            self._reads.update(dict.fromkeys(batch, read))
        found: Items = {}
        for outcomes in await asyncio.gather(*dict.fromkeys([self._reads[key] for key in keys])):
            found.update(outcomes)
        return {key: found[key] for key in keys}

    async def _read_batch(self, keys: list[Key], *, strong: bool) -> Items:
        try:
            return await self.run(partial(self._get, keys, strong=strong), len(keys) * units_of(0, strong=strong))
        except CladeError as error:
            return dict.fromkeys(keys, error.bare())
        except Exception as error:  # raised by everyone who needs one of these keys
            return dict.fromkeys(keys, error)

    async def _get(self, keys: list[Key], *, strong: bool) -> Items:
        """The items at these keys in one request, and in others the tree versions that are being read by too many."""
        versions = [key for key in keys if strong and key == tree_version_key(key.pk)]
        begun = [key for key in versions if self._coalesced.begin(key)]
        try:
            shared = [key for key in versions if key not in begun]
            own = [key for key in keys if key not in shared]
            calls: list[Awaitable[list[Item | None]]] = [
                self._coalesced.next(key, partial(self._store.get, [key], strong=True), self._usage) for key in shared
            ]
            if own:
                calls.append(self._store.get(own, self._usage, strong=strong))
            items = [item for some in await gather_all(calls) for item in some]
            return dict(zip([*shared, *own], items, strict=True))
        finally:
            for key in begun:
                self._coalesced.end(key)
