"""Concurrency limit of operations and API key lookups: rejecting further ones is better than slowing down all."""

from typing import Self

from graph.errors import OVERLOADED, RequestRejected

RETRY_AFTER = (b"retry-after", b"1")


class ConcurrencyLimiter:
    """Context manager that counts the blocks running; entering one more than the limit raises RequestRejected."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.running = 0

    def __enter__(self) -> Self:
        if self.running >= self.limit:
            message = f"The server is running its maximum of {self.limit} requests; retry later."
            raise RequestRejected(503, message, RETRY_AFTER, code=OVERLOADED)
        self.running += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.running -= 1
