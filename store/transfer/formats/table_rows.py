"""Rows of tables: cells of any format, which become the nodes of a path with a column for each level."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from store.errors import BadInput
from store.model.names import NAMES
from store.text import quantity, shorten
from store.transfer.formats.files import csv_line
from store.transfer.rows import NOTHING, Part, Rejection, Row

NO_NULLS: frozenset[str] = frozenset()
MAX_COLUMNS = 20_000  # of a table; Excel has 16,384
MAX_NAMED_COLUMNS = 40  # in a message
EXAMPLES = ("1,234.56", "1.234,56", "1 234,56", "1'234.56")
_SPACES = re.compile("[\u00a0\u2009\u202f]")  # narrow and no-break spaces, as programs write them between thousands


@dataclass
class LevelColumns:
    """The names of the columns of one level: for its key, and optionally for name, id and attributes, and for names in
    other languages by language tag.

    With `fold`, siblings that differ in case only are one node, written as the first of them. `numeric` are the
    attributes that are numbers. With a `separator` the key is a path of nodes of this level, such as `A > B > C`, and
    the values are those of the last one.
    """

    level: str
    key: str
    name: str | None = None
    id: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    fold: bool = False
    numeric: frozenset[str] = frozenset()
    separator: str | None = None

    @property
    def constant_part(self) -> Part | None:
        """The part that all rows have for a level with a column for its key alone, else None."""
        return None if self.name or self.id or self.attributes or self.names else Part(self.level)

    def without(self, taken: Collection[str]) -> "LevelColumns":
        """These columns without the ones that a level below takes; the key keeps its own."""
        return replace(
            self,
            name=None if self.name in taken else self.name,
            id=None if self.id in taken else self.id,
            attributes={name: column for name, column in self.attributes.items() if column not in taken},
            names={language: column for language, column in self.names.items() if column not in taken},
        )

    @property
    def columns(self) -> dict[str, str]:
        """The columns by attribute, with those of the name and the id."""
        own = {"name": self.name, "id": self.id}
        return {**{name: column for name, column in own.items() if column}, **self.attributes}


@dataclass(frozen=True)
class NumberFormat:
    """A way to write numbers, named by an example: one of `EXAMPLES`."""

    example: str

    def __post_init__(self) -> None:
        if self.example not in EXAMPLES:
            written = " or ".join(f'"{example}"' for example in EXAMPLES)
            raise BadInput(f'"{shorten(self.example)}" is not a format of numbers; use {written}.')

    def plain(self, text: str) -> str:
        """A number with a decimal point and without thousands, such as 1234.56. Raises BadInput for any other text."""
        thousands, decimal = self.example[1], self.example[5]
        found = _SPACES.sub(" ", text.strip()) if thousands == " " else text.strip()
        group, point = re.escape(thousands), re.escape(decimal)
        if not re.fullmatch(rf"[+-]?([0-9]{{1,3}}({group}[0-9]{{3}})+|[0-9]+)({point}[0-9]+)?", found):
            raise BadInput(f'"{shorten(text)}" is not a number like {self.example}.')
        return found.replace(thousands, "").replace(decimal, ".")


@dataclass(frozen=True)
class CellFormat:
    """How cells are written: texts that mean no value, in all columns or in one, and the format of numbers."""

    nulls: frozenset[str] = NO_NULLS
    nulls_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: NumberFormat | None = None


PLAIN = CellFormat()


class NotLike(NamedTuple):
    """A number that is not in the format of numbers, which no attribute takes."""

    text: str
    example: str

    def __repr__(self) -> str:
        return f"'{self.text}', which is not written like {self.example},"


class _Columns(NamedTuple):
    """The columns of a level in a table: where its key is, the part if that is all, the columns by attribute."""

    level: LevelColumns
    key_index: int
    constant_part: Part | None
    columns: dict[str, str]

    @property
    def values(self) -> list[str]:
        """The columns of values, without the key's."""
        return [*self.columns.values(), *self.level.names.values()]


class CellReader:
    """Reads the cells of a table: texts, or values where the format has types."""

    def __init__(self, header: Sequence[str], cell_format: CellFormat = PLAIN) -> None:
        self._index = {column: index for index, column in enumerate(header)}
        self._header = list(header)
        self._width = len(header)
        self._nulls = [cell_format.nulls | cell_format.nulls_of.get(column, NO_NULLS) for column in header]
        self._numbers = cell_format.numbers
        if unknown := cell_format.nulls_of.keys() - self._index.keys():
            raise BadInput(f'The file has no column "{min(unknown)}" for --null; it has {named(header)}.')

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells: texts, or numbers, truth values, dates and times where the format has types."""
        raise NotImplementedError

    def _problem(self, number: int, cells: Sequence[object]) -> Rejection | None:
        """Why a row is none of this table."""
        if len(cells) != self._width:
            return Rejection(number, f"The row has {quantity(len(cells), 'column')}, the header {self._width}.")
        if cells[0] == self._header[0] and list(cells) == self._header:
            return Rejection(number, "The row is the header again; remove it.")
        return None

    def _part(self, cells: Sequence[object], level: LevelColumns, name: str | None, columns: dict[str, str]) -> Part:
        attributes: dict[str, object] = {}
        for attribute, column in level.attributes.items():
            is_number = attribute in level.numeric
            attributes[attribute] = self._number(cells, column) if is_number else self._cell(cells, column)
        if level.names:
            attributes[NAMES] = {language: self._cell(cells, column) for language, column in level.names.items()}
        return Part(level.level, name, self._cell(cells, level.id), attributes or NOTHING, columns=columns)

    def _text(self, cells: Sequence[object], index: int) -> str:
        cell = cells[index]
        text = cell.strip() if isinstance(cell, str) else text_of(cell)
        return "" if text in self._nulls[index] else text

    def _cell(self, cells: Sequence[object], column: str | None) -> str | None:
        return None if column is None else self._text(cells, self._index[column]) or None

    def _number(self, cells: Sequence[object], column: str) -> object:
        index = self._index[column]
        text = self._text(cells, index)
        if isinstance(cells[index], str) and text and self._numbers:
            try:
                return self._numbers.plain(text)
            except BadInput:
                return NotLike(text, self._numbers.example)
        return text or None


class RowReader(CellReader):
    """Turns cells into rows; remembers how the first of the siblings of a folded level was written."""

    def __init__(self, levels: Sequence[LevelColumns], header: Sequence[str], cell_format: CellFormat = PLAIN) -> None:
        super().__init__(header, cell_format)
        self._levels = [_Columns(level, self._index[level.key], level.constant_part, level.columns) for level in levels]
        self._columns = {one.level.key: one.values for one in self._levels}
        names = [level.level for level in levels]
        self._repeated = {name for name in names if names.count(name) > 1}
        used = [column for own in self._columns.values() for column in {*own}]
        self._shares_columns = len(used) > len({*used})
        self._layouts: dict[tuple[int, ...], list[_Columns]] = {}
        self._first: dict[tuple[tuple[str, ...], str], tuple[str, str | None]] = {}

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells: texts, or numbers, truth values, dates and times where the format has types."""
        if (problem := self._problem(number, cells)) is not None:
            return problem
        path: list[str] = []
        parts: list[Part] = []
        keys: list[str] = []
        absent = False
        skipped: dict[str, str] = {}
        for one in self._layout(cells) if self._shares_columns else self._levels:
            level, constant_part = one.level, one.constant_part
            key = self._text(cells, one.key_index)
            if key and level.level in skipped:
                column = skipped[level.level]
                return Rejection(
                    number, f'Column "{column}" is empty, but "{level.key}" below it has a key; fill it in.'
                )
            if key and level.separator is not None:
                *above, key = segments(key, level.separator)
                for segment in above:
                    path.append(self._folded(tuple(path), segment, None)[0] if level.fold else segment)
                    keys.append(level.key)
                    parts.append(Part(level.level))
            if key:
                name = None if constant_part else self._cell(cells, level.name)
                if level.fold:
                    key, name = self._folded(tuple(path), key, name)
                path.append(key)
                keys.append(level.key)
                parts.append(constant_part or self._part(cells, level, name, one.columns))
            else:
                absent = absent or constant_part is None
                skipped |= {level.level: level.key} if level.level in self._repeated else {}
        if not path:
            return Rejection(number, "The row has no key in any column of a level.")
        if absent and (reason := self._homeless(cells, keys)):
            return Rejection(number, reason)
        return Row(number, path, parts, keys)

    def _layout(self, cells: Sequence[object]) -> list["_Columns"]:
        """The columns of the levels, where one column is given for several: it is that of the deepest in the row."""
        present = tuple([number for number, one in enumerate(self._levels) if self._text(cells, one.key_index)])
        if present not in self._layouts:
            layout, taken = [*self._levels], set[str]()
            for number in reversed(present):
                level = layout[number].level.without(taken)
                layout[number] = _Columns(level, layout[number].key_index, level.constant_part, level.columns)
                taken.update(layout[number].values)
            self._layouts[present] = layout
        return self._layouts[present]

    def _homeless(self, cells: Sequence[object], keys: Sequence[str]) -> str | None:
        """The reason against a row that has a value for a level without a key; `keys` are the columns of its keys."""
        used = {*keys, *(column for key in keys for column in self._columns[key])}
        for key, own in self._columns.items():
            for column in own if key not in keys else ():
                if column not in used and (text := self._text(cells, self._index[column])):
                    return f'Column "{column}" has {shorten(repr(text))}, but "{key}" is empty; fill in or clear both.'
        return None

    def _folded(self, above: tuple[str, ...], key: str, name: str | None) -> tuple[str, str | None]:
        first_key, first_name = self._first.setdefault((above, _fold(key)), (key, name))
        if name and first_name and _fold(name) == _fold(first_name):
            name = first_name
        return first_key, name


def segments(text: str, separator: str) -> list[str]:
    """The parts of a path in one cell, which may begin and end with the separator, as `/usr/share/`.

    An empty part between two others stays, and is rejected as a key.
    """
    found = [part.strip() for part in text.split(separator)]
    first, last = not found[0], len(found) > 1 and not found[-1]
    return found[first : len(found) - last] or [""]


def text_of(cell: object) -> str:
    """A typed cell as a text file would have it: 7 for 7.0, true, 2026-11-22, nothing for None, objects as JSON."""
    match cell:
        case None:
            return ""
        case str():
            return cell
        case bool():
            return str(cell).lower()
        case float() if cell.is_integer() and abs(cell) < 1e15:
            return str(int(cell))
        case datetime() if cell.time() == time() and cell.tzinfo is None:
            return cell.date().isoformat()
        case date() | time():  # a datetime is a date
            return cell.isoformat()
        case dict():
            return json_text(cell)
        case list() | tuple() if any(isinstance(one, dict | list) for one in cell):
            return json_text(cell)
        case list() | tuple():
            return ";".join(text_of(one) for one in cell)
        case _:
            return str(cell)


def json_text(value: object) -> str:
    """A value as JSON; raises BadInput for one that is nested too deeply."""
    try:
        return orjson.dumps(value, default=str).decode()
    except orjson.JSONEncodeError as error:
        raise BadInput(f"A value cannot be written as JSON ({error}); nest it less deeply.") from error


def check_columns(header: Sequence[str], levels: Iterable[LevelColumns]) -> None:
    """Raise BadInput unless each column of the levels is in the header exactly once."""
    for level in levels:
        for column in (level.key, level.name, level.id, *level.attributes.values(), *level.names.values()):
            if column and header.count(column) != 1:
                found = "two columns" if column in header else "no column"
                raise BadInput(f'The file has {found} "{column}"; it has {named(header)}.')


def named(header: Sequence[str]) -> str:
    """The names of the columns, for a message."""
    names = [f'"{shorten(name)}"' for name in header[:MAX_NAMED_COLUMNS]]
    more = len(header) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


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


def read_rows(reader: CellReader, table: Table) -> Iterator[tuple[str, Row | Rejection]]:
    """The rows of a table, each with its line of CSV. Empty cells are as in a CSV file; rows of them are skipped."""
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
