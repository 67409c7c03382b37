"""What became of the calls to an engine far away."""

from dataclasses import dataclass


@dataclass(slots=True)
class CallStats:
    """A tally since the store was made: `made` are calls as the store asks for them, each of one attempt or more.

    `retried` are attempts after the first, `throttled` answers that asked for less, `failed` calls without an answer,
    `spared` those that were not made since the engine had been silent for a while,
    and `is_silent` tells whether it still is.
    """

    made: int = 0
    retried: int = 0
    throttled: int = 0
    failed: int = 0
    spared: int = 0
    is_silent: bool = False
