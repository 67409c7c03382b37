"""A look at a file before it is imported: `--describe` proposes a command, and files that an import would misread are
rejected (trees by parent id, paths in one column, no header).
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice

import typer

from commands.importing.files import FileFormat, Source
from commands.importing.tables import TableSource
from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import fold
from store.transfer.formats.shapes import (
    MAX_ROWS,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    ParentColumn,
    data_in_header,
    first_rows,
    joined_path,
    parent_column,
)
from store.transfer.formats.source import EXAMPLES, Doubt, Guess, NumberFormat
from store.transfer.rows import Rejection, Row
from store.transfer.tables.items import key_text
from store.transfer.tables.scan import first_items, sample_items

PATHS = "columns path, level and name, such as Garden/Mowers,CATEGORY,Lawn mowers"


def check_file(hierarchy: Hierarchy, source: Source, found: FileFormat, taken: Collection[Guess]) -> None:
    """Raise Doubt for a file whose rows would become another tree than it has, unless this guess is `taken`."""
    if found.rows is not None and found.options is not None:
        levels = [value.partition("=")[2] for value in found.options.levels]
        if found.has_text_header:
            known = {fold(name) for level in hierarchy.levels.values() for name in (level.name, *level.attributes)}
            cell = None if Guess.HEADER in taken else data_in_header(found.header, found.rows(), known)
            if cell is not None:
                raise Doubt(
                    Guess.HEADER,
                    f'The first row of {source.name} looks like data: "{shorten(cell)}" is no name of a column, by the '
                    "rows below; add a line above it that names the columns.",
                )
        if Guess.SHAPE not in taken:
            _refuse_parents(source.name, parent_column(found.header, found.rows, levels))
    if not found.is_own and Guess.SHAPE not in taken:
        check_keys(source.name, (row for _, row in found.format.read()), only_texts=found.has_lists)


def check_table(table: TableSource) -> None:
    """Raise Doubt for a table of DynamoDB whose items refer to their parents by an id."""
    header = list(dict.fromkeys(name for item in sample_items(table.export, SAMPLE_ROWS) for name in item))

    def rows() -> Iterator[list[str]]:
        for item in first_items(table.export, MAX_ROWS):
            yield [key_text(item.get(name)) for name in header]

    _refuse_parents(table.source.name, parent_column(header, rows))


def check_keys(source: str, rows: Iterable[Row | Rejection], *, only_texts: bool = False) -> None:
    """Raise Doubt for rows in which the keys of a level are whole paths.

    With `only_texts` paths that are lists of keys are taken as they are.
    """
    levels: dict[str, tuple[str, set[str]]] = {}
    size = 0
    for row in islice(rows, SAMPLE_ROWS):
        if isinstance(row, Rejection) or (only_texts and isinstance(row.path, list)):
            continue
        size += sum(len(str(key)) for key in row.path)
        if size > SAMPLE_CHARACTERS:
            break
        levels_of = [part.level for part in row.parts] or [""]
        for index, key in enumerate(row.path):
            level = levels_of[max(0, index - len(row.path) + len(levels_of))]
            column = row.columns[index] if index < len(row.columns) else ""
            levels.setdefault(level, (column, set()))[1].add(str(key))
    for level, (column, keys) in levels.items():
        if found := joined_path(keys):
            place = f'Column "{column}" of {source}' if column else source
            raise Doubt(
                Guess.SHAPE,
                f'{place} has whole paths, such as "{shorten(found.example)}", where a key of one {level} belongs; '
                f"write a file with the {PATHS}, with / between the keys.",
            )


def _refuse_parents(source: str, found: ParentColumn | None) -> None:
    if found is not None:
        raise Doubt(
            Guess.SHAPE,
            f'{source} is a tree by parent ids: column "{shorten(found.parent)}" has values of "{shorten(found.id)}" '
            f"of other rows. Such trees are not imported; write a file with the {PATHS}.",
        )


DESCRIBED_ROWS = 1_000
SHOWN_VALUES = 3
NULLS = ("NULL", "null", "\\N", "N/A", "n/a", "#N/A", "NaN", "nan", "None", "-", "--")


def describe_file(hierarchy: str, address: str, source: Source, found: FileFormat, check: Callable[[], None]) -> None:
    """Print the columns of a table with values of the first rows, what was guessed, and the proposed command.

    A file that fails the `check` has no command that would import it.
    """
    for guess in found.guesses:
        typer.echo(f"{source.name}: {guess}")
    words = ["clade", "import", hierarchy, address, *found.words]
    if found.rows is not None and found.options is not None:
        rows = first_rows(found.header, islice(found.rows(), DESCRIBED_ROWS))
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
