"""Coalesced reads: only a few equal reads run at the same time in one process; callers that arrive meanwhile share the
next one. The next one begins after all callers that share it have arrived. So its result is as current as that of a
separate read, while a read that is already running may be older than a write that they have seen. One item serves at
most 3,000 strongly consistent reads a second, so the versions of trees that are read often are read like this.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from store.engine import ReadUsage

MAX_ALIKE = 4

T = TypeVar("T")


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
