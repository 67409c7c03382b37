"""Retry policy: the delays between attempts, random up to a bound that doubles, as a pure value.

Random delays keep writers that met once from meeting again ("full jitter",
https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
"""

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The bound of a delay is `first_seconds`, and doubles with each attempt up to `longest_seconds`.

    There are at most `attempts`, None for any number, and none that begins later than `deadline_seconds` after the
    first one has failed.
    """

    first_seconds: float
    longest_seconds: float
    attempts: int | None = None
    deadline_seconds: float = inf

    def delays(self) -> Iterator[float]:
        """The seconds to wait before each attempt, 0 before the first."""
        yield 0.0
        yield from self.pauses()

    def pauses(self) -> Iterator[float]:
        """The seconds to wait after each attempt that has failed but the last."""
        end = time.monotonic() + self.deadline_seconds
        bound = self.first_seconds
        for _ in itertools.count() if self.attempts is None else range(self.attempts - 1):
            if time.monotonic() > end:
                return
            yield random.uniform(0.0, bound)  # noqa: S311 - no secret
            bound = min(2 * bound, self.longest_seconds)
