"""Traced statements of SQLite."""

import sqlite3
from collections.abc import Callable
from typing import Any


def trace_statements(see: Callable[[str], None]) -> None:
    """Have this process call `see` right before each statement of a connection that it opens from now on."""
    connect = sqlite3.connect

    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(see)
        return connection

    sqlite3.connect = connect_traced
