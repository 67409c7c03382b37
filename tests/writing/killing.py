"""Ways for a process to be killed in the middle of writing."""

import os
import signal
import sqlite3
from itertools import count

from store import sqlite

_WRITES = ("BEGIN IMMEDIATE", "INSERT", "DELETE", "COMMIT")


def die_at_statement(number: int) -> None:
    """Have this process be killed right before so many statements that write, of one that moves or removes much; or,
    where they are fewer, right after its first such commit.
    """
    written = count(1)
    connect = sqlite._connect
    ended = False

    def traced(statement: str) -> None:
        nonlocal ended
        if ended or (statement.startswith(_WRITES) and next(written) == number):
            os.kill(os.getpid(), signal.SIGKILL)
        ended = statement == "COMMIT"

    def connect_traced(path: str, mode: str) -> sqlite3.Connection:
        connection = connect(path, mode)
        connection.set_trace_callback(traced)
        return connection

    sqlite._connect = connect_traced
