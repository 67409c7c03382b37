"""CSV and TSV: a column for each level, from the root down, so that a row has a whole path."""

import csv
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from store.errors import BadInput
from store.model.names import NAMES
from store.text import quantity, shorten
from store.transfer.formats.lines import MAX_LINE_BYTES, SHOWN_BYTES, TOO_LONG
from store.transfer.rows import Part, Rejection, Row

MAX_CELL_CHARACTERS = 1 << 20  # more than any item holds; csv's own limit is less than some

Record = tuple[int, str, list[str] | Rejection]  # the number of its first line, its text, its cells


@dataclass
class LevelColumns:
    """The names of the columns of one level: for its key, and optionally for name, id and attributes, and for names in
    other languages by language tag.

    With `fold`, siblings that differ in case only are one node, written as the first of them.
    """

    level: str
    key: str
    name: str | None = None
    id: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    fold: bool = False

    @property
    def constant_part(self) -> Part | None:
        """The part that all rows have for a level with a column for its key alone, else None."""
        return None if self.name or self.id or self.attributes or self.names else Part(self.level)


def read_csv(levels: Sequence[LevelColumns], file: Path) -> Iterator[tuple[str, Row | Rejection]]:
    """The records of a CSV file, of a TSV file by its extension, each with its row.

    An empty cell skips its level, and an empty cell of an attribute means no value. The text may have surrogate escapes
    for bytes that are not UTF-8. Raises BadInput where the file has no header, or not exactly one column of each name.
    """
    records = _records(file)
    header = _header(file, records, levels)
    reader = _RowReader(levels, header)
    for number, text, cells in records:
        if isinstance(cells, Rejection):
            yield text, cells
        elif cells:  # a blank line has none
            yield text, reader.row(number, cells)


class _RowReader:
    """Turns cells into rows; remembers how the first of the siblings of a folded level was written."""

    def __init__(self, levels: Sequence[LevelColumns], header: Sequence[str]) -> None:
        self._index = {column: index for index, column in enumerate(header)}
        self._width = len(header)
        self._levels = [(level, self._index[level.key], level.constant_part) for level in levels]
        self._first: dict[tuple[tuple[str, ...], str], tuple[str, str | None]] = {}

    def row(self, number: int, cells: list[str]) -> Row | Rejection:
        if len(cells) != self._width:
            return Rejection(number, f"The row has {quantity(len(cells), 'column')}, the header {self._width}.")
        try:
            "".join(cells).encode()
        except UnicodeEncodeError:
            return Rejection(number, "The row is not valid UTF-8.")
        path: list[str] = []
        parts: list[Part] = []
        for level, index, constant_part in self._levels:
            key = cells[index].strip()
            if key:
                name = None if constant_part else self._cell(cells, level.name)
                if level.fold:
                    key, name = self._folded(tuple(path), key, name)
                path.append(key)
                parts.append(constant_part or self._part(cells, level, name))
        return Row(number, path, parts) if path else Rejection(number, "The row has no key in any column of a level.")

    def _part(self, cells: list[str], level: LevelColumns, name: str | None) -> Part:
        attributes: dict[str, object] = {name: self._cell(cells, column) for name, column in level.attributes.items()}
        if level.names:
            attributes[NAMES] = {language: self._cell(cells, column) for language, column in level.names.items()}
        return Part(level.level, name, self._cell(cells, level.id), attributes)

    def _cell(self, cells: list[str], column: str | None) -> str | None:
        return None if column is None else cells[self._index[column]].strip() or None

    def _folded(self, above: tuple[str, ...], key: str, name: str | None) -> tuple[str, str | None]:
        first_key, first_name = self._first.setdefault((above, _fold(key)), (key, name))
        if name and first_name and _fold(name) == _fold(first_name):
            name = first_name
        return first_key, name


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


# -- the lines below the columns ---------------------------------------------------------------------------------------


class _TooLong(Exception):
    """The lines of one row are too long."""


class _RecordedLines:
    """The lines of a file, with the text of those since the last `take_text`, since csv has only the cells."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._lines: list[str] = []
        self._bytes_left = MAX_LINE_BYTES
        self.number = 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Raises _TooLong at the end of a line where the lines of a row are too long; keeps their beginning alone."""
        line = self._source.readline(self._bytes_left + 1)
        if not line:
            raise StopIteration
        self._lines.append(line)
        self._bytes_left -= len(line.encode("utf-8", "surrogateescape"))
        if self._bytes_left < 0:
            while line and not line.endswith("\n"):
                line = self._source.readline(MAX_LINE_BYTES)
            self._lines = ["".join(self._lines)[:SHOWN_BYTES], *[""] * (len(self._lines) - 1)]
            raise _TooLong
        return line

    def take_text(self) -> tuple[int, str]:
        """The number of the first line since the last call, and the text of all of them."""
        number, lines = self.number, self._lines
        self.number += len(lines)
        self._lines, self._bytes_left = [], MAX_LINE_BYTES
        return number, "".join(lines)


def _records(file: Path) -> Iterator[Record]:
    """The records of a file; a quoted cell may have several lines, and the number is that of the first."""
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as source:
        lines = _RecordedLines(source)
        csv.field_size_limit(MAX_CELL_CHARACTERS)
        delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
        reader = csv.reader(lines, delimiter=delimiter)
        while True:
            try:
                cells: list[str] | Rejection = next(reader)
            except StopIteration:
                return
            except _TooLong:
                cells = Rejection(lines.number, TOO_LONG)
                reader = csv.reader(lines, delimiter=delimiter)  # the old one is in the middle of a row
            except csv.Error as error:
                cells = Rejection(lines.number, f"The row is not valid CSV: {error}.")
            number, text = lines.take_text()
            yield number, text, cells


def _header(file: Path, records: Iterator[Record], levels: Iterable[LevelColumns]) -> list[str]:
    """The names of the columns; raises BadInput unless each column of the levels is there once."""
    _, _, cells = next(records, (1, "", []))
    if isinstance(cells, Rejection) or not any(cells):
        raise BadInput(f'"{file.name}" has no header: its first line must name the columns.')
    header = [cell.strip() for cell in cells]
    for level in levels:
        for column in (level.key, level.name, level.id, *level.attributes.values(), *level.names.values()):
            if column is not None and header.count(column) != 1:
                found = "two columns" if column in header else "no column"
                names = ", ".join(f'"{shorten(name)}"' for name in header)
                raise BadInput(f'The file has {found} "{column}"; it has {names}.')
    return header
