"""Eager coroutines: run at once until they first wait; most responses need no wait, because their data is cached.

A time limit and a check for disconnects, which only a waiting coroutine needs, cost more than a small response does.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class EagerCoroutine(Generic[T]):
    """A coroutine that has run until it first waits; awaiting this object continues it.

    It runs in the current task, which has to await it. Raises the errors of the coroutine.
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


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine. Raises TimeoutError if it waits for longer than `seconds`."""
    started = EagerCoroutine(work)
    if not started.is_done:
        async with asyncio.timeout(seconds):
            await started
    return started.result
