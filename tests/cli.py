"""The command line in this process. Its commands are built once: that takes half the time of a short command."""

from collections.abc import Sequence
from functools import cache

import typer.testing
from typer import Typer

from commands import main

typer.testing._get_command = cache(typer.testing._get_command)


def app_of(names: Sequence[str] = tuple(main.NAMES)) -> Typer:
    """The same application for the same commands: all, or those with these names."""
    return _app(tuple(names))


@cache
def _app(names: tuple[str, ...]) -> Typer:
    return main.app_of(names)
