"""Tables of formats other than text: a header and rows of typed cells, which become nodes as those of CSV do."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.transfer.formats.path_table import PathRowReader
from store.transfer.formats.rejected import csv_line
from store.transfer.formats.row_reader import (
    MAX_COLUMNS,
    PLAIN,
    CellFormat,
    LevelColumns,
    RowReader,
    check_columns,
    json_text,
    text_of,
)
from store.transfer.rows import Rejection, Row

MAX_DEPTH = 32

TableRow = tuple[int, Sequence[object], str | None]


@dataclass(frozen=True)
class Table:
    """A header, and a function to all rows, each with its number in the file and what is wrong with it, or None."""

    header: Sequence[str]
    rows: Callable[[], Iterator[TableRow]]

    def texts(self) -> Iterator[list[str]]:
        """The rows as texts, without those that cannot be read."""
        for _, cells, reason in self.rows():
            if reason is None:
                yield [text_of(cell) for cell in cells]


def checked_header(file: Path, header: list[str]) -> list[str]:
    """The names of the columns; raises BadInput for so many that each row would take much memory."""
    if len(header) > MAX_COLUMNS:
        raise BadInput(f"{file.name} has {len(header):,} columns; at most {MAX_COLUMNS:,} are read.")
    return header


def found_columns(file: Path, rows: Iterable[Iterable[str]]) -> list[str]:
    """The names in all rows, each once. Raises BadInput at the first that is too many."""
    header: dict[str, None] = {}
    for row in rows:
        header |= dict.fromkeys(row)
        if len(header) > MAX_COLUMNS:
            checked_header(file, list(header))
    return list(header)


def read_table(
    levels: Sequence[LevelColumns], table: Table, cell_format: CellFormat = PLAIN
) -> Iterator[tuple[str, Row | Rejection]]:
    """The rows of a table, each with its line of CSV. Empty cells are as in `read_csv`; rows of them are skipped."""
    check_columns(table.header, levels)
    yield from _rows(table, RowReader(levels, table.header, cell_format))


def read_path_table(hierarchy: Hierarchy, table: Table) -> Iterator[tuple[str, Row | Rejection]]:
    """The rows of a table with the columns `path` and `level`, each with its line of CSV."""
    yield from _rows(table, PathRowReader(hierarchy, table.header))


def _rows(table: Table, reader: RowReader | PathRowReader) -> Iterator[tuple[str, Row | Rejection]]:
    for number, cells, reason in table.rows():
        if reason is not None or any(cell not in (None, "") for cell in cells):
            text = csv_line([text_of(cell) for cell in cells])
            yield text, reader.row(number, cells) if reason is None else Rejection(number, reason)


def unreadable(number: int, value: object, header: Sequence[str], reason: str) -> TableRow:
    """The row of a value that has no cells, which the reason has instead."""
    return number, [None] * len(header), f"{reason} It is {json_text(value)}."


def flat(fields: dict[str, Any], prefix: str = "", depth: int = 0) -> dict[str, object]:
    """The values of an object and those in it by dotted names, such as address.city. Raises BadInput if it is deep."""
    if depth > MAX_DEPTH:
        raise BadInput(f"An object is nested more than {MAX_DEPTH} times.")
    found: dict[str, object] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            found.update(flat(value, f"{prefix}{name}.", depth + 1))
        else:
            found[f"{prefix}{name}"] = value
    return found
