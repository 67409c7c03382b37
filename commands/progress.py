"""Progress of long commands: a bar with rate and remaining time on a terminal, elsewhere a line every few seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

LINE_SECONDS = 5.0


@contextmanager
def progress(activity: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A meter of finished steps, of `total` if known, that is shown on the error output while the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(activity, unit, total)
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(unit), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(activity, total=total)
        yield lambda steps: bar.advance(task, steps)


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:,.0f} {self._unit}/s")


class _Lines:
    """A line every `LINE_SECONDS`, none for a shorter command."""

    def __init__(self, activity: str, unit: str, total: int | None) -> None:
        self._activity = activity
        self._unit = unit
        self._total = total
        self._done = 0
        self._started = self._printed = time.monotonic()

    def __call__(self, steps: int) -> None:
        self._done += steps
        now = time.monotonic()
        if now - self._printed >= LINE_SECONDS:
            self._printed = now
            rate = self._done / (now - self._started)
            total = "" if self._total is None else f" of {self._total:,}"
            rest = f", {(self._total - self._done) / rate:,.0f} s left" if self._total is not None and rate else ""
            line = f"{self._activity}: {self._done:,}{total} {self._unit}, {rate:,.0f} a second{rest}"
            print(line, file=sys.stderr, flush=True)
