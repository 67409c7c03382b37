"""How long the steps of a journaled move wait, all in seconds."""

from dataclasses import dataclass
from typing import Self

from store.metadata.move_record import LEASE_SECONDS

MARGIN_SECONDS = 1.0  # for what a request does before its time is counted and after it has run out


@dataclass(frozen=True)
class MoveTiming:
    """After `grace_seconds` no reader is left that knows less than the stamps tell by now, after `settle_seconds` the
    indexes show what the table holds. Who asked for a move waits for its flip for at most `wait_seconds`, and nobody
    takes it over before its mover was silent for `lease_seconds`.
    """

    grace_seconds: float = 10.0 + MARGIN_SECONDS
    settle_seconds: float = 2.0
    wait_seconds: float = 5.0
    lease_seconds: float = LEASE_SECONDS

    @classmethod
    def of(cls, request_seconds: float, settle_seconds: float, wait_seconds: float) -> Self:
        """The pace where no request takes longer than `request_seconds`, of which half at most goes by waiting."""
        return cls(request_seconds + MARGIN_SECONDS, settle_seconds, min(wait_seconds, request_seconds / 2))
