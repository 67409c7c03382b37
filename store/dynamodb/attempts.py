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

MAX_TIMEOUTS = 2  # a third attempt would outlast CLADE_REQUEST_SECONDS
IN_PROGRESS = "TransactionInProgressException"  # an earlier attempt is still being carried out


@dataclass(slots=True)
class Attempts:
    """`uncertain` once an attempt ended without a response of DynamoDB that states its outcome."""

    uncertain: bool = False
    _timeouts: int = 0
    _last_response_at: float = field(default_factory=time.monotonic)

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last response of DynamoDB, or since the start."""
        return time.monotonic() - self._last_response_at

    def failed(self, error: Exception) -> None:
        """Record an attempt without a response; raises its error where no more attempts fit into the request."""
        self.ended(error)
        if isinstance(error, ReadTimeoutError | ConnectTimeoutError):
            self._timeouts += 1
            if self._timeouts >= MAX_TIMEOUTS:
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
