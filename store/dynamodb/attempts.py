"""Attempts of one call or transaction: whether one may have been carried out, and when to stop retrying."""

import time
from dataclasses import dataclass, field

import aiohttp
from botocore.exceptions import (
    BotoCoreError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
)

IN_PROGRESS = "TransactionInProgressException"  # an earlier attempt is still being carried out


@dataclass(slots=True)
class Attempts:
    """`uncertain` once an attempt ended without a response of DynamoDB that states its outcome.

    At most `limit` attempts fail without a response, and `max_timeouts` of them by a timeout.
    """

    limit: int
    max_timeouts: int
    uncertain: bool = False
    _failures: int = 0
    _timeouts: int = 0
    _last_response_at: float = field(default_factory=time.monotonic)

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last response of DynamoDB, or since the start."""
        return time.monotonic() - self._last_response_at

    def failed(self, error: Exception) -> None:
        """Record an attempt without a response; raises its error where it is the last."""
        self.ended(error)
        self._failures += 1
        self._timeouts += isinstance(error, ReadTimeoutError | ConnectTimeoutError)
        if self._failures >= self.limit or self._timeouts >= self.max_timeouts:
            raise error

    def ended(self, error: Exception) -> None:
        """Record the last attempt, without a response."""
        self.uncertain |= was_sent(error)

    def answered(self, status: int, code: str) -> None:
        """Record a response by its HTTP status and error code, "" for a success."""
        if is_from_dynamodb(code):
            self._last_response_at = time.monotonic()
        # A 200 counts as well: it is retried where its checksum is wrong.
        self.uncertain |= not 400 <= status < 500 or code == IN_PROGRESS or not is_from_dynamodb(code)


def is_from_dynamodb(code: str) -> bool:
    """Whether an error code is DynamoDB's; botocore uses the HTTP status where a response has none."""
    return not code.isdigit()


def was_sent(error: Exception) -> bool:
    """Whether the request of an attempt that ended with this error may have reached DynamoDB."""
    if isinstance(error, EndpointConnectionError):  # in aiobotocore also one of a connection that was lost
        return not isinstance(error.kwargs.get("error"), aiohttp.ClientConnectorError)
    return isinstance(error, HTTPClientError) or not isinstance(error, BotoCoreError)
