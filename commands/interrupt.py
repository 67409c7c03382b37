"""Interrupts: Ctrl-C ends a command with one line on the error output and exit status 130."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

EXIT_INTERRUPTED = 130


@contextmanager
def interruptible(message: Callable[[], str]) -> Iterator[None]:
    """End the command on Ctrl-C within the block; `message` says how far it came and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(message(), err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
