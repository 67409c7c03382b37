"""Output of commands for programs: JSON in lines, and tables of texts."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from store.model.hierarchy import Hierarchy

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def print_json(document: object) -> None:
    """Print a JSON document as one line of UTF-8, whatever the encoding of the console."""
    typer.echo(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def by_level(hierarchy: "Hierarchy", counts: Mapping[str, int]) -> dict[str, int]:
    """Numbers of nodes by the present names of levels, in their order; the store may have levels of no class."""
    levels = dict.fromkeys([*hierarchy.levels, *counts])
    return {hierarchy.any_level(level).label: counts[level] for level in levels if counts.get(level)}


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of cells: with borders, and with the heading if it has texts, on a terminal; elsewhere the rows alone,
    with tabs between the cells, and commas in the place of line breaks in them.
    """
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join([", ".join(cell.splitlines()) for cell in row]))
        return
    from rich.console import Console  # for terminals alone: its import takes a tenth of a second
    from rich.table import Table

    table = Table(show_header=any(heading))
    for text in heading:
        table.add_column(text, overflow="fold")  # cells such as grants must be readable in full
    for row in rows:
        table.add_row(*row)
    Console(markup=False, emoji=False).print(table)
