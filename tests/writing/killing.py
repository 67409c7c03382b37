"""Ways to kill a process in the middle of a write."""

import os
import signal
from collections.abc import Callable
from itertools import count

from aiohttp import web

from graph.settings import Settings
from store.background_moves.timing import MoveTiming
from tests.proxy import Call, Fault, Forward
from tests.traced_statements import trace_statements

KILLS = int(os.environ.get("CLADE_TEST_KILLS", "0"))  # in the long form, with thousands of nodes
READ_SECONDS = 5.0 if KILLS else 1.5  # that a reader may take
PACE = MoveTiming(grace_seconds=READ_SECONDS + 0.5, settle_seconds=0.1, wait_seconds=0.1, lease_seconds=1.0)

_WRITES = ("BEGIN IMMEDIATE", "INSERT", "DELETE", "COMMIT")


def hasten() -> None:
    """Have this process's moves wait less than they would anywhere else."""
    Settings.move_timing = property(lambda _: PACE)


def die_at_statement(number: int) -> None:
    """Have this process be killed right before the so many-th statement of SQLite that writes, or after a commit."""
    written = count(1)
    committed = False

    def traced(statement: str) -> None:
        nonlocal committed
        if committed or (statement.startswith(_WRITES) and next(written) == number):
            os.kill(os.getpid(), signal.SIGKILL)
        committed = statement == "COMMIT"

    trace_statements(traced)


def killing(kill: Callable[[], None], *, done: bool) -> Fault:
    """Whoever calls the engine is killed, before it hears of the call or when it has `done` it."""

    async def fault(call: Call, forward: Forward) -> web.Response:
        if done:
            await forward(call.body)
        kill()
        raise ConnectionAbortedError

    return fault
