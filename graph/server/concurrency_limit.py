"""How many operations, and look-ups of keys, may run at a time: one more is better refused at once than all slowed."""

from typing import Self


class TooManyRequests(Exception):
    """As many are inside as may be; the message is for the client."""


class ConcurrencyLimiter:
    """Counts who is inside, by `with`, which raises TooManyRequests for one too many."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.inside = 0

    def __enter__(self) -> Self:
        if self.inside >= self.most:
            raise TooManyRequests(f"The server answers {self.most} requests already; try again in a moment.")
        self.inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.inside -= 1
