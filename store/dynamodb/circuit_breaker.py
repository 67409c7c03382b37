"""Circuit breaker: an engine that has been silent is not called for a while."""

import time
from collections.abc import Callable

FAILURES = 5
REST_SECONDS = 1.0


class CircuitBreaker:
    """Opens when so many calls in a row got no answer at all, and rests.

    While it is open, one call in each rest is let through to see; the others need not wait to learn the same. Any
    answer closes it, also one that says no. A blip that the attempts of a call outlast changes nothing.
    """

    def __init__(
        self,
        *,
        failures: int = FAILURES,
        rest_seconds: float = REST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = failures
        self._rest = rest_seconds
        self._clock = clock
        self._failures = 0
        self._resting_until = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self._most

    def lets_through(self) -> bool:
        """Whether a call may be made now."""
        if self._failures < self._most:
            return True
        now = self._clock()
        if now < self._resting_until:
            return False
        self._resting_until = now + self._rest
        return True

    def answered(self) -> None:
        self._failures = 0

    def was_silent(self) -> None:
        """A call got no answer."""
        self._failures += 1
        if self._failures == self._most:
            self._resting_until = self._clock() + self._rest
