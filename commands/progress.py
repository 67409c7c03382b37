"""Progress of long commands: a bar with rate and remaining time on a terminal, elsewhere a line every few seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_SECONDS = 5.0


@contextmanager
def progress(activity: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A meter of finished steps, of `total` if known, that is shown on the error output while the block runs."""
    if not sys.stderr.isatty():
        yield _Lines(activity, unit, total)
        return
    from commands.progress_bar import progress_bar  # with rich, whose import takes a tenth of a command's start

    with progress_bar(activity, unit, total) as meter:
        yield meter


class _Lines:
    """A line every `LINE_SECONDS`, none for a shorter command.

    The rate is that since the first step: what comes before, such as comparing a large tree, is done once.
    """

    def __init__(self, activity: str, unit: str, total: int | None) -> None:
        self._activity = activity
        self._unit = unit
        self._total = total
        self._done = 0
        self._printed = time.monotonic()
        self._first: tuple[int, float] | None = None  # the first steps, and when they were done

    def __call__(self, steps: int) -> None:
        self._done += steps
        now = time.monotonic()
        first_steps, started = self._first = self._first or (steps, now)
        if now - self._printed >= LINE_SECONDS:
            self._printed = now
            rate = (self._done - first_steps) / (now - started) if now > started else 0
            total = "" if self._total is None else f" of {self._total:,}"
            speed = f", {rate:,.0f} a second" if rate else ""
            rest = f", {(self._total - self._done) / rate:,.0f} s left" if self._total is not None and rate else ""
            print(f"{self._activity}: {self._done:,}{total} {self._unit}{speed}{rest}", file=sys.stderr, flush=True)
