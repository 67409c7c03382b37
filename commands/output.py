"""Output of commands: lines for people, JSON in lines for programs, and tables of texts. No other module prints.

Texts of files, of the store and of errors may hold what a terminal obeys, such as escape sequences, or what begins a
line: lines and tables have a replacement character for each, JSON an escape.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from store.errors import OBEYED

if TYPE_CHECKING:
    from store.model.hierarchy import Hierarchy

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def printable(text: object) -> str:
    """A text on one line, which a terminal shows and obeys in nothing."""
    return OBEYED.sub("\N{REPLACEMENT CHARACTER}", str(text))


def say(*lines: object, err: bool = False) -> None:
    """Print texts, each as one line."""
    print("\n".join(map(printable, lines)), file=sys.stderr if err else sys.stdout, flush=True)


def styled(text: str, **styles: Any) -> str:
    """A text on one line in a style of a terminal."""
    return typer.style(printable(text), **styles)


def print_made(text: str, *, end: bool = True) -> None:
    """Print a text that Clade made, with lines of its own; what others wrote in it is `styled` or `printable`."""
    typer.echo(text, nl=end)


def print_json(document: object) -> None:
    """Print a JSON document as one line of UTF-8, whatever the encoding of the console."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    typer.echo(OBEYED.sub(lambda one: f"\\u{ord(one[0]):04x}", text).encode())


def by_level(hierarchy: "Hierarchy", counts: Mapping[str, int]) -> dict[str, int]:
    """Numbers of nodes by the present names of levels, in their order; the store may have levels of no class."""
    levels = dict.fromkeys([*hierarchy.levels, *counts])
    return {hierarchy.any_level(level).label: counts[level] for level in levels if counts.get(level)}


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str | Sequence[str]]]) -> None:
    """Print rows of cells, each of a text or of several: with borders, and with the heading if it has texts, on a
    terminal; elsewhere the rows alone, with tabs between the cells, and commas between the texts of one.
    """
    texts = [[[*map(printable, [cell] if isinstance(cell, str) else cell)] for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in texts:
            print("\t".join([", ".join(cell) for cell in row]))
        return
    from rich.console import Console  # for terminals alone: its import takes a tenth of a second
    from rich.table import Table

    table = Table(show_header=any(heading))
    for text in heading:
        table.add_column(text, overflow="fold")  # cells such as grants must be readable in full
    for row in texts:
        table.add_row(*["\n".join(cell) for cell in row])
    Console(markup=False, emoji=False).print(table)
