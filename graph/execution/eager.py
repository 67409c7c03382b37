"""Work that most often need not wait, because what it asks for is kept: begun at once, and guarded only where it waits.

A time limit and a watch for the client cost a small answer more than its own making does.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class EagerCoroutine(Generic[T]):
    """A coroutine that has run as far as it could without waiting; awaiting it goes on from there.

    It runs in the task that makes it, which has to await it. Raises what the coroutine raises.
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
        # What it waits for goes up to the task, and what comes from there goes down, as `yield from` would do it from
        # the beginning on.
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
    """What some work comes to; raises TimeoutError where it waits for longer than this."""
    started = EagerCoroutine(work)
    if not started.is_done:
        async with asyncio.timeout(seconds):
            await started
    return started.result
