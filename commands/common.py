"""Shared parts of commands: arguments and options, a call with the store, and the progress of long ones."""

import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from commands import interrupt
from commands.output import printable, say
from store.errors import BadInput, shorten, suggestion

if TYPE_CHECKING:
    from store.engine import Store
    from store.model.hierarchy import Hierarchy

S = TypeVar("S", bound="Store")
T = TypeVar("T")

LINE_SECONDS = 5.0  # between two lines of progress

StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="Store URL instead of CLADE_STORE, such as sqlite:///clade.db.", metavar="URL"),
]


def hierarchy_names(incomplete: str) -> list[str]:
    """The served hierarchies that begin so, for the completion of a shell; none where they cannot be loaded."""
    with suppress(Exception):  # such as a file that is being edited; a completion prints nothing else
        return [name for name in served_hierarchies() if name.startswith(incomplete)]
    return []


HierarchyName = Annotated[
    str,
    typer.Argument(
        help="Name of a hierarchy, such as location; clade tree lists them.", metavar="HIERARCHY",
        autocompletion=hierarchy_names,
    ),
]  # fmt: skip
OptionalHierarchy = Annotated[
    str | None,
    typer.Argument(
        help="Name of a hierarchy, such as location; all served ones by default.", metavar="HIERARCHY",
        autocompletion=hierarchy_names,
    ),
]  # fmt: skip


def store_url(given: str | None) -> str:
    """The URL that --store gives, else CLADE_STORE."""
    from graph.settings import Settings  # with pydantic, which the help of a command does without

    return given or Settings().store


def served_hierarchies() -> "dict[str, Hierarchy]":
    """The served hierarchies by name. Raises BadInput."""
    from graph.hierarchies.registry import hierarchies  # with pydantic and the modules of the hierarchies

    return hierarchies()


def hierarchy_named(name: str) -> "Hierarchy":
    """The served hierarchy of this name. Raises BadInput."""
    served = served_hierarchies()
    if name not in served:
        near = suggestion(name, served)
        raise BadInput(f'Unknown hierarchy "{shorten(name)}"; CLADE_HIERARCHIES has {", ".join(served)}.{near}')
    return served[name]


def with_store(opening: AbstractAsyncContextManager[S], work: Callable[[S], Awaitable[T]]) -> T:
    """The result of `work` with a store, which is open meanwhile."""

    async def run() -> T:
        async with opening as store:
            return await work(store)

    return interrupt.run(run())


def ask(question: str, *before: str) -> None:
    """Ask on the terminal, below the lines `before`; the command ends unless the answer is yes."""
    if before:
        say(*before, err=True)
    with redirect_stdout(sys.stderr):  # to which the prompt would write a blank
        typer.confirm(printable(question), abort=True, err=True)


@contextmanager
def progress(activity: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A meter of finished steps, of `total` if known, that is shown on the error output while the block runs: a bar
    with rate and remaining time on a terminal, elsewhere a line every few seconds.
    """
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
            say(f"{self._activity}: {self._done:,}{total} {self._unit}{speed}{rest}", err=True)
