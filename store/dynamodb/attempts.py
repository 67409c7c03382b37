"""Attempts at one call, or at one transaction: whether one of them may have been carried out, and when to end."""

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

MOST_TIMEOUTS = 2  # a third attempt would only end after the request that it is for
IN_PROGRESS = "TransactionInProgressException"  # an earlier attempt is still being carried out


@dataclass(slots=True)
class Attempts:
    """`uncertain` once an attempt ended without an answer of DynamoDB that says what became of it."""

    uncertain: bool = False
    _timeouts: int = 0
    _heard: float = field(default_factory=time.monotonic)

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last answer of DynamoDB, or since the beginning."""
        return time.monotonic() - self._heard

    def failed(self, error: Exception) -> None:
        """Record an attempt without an answer that may be repeated; raises its error where that would be in vain."""
        self.ended(error)
        if isinstance(error, ReadTimeoutError | ConnectTimeoutError):
            self._timeouts += 1
            if self._timeouts >= MOST_TIMEOUTS:
                raise error

    def ended(self, error: Exception) -> None:
        """Record an attempt without an answer."""
        self.uncertain |= was_sent(error)

    def answered(self, status: int, code: str) -> None:
        """Record an answer by its HTTP status and the name of its error, if it is one."""
        if is_from_dynamodb(code):
            self._heard = time.monotonic()
        # A 200 is recorded as well: it is not taken for an answer where its checksum is wrong.
        self.uncertain |= not 400 <= status < 500 or code == IN_PROGRESS or not is_from_dynamodb(code)


def is_from_dynamodb(code: str) -> bool:
    """Whether the code of an error is DynamoDB's; botocore makes one of the status where an answer names no error."""
    return not code.isdigit()


def was_sent(error: Exception) -> bool:
    """Whether the request of an attempt that failed with this error may have reached DynamoDB."""
    if isinstance(error, EndpointConnectionError):  # in aiobotocore also one of a connection that was lost
        return not isinstance(error.kwargs.get("error"), aiohttp.ClientConnectorError)
    return isinstance(error, HTTPClientError) or not isinstance(error, BotoCoreError)
