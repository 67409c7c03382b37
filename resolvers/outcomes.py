"""Outcome: the value of a read, or the error with which it failed, in the place where the value is expected.

Reads that are made together fail one by one, so their results are outcomes. `is_error` tells the two apart; a value
that is an error itself does not occur.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from store.errors import CladeError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

T = TypeVar("T")
V = TypeVar("V")
Outcome: TypeAlias = T | Exception


def is_error(outcome: object) -> "TypeIs[Exception]":
    """Whether an outcome is the error of a read."""
    return isinstance(outcome, Exception)


def errors_in(outcomes: Sequence[object]) -> list[int]:
    """The indices of the errors among outcomes."""
    for kind in set(map(type, outcomes)):  # there are few types, and mostly no error
        if issubclass(kind, Exception):
            return [index for index, one in enumerate(outcomes) if isinstance(one, Exception)]
    return []


def outcome_of(call: Callable[..., T], *arguments: Any) -> Outcome[T]:
    """The result of a call, or the error that it raised."""
    try:
        return call(*arguments)
    except CladeError as error:
        return error.bare()


def then(outcome: Outcome[V], call: Callable[[V], T]) -> Outcome[T]:
    """The result of a call with the value of an outcome, or the error of either."""
    return outcome if isinstance(outcome, Exception) else outcome_of(call, outcome)


def each_of(outcome: Outcome[Sequence[T]], count: int) -> Sequence[Outcome[T]]:
    """The results of a batch of so many; an error of the whole batch is that of each."""
    return [outcome] * count if isinstance(outcome, Exception) else outcome


def raise_first_error(outcomes: Iterable[object]) -> None:
    """Raise the first error among outcomes, if there is one."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def awaited(call: Awaitable[T]) -> Outcome[T]:
    """The outcome of one call, which needs no task."""
    try:
        return await call
    except Exception as error:
        return error


async def gather_outcomes(calls: Sequence[Awaitable[T]]) -> list[Outcome[T]]:
    """The outcomes of calls that are awaited concurrently.

    Raises what is no Exception, such as CancelledError after the reads of the request were discarded.
    """
    if len(calls) < 2:
        return [await awaited(call) for call in calls]
    outcomes: list[Outcome[T]] = []
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
            raise outcome
        outcomes.append(outcome)
    return outcomes


async def gather_all(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """The results of calls that are awaited concurrently; once all have ended, raises the first error among them."""
    outcomes = await gather_outcomes(calls)
    raise_first_error(outcomes)
    return outcomes
