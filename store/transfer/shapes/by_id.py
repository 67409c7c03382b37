"""Rows that name stored nodes by their ids or by unique values, and say nothing of paths: cells of a table, or objects
of JSON.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from store.errors import BadInput
from store.model.attributes import NUMBERS, Kind
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.model.records import Record, checked_id
from store.transfer.diff import bare_id
from store.transfer.formats.cells import PLAIN, check_named, typed_text
from store.transfer.formats.source import JSON_REASON
from store.transfer.formats.table import Table, TableRow
from store.transfer.rows import AskedNodes, Part, Rejection, Row, TextRows
from store.transfer.shapes.columns import LevelColumns
from store.transfer.shapes.doubts import Look
from store.transfer.shapes.paths import PathCells, check_places, check_table, named_columns, row_of, unquoted
from store.transfer.shapes.shape import RowOptions, Shape

PLACE = frozenset(("path", "level", "id"))  # columns that say nothing where the node is found by its id


class ById(Shape):
    """Rows that have an id or a unique value, and other values. Each becomes that of its node, as in a file of paths,
    once this is known. The column may have any name; those of levels are of other names than their attributes.
    """

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        self.column, self.attribute = options.by_id or "id", options.by_value
        self.by, self._kind = (self.attribute.name, self.attribute.kind) if self.attribute else ("id", Kind.TEXT)
        self.by_id, self.is_table = self._node_of, table.values is None
        if table.is_text:
            raise BadInput(f"--by {self.by} needs a table: CSV, Excel, Parquet, GeoJSON, JSON or JSON lines.")
        if self.is_table:
            self._read_columns(table.header)
        elif options.cells != PLAIN:
            raise BadInput("--null, --numbers, --dates and --list-separator are for the cells of tables, not for JSON.")
        else:
            self._values = {own.level: own for own in self.value_columns()}
            self._place = PLACE | self.unused | {self.column}

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        return options.by_id is not None

    def _read_columns(self, header: Sequence[str]) -> None:
        self.levels = self.value_columns()
        check_named("--by", [self.column], header)
        check_table(header, [LevelColumns("", self.column), *self.levels])
        self.given.cells.check(header)
        self.rejected = self.table.rejected(JSON_REASON)
        self._index, self._nulls = header.index(self.column), self.given.cells.nulls_in(self.column)
        self._others = {n: index for index, n in enumerate(header) if n not in PLACE and n != self.column}
        names = ["path", "level", *self._others]
        self._cells = PathCells(self.hierarchy, names, self.levels, self.given.cells, self.unused)

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The rows, each with its id alone, and with its text."""
        if self.table.values is None:
            yield from super().read(rows)
            return
        self.skip.start()
        for number, text, fields in self.table.values():
            if isinstance(fields, dict) and self.skip.takes_object(fields):
                continue
            if isinstance(fields, dict):
                yield text, Row(number, (), [Part("", id=fields.get(self.column), attributes=fields)])
            else:
                is_rejected = isinstance(fields, Rejection)
                yield text, fields if is_rejected else Rejection(number, "The row is not a JSON object.")
        self.check_fields()

    def row(self, number: int, cells: Sequence[object]) -> Row:
        cell, kind = cells[self._index], self._kind
        text = typed_text(cell, self.column, is_name=kind is Kind.TEXT, is_number=kind in NUMBERS).strip()
        value: object = None if text in self._nulls or not text else unquoted(text)
        if value and self.attribute and isinstance(cell, str):
            value = self.given.cells.value(str(value), self.attribute, self.column)
        return Row(number, (), [Part("", id=value, attributes={n: cells[one] for n, one in self._others.items()})])

    def _node_of(self, row: Row) -> AskedNodes:
        """The node of a row. An id or a text in JSON may be a whole number; an empty text is a value."""
        value, is_text = row.parts[0].id, self._kind is Kind.TEXT
        if isinstance(value, str) and not is_text:
            value = value.strip()
        if value is None or (value == "" and not (self.attribute and is_text)):
            raise BadInput(f'The row has no {self.by} in "{self.column}".')
        value = str(value) if is_text and type(value) is int else value
        asked = str(self.attribute.parse(value)) if self.attribute else checked_id(value)
        return [(asked, partial(self._row_of, row))]

    def _row_of(self, row: Row, record: Record) -> Row | Rejection:
        """The row of a stored node; a field that an object lacks leaves the node as it is."""
        given, node_id, path, level = row.parts[0].attributes, bare_id(record), record.path, record.level
        if self.is_table:
            found = self._cells.row(row.number, ["-", level, *given.values()])
            if isinstance(found, Rejection):
                return found
            return found._replace(path=path, parts=[part._replace(id=node_id) for part in found.parts], is_exact=True)
        own = self._values.get(level)
        used = self._place.union(own.values) if own else self._place
        fields = {name: value for name, value in given.items() if name not in used}
        if own:
            fields |= {name: given[column] for name, column in own.columns.items() if column in given}
            names = {language: given[column] for language, column in own.names.items() if column in given}
            fields |= {NAMES: names} if names else {}
        return row_of(row.number, {**fields, "path": path, "level": level, "id": node_id}, is_exact=True)

    def own_columns(self) -> list[str]:
        return named_columns(self, {self.column})

    def check(self, look: Look, see: Callable[[Look], None]) -> None:
        """Raise BadInput for columns without a place."""
        check_places(self, look)
