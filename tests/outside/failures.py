"""Wrong: what a part raises if Clade broke a promise, with the script that shows it."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

SETTLE_SECONDS = {"sqlite": 0.0, "dynamodb": 3.0}  # more than CLADE_SETTLE_SECONDS, within which lists follow

T = TypeVar("T")


class Wrong(AssertionError):
    """A broken promise: its sentence in the docs, the operations that lead to it, what was expected and what came."""

    def __init__(self, promise: str, script: Sequence[str], expected: object, got: object) -> None:
        self.promise, self.script, self.expected, self.got = promise, list(script), expected, got
        lines = [promise, *(f"  {number}. {step}" for number, step in enumerate(self.script, 1))]
        super().__init__("\n".join([*lines, f"expected: {expected!r}", f"got:      {got!r}"]))


def settled(compare: Callable[[], T], until: float) -> T:
    """The result of a comparison, which may fail until so long (of time.monotonic), as lists follow what is written."""
    while True:
        try:
            return compare()
        except Wrong:
            if time.monotonic() > until:
                raise
        time.sleep(0.02)
