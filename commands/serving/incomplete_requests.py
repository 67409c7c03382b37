"""Incomplete requests: the connections whose request was not received completely, and the memory that they take."""

from collections import OrderedDict
from typing import Protocol

from commands.serving.rejection import Rejection, too_many_incomplete

MAX_BYTES = 64_000_000
"""Of all incomplete requests of one process."""


class Connection(Protocol):
    def reject(self, rejection: Rejection) -> None: ...


class IncompleteRequests:
    """Connections with an incomplete request, the oldest first, each with the number of bytes received so far."""

    def __init__(self) -> None:
        self._bytes: OrderedDict[Connection, int] = OrderedDict()
        self._total = 0

    def add(self, connection: Connection, count: int) -> None:
        """Count received bytes of a connection; above the limit the oldest connections are rejected."""
        self._bytes[connection] = self._bytes.get(connection, 0) + count
        self._total += count
        while self._total > MAX_BYTES:
            oldest = next(iter(self._bytes))
            self.remove(oldest)
            oldest.reject(too_many_incomplete())

    def remove(self, connection: Connection) -> None:
        self._total -= self._bytes.pop(connection, 0)
