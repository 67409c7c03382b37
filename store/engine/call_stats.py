"""Call statistics: calls to a remote engine by their outcome."""

from dataclasses import dataclass


@dataclass(slots=True)
class CallStats:
    """Counts since the store was made: `made` are calls of the store, each of one attempt or more.

    `retried` are attempts after the first, `throttled` responses that ask for a lower rate, `failed` calls without a
    response, `skipped` calls that an open circuit breaker rejected, and `is_silent` is whether it is open.
    """

    made: int = 0
    retried: int = 0
    throttled: int = 0
    failed: int = 0
    skipped: int = 0
    is_silent: bool = False
