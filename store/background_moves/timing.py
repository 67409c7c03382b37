"""Move timing: the waits between the steps of a background move, in seconds."""

from dataclasses import dataclass
from typing import Self

from store.metadata.move_record import LEASE_SECONDS

MARGIN_SECONDS = 1.0  # for what a request does before its time limit starts and after it ends
MAX_WAIT_SECONDS = 5.0  # longer, clients and proxies may give up; the move goes on without its request


@dataclass(frozen=True)
class MoveTiming:
    """The waits of background moves.

    `grace_seconds`: until all readers have seen the last tree version. `settle_seconds`: until the indexes have caught
    up with the table. `wait_seconds`: how long the request that asked for a move waits for its flip. `lease_seconds`:
    how long a worker has to be silent before another takes over its move.
    """

    grace_seconds: float = 10.0 + MARGIN_SECONDS
    settle_seconds: float = 2.0
    wait_seconds: float = MAX_WAIT_SECONDS
    lease_seconds: float = LEASE_SECONDS

    @classmethod
    def of(cls, request_seconds: float, settle_seconds: float, *, stale_seconds: float = 0.0) -> Self:
        """The timing where no request takes longer than `request_seconds`, half of which at most is spent waiting, or
        begins with a tree version that is older than `stale_seconds`.
        """
        grace = request_seconds + stale_seconds + MARGIN_SECONDS
        return cls(grace, settle_seconds, min(MAX_WAIT_SECONDS, request_seconds / 2))
