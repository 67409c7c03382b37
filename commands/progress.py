"""Progress of long commands: a bar with rate and remaining time on a terminal, elsewhere a line every few seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

LINE_SECONDS = 5.0


class Meter(Protocol):
    def __call__(self, steps: int = 1) -> None:
        """Report this many further steps."""
        ...


@contextmanager
def progress(activity: str, unit: str, total: int | None = None) -> Iterator[Meter]:
    """A meter of finished steps, of `total` if known, that is shown on the error output while the block runs."""
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, unit) as bar:
            task = bar.add_task(activity, total=total)
            yield lambda steps=1: bar.advance(task, steps)
    else:
        yield _Lines(activity, unit, total)


def _bar(console: Console, unit: str) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(unit),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


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

    def __call__(self, steps: int = 1) -> None:
        self._done += steps
        now = time.monotonic()
        if now - self._printed >= LINE_SECONDS:
            self._printed = now
            print(self._line(self._done / (now - self._started)), file=sys.stderr, flush=True)

    def _line(self, rate: float) -> str:
        line = f"{self._activity}: {self._done:,}"
        if self._total is not None:
            line += f" of {self._total:,}"
        line += f" {self._unit}, {rate:,.0f} a second"
        if self._total is not None and rate:
            line += f", {(self._total - self._done) / rate:,.0f} s left"
        return line
