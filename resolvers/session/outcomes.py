"""Outcomes: results of reads made together, with the error of a failed read in the place of its result."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def gather_outcomes(calls: Sequence[Awaitable[T]]) -> list[T | Exception]:
    """Await calls side by side; an Exception is returned in its place.

    Raises what is no Exception, such as CancelledError after the reads of the request were discarded.
    """
    outcomes: list[T | Exception] = []
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
            raise outcome
        outcomes.append(outcome)
    return outcomes


async def gather_all(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """The results of calls made side by side; once all have ended, raises the first Exception among them."""
    if len(calls) == 1:  # needs no task
        return [await calls[0]]
    outcomes = await gather_outcomes(calls)
    raise_first_error(outcomes)
    return outcomes


def raise_first_error(outcomes: Iterable[object]) -> None:
    """Raise the first Exception among outcomes, if there is one."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
