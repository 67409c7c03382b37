"""Tables of formats other than text: a header and rows of typed cells, which become nodes as those of CSV do.

Tables of any format may have a path and a level in each row, as exports have them, also for levels that nest in
themselves.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import orjson

from store.errors import BadInput, shorten
from store.model.attributes import Attribute
from store.model.hierarchy import Hierarchy
from store.model.keys import Path as NodePath
from store.model.names import NAMES
from store.model.paths import format_path
from store.transfer.formats.columns import (
    MAX_COLUMNS,
    NUMERIC,
    PLAIN,
    CellFormat,
    LevelColumns,
    check_columns,
    fitted,
    text_of,
    typed_text,
)
from store.transfer.formats.lines import FIXED, MAX_LINE_BYTES, TOO_LONG, row_of
from store.transfer.formats.source import JSON_REASON, RejectedRows, csv_line, free_name
from store.transfer.rows import Rejection, Row, TextRows

LAST = (NAMES, "rank", "undefined")
AS_JSON = (NAMES, "undefined")
MAX_DEPTH = 32  # of objects in objects
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")

TableRow = tuple[int, Sequence[object], str | None, str | None]  # number, cells, what is wrong, text


class PathRowReader:
    """Turns cells into rows. An empty cell means no value, and nothing for an attribute that the level lacks.

    A cell that is a JSON string, such as `" a"` or `""`, is this text. The `columns` of levels, which have no keys, are
    of other names than their attributes; in a row of another level they are attributes of their own names.
    """

    def __init__(
        self, hierarchy: Hierarchy, header: Sequence[str], columns: Sequence[LevelColumns] = (),
        cell_format: CellFormat = PLAIN,
    ) -> None:  # fmt: skip
        check_table(header, columns)
        cell_format.check(header)
        self._format = cell_format
        self._nulls = {name: nulls for name in header if (nulls := cell_format.nulls_in(name))}
        self._hierarchy = hierarchy
        self._header = header
        self._columns = {own.level: own for own in columns}
        self._taken = {own.level: {*own.values} for own in columns}
        self._is_export = [name for name in header if not name.startswith(JSON_REASON)] == path_header(hierarchy)

    def filled(self, cells: Sequence[object]) -> Sequence[object]:
        """The cells of a row as they are, since each row has a whole path."""
        return cells

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, as those of JSON lines."""
        fields: dict[str, object] = {}
        typed = dict(zip(self._header, cells, strict=True))
        path, level_name = (typed_text(typed[name], name, is_name=True).strip() for name in ("path", "level"))
        level = self._hierarchy.find(level_name)
        taken = self._taken.get(level.name, ()) if level else ()
        for name, cell in typed.items():
            if name.startswith(JSON_REASON) or name in taken:
                continue
            attribute = level.attribute(name) if level else None
            text = self._text(cell, name, name, attribute)
            if name in AS_JSON or (attribute is not None and attribute.many and text.startswith("[")):
                try:
                    fields |= {name: orjson.loads(text)} if text else {}
                except orjson.JSONDecodeError as error:
                    raise BadInput(f'Column "{name}": {shorten(text)} is not valid JSON: {error}.') from error
            elif text or attribute is not None:
                fields[name] = self._value(text, cell, attribute)
        if level and (own := self._columns.get(level.name)):
            for name, column in own.columns.items():
                cell, attribute = typed[column], level.attribute(name)
                fields[name] = self._value(self._text(cell, column, name, attribute), cell, attribute) or None
            if own.names:
                names = own.names.items()
                fields[NAMES] = {language: self._text(typed[one], one, "name", None) or None for language, one in names}
        fields |= {"path": unquoted(path), "level": level_name}
        return row_of(number, fields, is_exact=self._is_export)

    def _text(self, cell: object, column: str, name: str, attribute: Attribute | None) -> str:
        """The text of a cell, empty where it means no value."""
        text = cell
        if not isinstance(text, str):
            text = typed_text(cell, column, is_name=name in FIXED, is_number=_is_number(attribute))
        return "" if column in self._nulls and text.strip() in self._nulls[column] else text

    def _value(self, text: str, cell: object, attribute: Attribute | None) -> object:
        """The value of a text, None for no value."""
        if text and _is_number(attribute) and isinstance(cell, str):
            return self._format.number(unquoted(text))
        return unquoted(text) if text else None


def check_table(header: Sequence[str], columns: Iterable[LevelColumns]) -> None:
    """Raise BadInput where a column of the levels is not in the header, or any column is there twice."""
    repeated = [LevelColumns("", name) for name, count in Counter(header).items() if name and count > 1]
    check_columns(header, [*columns, *repeated])


def _is_number(attribute: Attribute | None) -> bool:
    return attribute is not None and attribute.kind in NUMERIC


@dataclass(frozen=True)
class Table:
    """A header, and a function to all rows, each with its number in the file, what is wrong with it and its text.

    The text is None where it is a line of CSV of the cells, which `line` makes. `rejected` says how rejected rows are
    written, with a column of this name for the reason. `merged` are the columns of a sheet with cells that are merged
    over several rows below the header.
    """

    header: Sequence[str]
    rows: Callable[[], Iterator[TableRow]]
    merged: Sequence[str] = ()
    line: Callable[[Iterable[str]], str] = csv_line
    rejected_by: Callable[[str], RejectedRows] | None = None

    def rejected(self, reason_column: str) -> RejectedRows:
        """How rejected rows are written, with this column for the reason: by default as lines of CSV."""
        if self.rejected_by:
            return self.rejected_by(reason_column)
        head = csv_line([*self.header, free_name(reason_column, self.header)]).encode()
        return RejectedRows(
            ".csv", head + b"\n", head, lambda text, reason: f"{text},{csv_line([reason])}\n".encode("utf-8", "replace")
        )

    def texts(self) -> Iterator[list[str]]:
        """The rows as texts, as wide as the header, without those that cannot be read."""
        for _, cells, reason, _ in self.rows():
            if reason is None:
                yield [*map(text_of, cells), *[""] * (len(self.header) - len(cells))]


class CellReader(Protocol):
    """Turns the cells of a table into rows."""

    def filled(self, cells: Sequence[object]) -> Sequence[object]:
        """The cells of a row, with those that stand above it."""

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells. Raises BadInput."""


def read_table(table: Table, reader: CellReader) -> TextRows:
    """The rows of a table, each with its text. An empty cell skips its level, and means no value of an attribute.

    Raises BadInput and Doubt for what is wrong with the table as a whole.
    """
    width = len(table.header)
    for number, cells, reason, text in table.rows():
        if reason is None and not any(cells) and all(cell in (None, "") for cell in cells):
            continue  # an empty row, as spreadsheets write them
        try:
            if reason is not None:
                raise BadInput(reason)
            fitting = cells if len(cells) == width else fitted(cells, width)
            cells = reader.filled(fitting)
            text = text if cells is fitting else None
            row = reader.row(number, cells)
        except BadInput as error:
            row = Rejection(number, str(error))
        yield table.line(map(text_of, cells)) if text is None else text, row


def checked_header(file: Path, header: list[str]) -> list[str]:
    """The names of the columns; raises BadInput for so many that each row would take much memory."""
    if len(header) > MAX_COLUMNS:
        raise BadInput(f"{file.name} has {len(header):,} columns; at most {MAX_COLUMNS:,} are read.")
    return header


def bounded_row(number: int, cells: Sequence[object]) -> TableRow:
    """The row of these cells, or its error where their texts are longer than a line of a text file may be."""
    size = sum([len(one) for one in cells if isinstance(one, str)])
    return (number, cells, None, None) if size <= MAX_LINE_BYTES else (number, (), TOO_LONG, "")


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


def is_path_table(header: Sequence[str]) -> bool:
    """Whether a table has a path and a level in each row."""
    return header.count("path") == header.count("level") == 1


def path_header(hierarchy: Hierarchy) -> list[str]:
    """The columns of an export: the attributes of all levels, each once."""
    attributes = dict.fromkeys(name for level in hierarchy.levels.values() for name in level.attributes)
    return [*FIXED, *attributes, *LAST]


def path_line(header: Sequence[str], fields: Mapping[str, object]) -> str:
    """The line of CSV of a node, given as in JSON lines. Names in languages and undefined attributes are JSON."""
    path = format_path(cast(NodePath, fields["path"]))
    cells = {name: _text(value) for name, value in {**fields, "path": path}.items() if value is not None}
    cells |= {name: orjson.dumps(fields[name]).decode() for name in AS_JSON if name in fields}
    return csv_line([cells.get(name, "") for name in header])


def _text(value: object) -> str:
    """A value as a cell; as JSON where the cell would not be read as this value, but trimmed, split or as none."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        are_plain = all(isinstance(one, str) and ";" not in one and one[:1] != "[" for one in value)
        is_json = not value or not are_plain or any(map(_needs_quotes, value))
    else:
        is_json = isinstance(value, str) and _needs_quotes(value)
    return orjson.dumps(value).decode() if is_json else text_of(value)


def _needs_quotes(text: str) -> bool:
    return not text or text != text.strip() or text.startswith('"') or bool(_CONTROLS.search(text))


def unquoted(text: str) -> str:
    """The text of a cell that is a JSON string, such as `" a"`; any other text as it is."""
    try:
        return str(orjson.loads(text)) if text[:1] == text[-1:] == '"' else text
    except orjson.JSONDecodeError:
        return text
