"""Circuit breaker: calls to an engine that does not respond are rejected for a while."""

import time
from collections.abc import Callable

FAILURES = 5
REST_SECONDS = 1.0


class CircuitBreaker:
    """Opens after `FAILURES` successive calls without a response.

    While it is open, one call in `REST_SECONDS` is allowed as a probe, all others are rejected at once. Any response
    closes it, an error too. A call that succeeds after retries is a success.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next_probe = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= FAILURES

    def allows_call(self) -> bool:
        """Whether a call may be made now: the circuit is closed, or a probe is due."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_probe:
            return False
        self._next_probe = now + REST_SECONDS
        return True

    def record_response(self) -> None:
        """Record a call that got a response."""
        self._failures = 0

    def record_timeout(self) -> None:
        """Record a call without a response."""
        self._failures += 1
        if self._failures == FAILURES:
            self._next_probe = self._clock() + REST_SECONDS
