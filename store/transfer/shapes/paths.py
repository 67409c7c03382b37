"""Paths: a path and a level in each row, as exports have them, also for levels that nest in themselves."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from store.errors import BadInput, BadPath, shell_words, shorten, shown
from store.model.attributes import Attribute
from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.model.names import NAMES
from store.model.paths import format_path, parse_path
from store.transfer.formats.cells import PLAIN, CellFormat, json_text, text_of, typed_text
from store.transfer.formats.source import JSON_REASON, Guess, csv_line
from store.transfer.formats.table import INDENT, Table, TableRow
from store.transfer.rows import Part, Rejection, Row, TextRows
from store.transfer.shapes.columns import LevelColumns, check_columns, is_number
from store.transfer.shapes.doubts import Look
from store.transfer.shapes.shape import RowOptions, Shape

FIXED = ("path", "level", "name", "id")  # the first fields of a line of an export
LAST = (NAMES, "rank", "undefined")
AS_JSON = (NAMES, "undefined")
_OWN = frozenset(("path", "level", "name", "id", "rank", "undefined"))
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


class JsonLines(Shape):
    """Lines of JSON, each with an object as `row_of` reads it."""

    is_table = False
    has_lists = True

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        self.refuse_columns()

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        is_lines = table.values is not None and table.document is None
        return is_lines and not options.tree and (has_paths(table) if not options.columns.levels else not table.objects)

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The rows, each with its line."""
        self.skip.start()
        for number, text, fields in self.table.values() if self.table.values else ():
            if isinstance(fields, Rejection):
                yield text, fields
            elif not self.skip.takes_object(fields):
                is_exported = tuple(fields)[: len(FIXED)] == FIXED and isinstance(fields["path"], list)
                used = {name: one for name, one in fields.items() if name not in self.unused} if self.unused else fields
                yield text, self.ordered(row_of(number, used, is_exact=is_exported), fields)
        self.check_fields()


class PathCells:
    """The cells of rows with a path and a level. An empty cell means no value, and nothing for an attribute that the
    level lacks.

    A cell that is a JSON string, such as `" a"` or `""`, is this text. The `columns` of levels, which have no keys, are
    of other names than their attributes; in a row of another level they are attributes of their own names.
    """

    def __init__(
        self, hierarchy: Hierarchy, header: Sequence[str], columns: Sequence[LevelColumns] = (),
        cell_format: CellFormat = PLAIN, unused: Collection[str] = (),
    ) -> None:  # fmt: skip
        check_table(header, columns)
        cell_format.check(header)
        self._format = cell_format
        self._nulls = {name: nulls for name in header if (nulls := cell_format.nulls_in(name))}
        self._hierarchy = hierarchy
        self._header = header
        self._columns = {own.level: own for own in columns}
        self._taken = {own.level: {*own.values, *unused} for own in columns}
        self._unused = {*unused}
        self.is_export = [name for name in header if not name.startswith(JSON_REASON)] == path_header(hierarchy)

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, as those of JSON lines."""
        fields: dict[str, object] = {}
        typed = dict(zip(self._header, cells, strict=True))
        path, level_name = (typed_text(typed[name], name, is_name=True).strip() for name in ("path", "level"))
        level = self._hierarchy.find(level_name)
        taken = self._taken.get(level.name, self._unused) if level else self._unused
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
                fields[name] = self._value(text, cell, attribute, name)
        if level and (own := self._columns.get(level.name)):
            for name, column in own.columns.items():
                cell, attribute = typed[column], level.attribute(name)
                fields[name] = self._value(self._text(cell, column, name, attribute), cell, attribute, column) or None
            if own.names:
                names = own.names.items()
                fields[NAMES] = {language: self._text(typed[one], one, "name", None) or None for language, one in names}
        fields |= {"path": unquoted(path), "level": level_name}
        return row_of(number, fields, is_exact=self.is_export)

    def _text(self, cell: object, column: str, name: str, attribute: Attribute | None) -> str:
        """The text of a cell, empty where it means no value."""
        if isinstance(cell, str):
            text = cell.lstrip(INDENT)
        else:
            text = typed_text(cell, column, is_name=name in FIXED, is_number=is_number(attribute))
        return "" if column in self._nulls and text.strip() in self._nulls[column] else text

    def _value(self, text: str, cell: object, attribute: Attribute | None, column: str) -> object:
        """The value of a text, None for no value."""
        if text and attribute and isinstance(cell, str):
            return self._format.value(unquoted(text), attribute, column)
        return unquoted(text) if text else None


class Paths(Shape):
    """Rows of a table with a path and a level in each."""

    path_column = "path"

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        self.levels, self.rejected = self.value_columns(), table.rejected(JSON_REASON)
        self._cells = PathCells(hierarchy, table.header, self.levels, options.cells, self.unused)
        self.is_export = [*table.header] == path_header(hierarchy)

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        return not (options.tree or table.is_text or options.columns.levels) and is_path_table(table.header)

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        return self._cells.row(number, cells)

    def own_columns(self) -> list[str]:
        return named_columns(self, {"id"})

    def check(self, look: Look, see: Callable[[Look], None]) -> None:
        """Raise for columns called path and level that mean something else, and for columns without a place."""
        levels = look.sample.column("level")
        if levels and not any(map(self.hierarchy.find, levels)):
            if Guess.SHAPE not in self.given.taken:
                see(look)
            name, first = self.hierarchy.name, shorten(levels[0])
            seen = f'Column "level" of {look.source} has no level of {name}, such as "{first}"'
            known = ", ".join(self.hierarchy.levels)
            raise BadInput(f"{seen}; the levels are {known}. Columns of other names are imported with --level.")
        check_places(self, look)


def named_columns(shape: Shape, ids: Iterable[str]) -> list[str]:
    """The columns of a table that are imported by their own names; of ids these."""
    levels = shape.hierarchy.levels.values()
    known = {*FIXED, *LAST, *(name for level in levels for name in level.attributes)} - {"id"} | {*ids}
    return [name for name in shape.table.header if name in known]


def check_places(shape: Shape, look: Look) -> None:
    """Raise BadInput for a column with values that has no place, unless those are ignored."""
    known = {*shape.places(), *shape.unused}
    for column in look.sample.header if not shape.given.ignore_unknown else ():
        if column not in known and not column.startswith(JSON_REASON) and any(look.sample.column(column)):
            level = next(iter(shape.hierarchy.levels)).lower()
            raise BadInput(
                f'Column "{shorten(column)}" of {look.source} is no attribute of a level of {shape.hierarchy.name}; '
                f"{shell_words(['--attr', f'{level}.ATTRIBUTE={column}'])} or "
                f"{shell_words(['--name-in', f'{level}.LANGUAGE={column}'])} gives it a place, --ignore-unknown leaves "
                "it out."
            )


def check_table(header: Sequence[str], columns: Iterable[LevelColumns]) -> None:
    """Raise BadInput where a column of the levels is not in the header, or any column is there twice."""
    repeated = [LevelColumns("", name) for name, count in Counter(header).items() if name and count > 1]
    check_columns(header, [*columns, *repeated])


def row_of(number: int, fields: Mapping[str, Any], *, is_exact: bool = False) -> Row | Rejection:
    """The row of `{"path": ["US", "NE"] or "US/NE", "level": "STATE", "name": …, "id": …}` and the level's attributes.

    A field left out leaves the node as it is, null removes an attribute. `names` has names in other languages, such as
    `{"de": "München"}`, where a language that is left out stays and null removes one. `rank` is the rank of a new node
    among its siblings, `undefined` has attributes that its level does not define. See `Row` for `is_exact`.
    """
    path = fields.get("path")
    if path is None:
        return Rejection(number, 'The line has no path; write "path": ["US", "NE"] or "path": "US/NE".')
    if not isinstance(path, (str, list, tuple)):
        return Rejection(number, f"A path is a list of texts or one text, not {shown(path)}.")
    try:
        if isinstance(path, str):
            path = parse_path(path)
        else:
            try:
                "".join(path)  # the fastest way to see that all keys are texts
            except TypeError:
                path = [*map(key_of, path)]
    except BadPath as error:
        return Rejection(number, str(error))
    attributes = {name: value for name, value in fields.items() if name not in _OWN}
    field = fields.get
    part = Part(str(field("level") or ""), field("name"), field("id"), attributes, field("rank"), field("undefined"))
    return Row(number, path, [part], (), None, False, is_exact)


def line_of(row: Row) -> str:
    """The line of JSON of a row with one part, which `row_of` reads."""
    part = row.parts[0]
    fields = {"path": row.path, "level": part.level, "name": part.name, "id": part.id}
    return json_text({**{name: value for name, value in fields.items() if value is not None}, **part.attributes})


def key_of(value: object) -> str:
    """The key that a value of JSON is: a text, or a whole number that is read exactly. Raises BadPath."""
    if type(value) not in (str, int):
        raise BadPath(f"A key is a text or a whole number of at most 64 bits, not {shown(value)}; write a text.")
    return str(value)


def has_paths(table: Table) -> bool:
    """Whether lines of JSON are nodes with paths, or no objects at all; the other ones are rows of a table."""
    return not table.objects or any("path" in one for one in table.objects)


def is_path_table(header: Sequence[str]) -> bool:
    """Whether a table has a path and a level in each row."""
    return header.count("path") == header.count("level") == 1


def path_header(hierarchy: Hierarchy) -> list[str]:
    """The columns of an export: the attributes of all levels, each once."""
    attributes = dict.fromkeys(name for level in hierarchy.levels.values() for name in level.attributes)
    return [*FIXED, *attributes, *LAST]


def path_line(header: Sequence[str], fields: Mapping[str, object]) -> str:
    """The line of CSV of a node, given as in JSON lines. Names in languages and undefined attributes are JSON."""
    path = format_path(cast(Path, fields["path"]))
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
