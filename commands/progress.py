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
    from rich.console import Console  # its import takes a tenth of a command's start
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn(f"{{task.fields[rate]}} {unit}/s"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(activity, total=total, rate="0")
        yield lambda steps: bar.update(task, advance=steps, rate=f"{bar.tasks[0].speed or 0:,.0f}")


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
