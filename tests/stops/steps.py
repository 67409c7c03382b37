"""Work that is cancelled at a chosen step: a step is a run of one of its tasks from one await to the next."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Generator
from contextvars import ContextVar
from typing import Any

_counting: ContextVar["Steps | None"] = ContextVar("counting", default=None)


class Steps:
    """Counts the steps of a task and of all tasks that it makes, and cancels the task at the step `stop_at`."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.taken = 0
        self._stop_at = stop_at
        self._task: asyncio.Task[Any] | None = None

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What the work returns; raises CancelledError where it was cancelled before it was done."""
        token = _counting.set(self)
        self._task = asyncio.create_task(work)
        _counting.reset(token)
        return await self._task

    def take(self) -> None:
        self.taken += 1
        if self.taken == self._stop_at and self._task is not None:
            self._task.cancel()


class _Counted(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are counted."""

    def __init__(self, work: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._work = work
        self._steps = steps

    def send(self, value: Any) -> Any:
        self._steps.take()
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        self._steps.take()
        return self._work.throw(*error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()


def _task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
    steps = _counting.get()
    return asyncio.Task(work if steps is None else _Counted(work, steps), loop=loop, **options)


@contextlib.asynccontextmanager
async def counted_steps() -> AsyncIterator[None]:
    """Within it the steps of tasks can be counted."""
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    loop.set_task_factory(_task)
    try:
        yield
    finally:
        loop.set_task_factory(before)
