"""Waiting for what can be asked for: it is asked for again and again, for some time at most."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar

SECONDS = 60.0  # at most, on a busy machine
PAUSE_SECONDS = 0.01

T = TypeVar("T")


def eventually(ask: Callable[[], T], seconds: float = SECONDS, problem: Callable[[], Exception] | None = None) -> T:
    """The first answer that is true. Raises the `problem` of the moment when the time is over."""
    end = time.monotonic() + seconds
    while not (found := ask()):
        if time.monotonic() > end:
            raise problem() if problem else AssertionError(f"After {seconds:.0f} s the answer is {found!r}.")
        time.sleep(PAUSE_SECONDS)
    return found


async def until(ask: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The same in an event loop; what is asked may be a coroutine."""
    end = time.monotonic() + seconds
    while not (found := await answer if inspect.isawaitable(answer := ask()) else answer):
        assert time.monotonic() < end, f"After {seconds:.0f} s the answer is {found!r}."
        await asyncio.sleep(PAUSE_SECONDS)
    return found
