"""How many operations, and look-ups of keys, may run at a time: one more is better refused at once than all slowed."""

from typing import Self


class Gate:
    """Counts who is inside, by `with`; whoever enters asks first whether it is full."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.inside = 0

    @property
    def is_full(self) -> bool:
        return self.inside >= self.most

    def __enter__(self) -> Self:
        self.inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.inside -= 1
