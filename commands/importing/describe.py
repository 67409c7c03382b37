"""`clade import --describe`: what a file has, and a command that imports it."""

import re
import shlex
from collections.abc import Callable, Sequence
from itertools import islice

import typer

from commands.importing.file_format import FileFormat
from commands.importing.source import Source
from store.errors import BadInput, shorten
from store.transfer.formats.shapes import first_rows
from store.transfer.formats.source import EXAMPLES, NumberFormat

SAMPLE_ROWS = 1_000
SHOWN_VALUES = 3
NULLS = ("NULL", "null", "\\N", "N/A", "n/a", "#N/A", "NaN", "nan", "None", "-", "--")


def describe_file(hierarchy: str, address: str, source: Source, found: FileFormat, check: Callable[[], None]) -> None:
    """Print the columns of a table with values of the first rows, what was guessed, and the proposed command.

    A file that fails the `check` has no command that would import it.
    """
    for guess in found.guesses:
        typer.echo(f"{source.name}: {guess}")
    words = ["clade", "import", hierarchy, address]
    if found.rows is not None and found.options is not None:
        rows = first_rows(found.header, islice(found.rows(), SAMPLE_ROWS))
        used = {value.partition("=")[2]: f"{option} {value}" for option, value in found.options.pairs()}
        for index, column in enumerate(found.header):
            values = dict.fromkeys(row[index] for row in rows if index < len(row) and row[index])
            shown = ", ".join(shorten(value, 30) for value in list(values)[:SHOWN_VALUES])
            typer.echo(f"  {column}: {shown or 'no values'}{'' if column in used else ' (not imported)'}")
        words += [word for pair in found.options.pairs() for word in pair]
        words += _cell_options(found, rows)
    check()
    typer.echo(f"Proposed command:\n  {shlex.join(words)}")


def _cell_options(found: FileFormat, rows: Sequence[Sequence[str]]) -> list[str]:
    """`--null` and `--numbers`, where the sample has such cells in columns of attributes."""
    if found.options is None:
        return []
    columns = {value.partition("=")[2] for value in found.options.attributes}
    indexes = [index for index, column in enumerate(found.header) if column in columns]
    cells = [(found.header[index], row[index].strip()) for row in rows for index in indexes if index < len(row)]
    nulls = dict.fromkeys(f"{column}={cell}" for column, cell in cells if cell in NULLS)
    words = [word for null in nulls for word in ("--null", null)]
    numbers = [cell for _, cell in cells if re.fullmatch(r"[+-]?\d[\d.,' \u00a0\u202f]*", cell)]
    if any(not re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) for cell in numbers):
        fitting = [example for example in EXAMPLES if all(_fits(example, cell) for cell in numbers)]
        words += ["--numbers", fitting[0]] if fitting else []
    return words


def _fits(example: str, cell: str) -> bool:
    try:
        NumberFormat(example).plain(cell)
    except BadInput:
        return False
    return True
