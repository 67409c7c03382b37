"""Patience: how long the calls of whoever opened a store may take, a server for its requests or a command."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """Each attempt of a call has `connect_seconds` and then `read_seconds`; `timeouts` attempts may time out.

    At most `attempts` are made where the engine fails, throttles, or loses the connection.
    """

    connect_seconds: float
    read_seconds: float
    timeouts: int
    attempts: int


REQUEST_PATIENCE = Patience(connect_seconds=2.0, read_seconds=4.0, timeouts=2, attempts=5)
"""A server's, whose requests have to end: some 8 s of silence, 0.8 s of failures."""

COMMAND_PATIENCE = Patience(connect_seconds=5.0, read_seconds=20.0, timeouts=3, attempts=10)
"""A command's, which would have to begin again: some 60 s of silence, 25 s of failures."""
