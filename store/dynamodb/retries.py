"""Failures of calls: which are retried, when and how often, and when calls are not made for a while.

The rules are those of the standard mode of AWS's SDKs:

https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html

Two things differ, since a server's request has to end: the first delay is at most 50 ms, as in DynamoDB's own guide,
and `Patience` says how many attempts there are.
"""

import time
from asyncio import sleep
from collections.abc import Callable

from store.errors import Unavailable
from store.retry import RetryPolicy

FAILURES = RetryPolicy(0.05, 20.0)  # of failed and throttled attempts, as many as `Patience` allows
BUSY = RetryPolicy(0.05, 1.0, attempts=8)  # of transactions that met others, and of keys that were left unprocessed

SILENT_CALLS = 5  # in a row, after which the circuit opens
REST_SECONDS = 1.0

THROTTLED = frozenset({
    "LimitExceededException", "ProvisionedThroughputExceededException", "RequestLimitExceeded", "RequestThrottled",
    "RequestThrottledException", "ThrottledException", "Throttling", "ThrottlingException", "TooManyRequestsException",
})  # fmt: skip
"""Error codes that ask for a lower rate."""
IN_PROGRESS = "TransactionInProgressException"
"""The error code of a transaction of which an earlier attempt is still being carried out."""
CONFLICT = "TransactionConflict"
THROTTLED_CHANGE = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
"""Reasons of cancelled transactions."""
UNKNOWN_OPERATION = frozenset({"UnknownOperationException", "NotImplemented", "InvalidAction"})
"""Error codes of engines that lack an operation."""

_TRANSIENT = THROTTLED | {"InternalFailure", "RequestTimeout", "RequestTimeoutException", IN_PROGRESS}
_TRANSIENT_STATUS = frozenset({500, 502, 503, 504})
_BUSY_REASONS = THROTTLED_CHANGE | {CONFLICT}
_FINAL_REASONS = frozenset({"ConditionalCheckFailed", "ValidationError"})  # beside which no other is retried


class Refused(Unavailable):
    """An error response; `name` is its code, `reasons` are the codes of a cancelled transaction, change by change.

    `signed_at` is the time that its request was signed for, `date` that of DynamoDB's clock; both are 0 if unknown.
    """

    timed_out = False

    def __init__(self, message: str, name: str, status: int, reasons: list[str]) -> None:
        super().__init__(message)
        self.name = name
        self.status = status
        self.reasons = reasons
        self.signed_at = self.date = 0.0

    @property
    def is_throttled(self) -> bool:
        return self.name in THROTTLED or not THROTTLED_CHANGE.isdisjoint(self.reasons)

    @property
    def is_busy(self) -> bool:
        """Whether a transaction was cancelled for nothing but others that are under way, or for their number."""
        return not _BUSY_REASONS.isdisjoint(self.reasons) and _FINAL_REASONS.isdisjoint(self.reasons)

    @property
    def is_transient(self) -> bool:
        return self.name in _TRANSIENT or self.status in _TRANSIENT_STATUS


class Silent(Unavailable):
    """No response, or one that is not DynamoDB's.

    `is_transient` is whether another attempt may get one, `was_sent` whether DynamoDB may have received this one.
    """

    is_throttled = False

    def __init__(self, message: str, *, is_transient: bool, was_sent: bool = True, timed_out: bool = False) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        self.was_sent = was_sent
        self.timed_out = timed_out

    @classmethod
    def of_status(cls, message: str, status: int) -> "Silent":
        return cls(message, is_transient=status in _TRANSIENT_STATUS)


class RetryQuota:
    """Retries that are left to all calls together, so that few of them are retried while the engine fails them all.

    A retry takes 5, after a timeout 10. A retry that succeeds gives back what it took, a first attempt 1.
    """

    CAPACITY = 500
    COST, TIMEOUT_COST = 5, 10

    def __init__(self) -> None:
        self.left = self.CAPACITY

    def take(self, cost: int) -> bool:
        """Take the cost of a retry; False where less is left."""
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def give(self, cost: int) -> None:
        """Give back the cost of an attempt that succeeded."""
        self.left = min(self.CAPACITY, self.left + cost)


class Attempts:
    """The attempts of one call, or of all calls of one transaction.

    `uncertain` once an attempt ended without a response of DynamoDB that states its outcome. At most `limit` attempts
    fail, and `max_timeouts` of them by a timeout.
    """

    def __init__(self, quota: RetryQuota, limit: int, max_timeouts: int) -> None:
        self.uncertain = False
        self._quota = quota
        self._limit = limit
        self._max_timeouts = max_timeouts
        self._failures = self._timeouts = 0
        self._cost = 1
        self._pauses, self._busy = FAILURES.pauses(), BUSY.pauses()
        self._answered_at = time.monotonic()

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last response of DynamoDB, or since the start."""
        return time.monotonic() - self._answered_at

    async def again(self, failure: Refused | Silent) -> bool:
        """Record a failed attempt, and wait for the next one; False where there is none."""
        if isinstance(failure, Refused):
            self._answered_at = time.monotonic()
            self.uncertain |= failure.status >= 500 or failure.name == IN_PROGRESS
            if failure.is_busy:
                return await self.again_when_free()
        else:
            self.uncertain |= failure.was_sent
        self._failures += 1
        self._timeouts += failure.timed_out
        if not failure.is_transient or self._failures >= self._limit or self._timeouts >= self._max_timeouts:
            return False
        self._cost = self._quota.TIMEOUT_COST if failure.timed_out else self._quota.COST
        if not self._quota.take(self._cost):
            return False
        await sleep(next(self._pauses))
        return True

    async def again_when_free(self) -> bool:
        """Wait for the next attempt after one that was carried out in part or not at all; False where there is none."""
        pause = next(self._busy, None)
        if pause is not None:
            await sleep(pause)
        return pause is not None

    def made_progress(self) -> None:
        """Count from now on the attempts that are carried out in part or not at all."""
        self._busy = BUSY.pauses()

    def succeeded(self) -> None:
        self._quota.give(self._cost)


class CircuitBreaker:
    """Opens after `failures` successive calls without a response.

    While it is open, one call in `rest_seconds` is allowed as a probe, all others are rejected at once. Any response
    closes it, an error too. A call that succeeds after retries is a success.
    """

    def __init__(
        self,
        *,
        failures: int = SILENT_CALLS,
        rest_seconds: float = REST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threshold = failures
        self._rest = rest_seconds
        self._clock = clock
        self._failures = 0
        self._next_probe = 0.0

    @property
    def is_open(self) -> bool:
        return self._failures >= self._threshold

    def allows_call(self) -> bool:
        """Whether a call may be made now: the circuit is closed, or a probe is due."""
        if self._failures < self._threshold:
            return True
        now = self._clock()
        if now < self._next_probe:
            return False
        self._next_probe = now + self._rest
        return True

    def record_response(self) -> None:
        """Record a call that got a response."""
        self._failures = 0

    def record_timeout(self) -> None:
        """Record a call without a response."""
        self._failures += 1
        if self._failures == self._threshold:
            self._next_probe = self._clock() + self._rest
