"""Wrong: what a part raises if Clade broke a promise, with the script that shows it."""

from collections.abc import Sequence


class Wrong(AssertionError):
    """A broken promise: its sentence in the docs, the operations that lead to it, what was expected and what came."""

    def __init__(self, promise: str, script: Sequence[str], expected: object, got: object) -> None:
        self.promise, self.script, self.expected, self.got = promise, list(script), expected, got
        lines = [promise, *(f"  {number}. {step}" for number, step in enumerate(self.script, 1))]
        super().__init__("\n".join([*lines, f"expected: {expected!r}", f"got:      {got!r}"]))
