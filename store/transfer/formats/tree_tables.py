"""Tables with a node in each row: with its path, as exports have them, or with its id and that of its parent."""

import hashlib
import re
from base64 import b32encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from store.errors import BadInput
from store.model.hierarchy import Hierarchy, Level
from store.model.names import NAMES
from store.model.paths import checked_segment, format_path
from store.model.records import checked_id
from store.text import quantity, shorten
from store.transfer.formats.files import REASON, csv_line
from store.transfer.formats.lines import row_of
from store.transfer.formats.matching import NUMERIC, fold
from store.transfer.formats.table_rows import (
    PLAIN,
    CellFormat,
    CellReader,
    LevelColumns,
    check_columns,
    text_of,
)
from store.transfer.rows import NOTHING, Rejection, Row

FIXED = ("path", "level", "name", "id")
AS_JSON = (NAMES, "undefined")
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
LAST = (NAMES, "rank", "undefined")


def is_path_table(header: Sequence[str]) -> bool:
    """Whether a table has a path and a level in each row."""
    return header.count("path") == header.count("level") == 1


def path_header(hierarchy: Hierarchy) -> list[str]:
    """The columns of an export: the attributes of all levels, each once."""
    attributes = dict.fromkeys(name for level in hierarchy.levels.values() for name in level.attributes)
    return [*FIXED, *attributes, *LAST]


def path_line(header: Sequence[str], fields: Mapping[str, object]) -> str:
    """The line of CSV of a node, given as in JSON lines. Names in languages and undefined attributes are JSON."""
    path = format_path(tuple(str(segment) for segment in _list(fields["path"])))
    cells = {name: _text(value) for name, value in {**fields, "path": path}.items() if value is not None}
    cells |= {name: orjson.dumps(fields[name]).decode() for name in AS_JSON if name in fields}
    return csv_line([cells.get(name, "") for name in header])


class PathRowReader(CellReader):
    """Turns cells into rows. An empty cell means no value, and nothing for an attribute that the level lacks.

    A cell that is a JSON string, such as `" a"` or `""`, is this text.
    """

    def __init__(self, hierarchy: Hierarchy, header: Sequence[str]) -> None:
        super().__init__(header)
        self._hierarchy = hierarchy

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, as those of JSON lines."""
        if len(cells) != len(self._header):
            return Rejection(number, f"The row has {quantity(len(cells), 'column')}, the header {len(self._header)}.")
        fields: dict[str, object] = {}
        texts = dict(zip(self._header, map(text_of, cells), strict=True))
        level = self._hierarchy.find(texts["level"].strip())
        for name, text in texts.items():
            if name.startswith(REASON):
                continue
            attribute = level.attribute(name) if level else None
            if name in AS_JSON or (attribute is not None and attribute.many and text.startswith("[")):
                try:
                    fields |= {name: orjson.loads(text)} if text else {}
                except orjson.JSONDecodeError as error:
                    return Rejection(number, f'Column "{name}": {shorten(text)} is not valid JSON: {error}.')
            elif text or attribute is not None:
                fields[name] = _unquoted(text) if text else None
        path = _unquoted(texts["path"].strip())
        return row_of(number, {**fields, "path": path, "level": texts["level"].strip()})


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def _text(value: object) -> str:
    """A value as a cell; as JSON where the cell would not be read as this value, but trimmed, split or as none."""
    match value:
        case float():
            return repr(value)
        case list() if not value or any(_is_ambiguous(one) for one in value):
            return orjson.dumps(value).decode()
        case str() if _needs_quotes(value):
            return orjson.dumps(value).decode()
        case _:
            return text_of(value)


def _is_ambiguous(one: object) -> bool:
    return not isinstance(one, str) or ";" in one or one.startswith("[") or _needs_quotes(one)


def _needs_quotes(text: str) -> bool:
    return not text or text != text.strip() or text.startswith('"') or bool(_CONTROLS.search(text))


def _unquoted(text: str) -> str:
    """The text of a cell that is a JSON string, such as `" a"`; any other text as it is."""
    if len(text) < 2 or not text.startswith('"') or not text.endswith('"'):
        return text
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return found if isinstance(found, str) else text


NAME_COLUMNS = (
    "name", "title", "label", "naam", "nom", "nombre", "nome", "bezeichnung", "nazwa", "navn", "namn", "nimi", "název",
    "название", "назва", "名称", "名前", "이름",
)  # fmt: skip
MAX_KEY_CHARACTERS = 200  # of a key that is made of a name; with a longer one the key is the id


@dataclass
class TreeColumns:
    """The columns of a table by parent ids: of the id, of the parent's id, of keys and of levels.

    Without a column of keys these are made of names, else of ids. Levels are written as they are called, or as in
    `level_values`; without that column all are of the `default_level`. `levels` have the columns that options name for
    a level, `attributes` those that are named like attributes, `name` is that of names.
    """

    id: str
    parent: str
    key: str | None = None
    level: str | None = None
    level_values: dict[str, str] = field(default_factory=dict)
    default_level: str | None = None
    levels: dict[str, LevelColumns] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    name: str | None = None

    @property
    def used(self) -> set[str]:
        """All columns that have a place."""
        own = {self.id, self.parent, self.key, self.level, self.name, *self.attributes.values()}
        for level in self.levels.values():
            own |= {level.name, *level.attributes.values(), *level.names.values()}
        return {column for column in own if column}

    def check(self, hierarchy: Hierarchy, header: Sequence[str]) -> None:
        """Raise BadInput unless each column is in the header exactly once. A level instead of one is that of all."""
        if self.level is not None and self.level not in header and (found := hierarchy.find(self.level)):
            self.level, self.default_level = None, found.name
        own = LevelColumns("", self.id, self.key, self.parent, {"level": self.level or "", **self.attributes})
        check_columns(header, [own, LevelColumns("", "", self.name), *self.levels.values()])


def match_tree(hierarchy: Hierarchy, header: Sequence[str], columns: TreeColumns) -> None:
    """Add the columns that are named like attributes, and one of names, to those that are given."""
    free = [column for column in header if column and column not in columns.used and header.count(column) == 1]
    levels = [hierarchy.levels[columns.default_level]] if columns.default_level else hierarchy.levels.values()
    defined = {fold(name): name for level in levels for name in level.attributes}
    for column in free:
        if (name := defined.get(fold(column))) is not None:
            columns.attributes.setdefault(name, column)
    given = all(level.name for level in columns.levels.values())
    if not given:
        wanted = (*NAME_COLUMNS, *(f"{fold(level)}name" for level in hierarchy.levels))
        left = {fold(column): column for column in reversed(free) if column not in columns.attributes.values()}
        columns.name = next((left[name] for name in wanted if name in left), None)


class ParentRowReader(CellReader):
    """Turns cells into rows, each of one node, whose path is its id until its place in the tree is known."""

    def __init__(
        self, hierarchy: Hierarchy, columns: TreeColumns, header: Sequence[str], cell_format: CellFormat = PLAIN
    ) -> None:
        super().__init__(header, cell_format)
        self._hierarchy = hierarchy
        self._own = columns
        self._levels = {fold(text): name for text, name in columns.level_values.items()}
        self._in_parents = [column for column in header if column.startswith(f"{columns.parent}.")]  # of an object
        self._by_level: dict[str, tuple[LevelColumns, dict[str, str], dict[str, str]]] = {}

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells: texts, or numbers, truth values, dates and times where the format has types."""
        if (problem := self._problem(number, cells)) is not None:
            return problem
        own = self._cell(cells, self._own.id)
        if own is None:
            return Rejection(number, f'Column "{self._own.id}" has no id.')
        level = self._level(self._cell(cells, self._own.level))
        if isinstance(level, str):
            return Rejection(number, level)
        columns, others, names = self._columns(level)
        part = self._part(cells, columns, self._cell(cells, columns.name), names)
        attributes = dict(part.attributes)
        for name, column in others.items():  # the import says that the level does not have them
            if (text := self._cell(cells, column)) is not None:
                attributes[name] = text
        named = self._cell(cells, self._own.key) or self._cell(cells, columns.name)
        key = next((key for key in (named, own) if _is_key(key)), None) or hashed_id(own)
        part = part._replace(id=own if is_node_id(own) else hashed_id(own), attributes=attributes or NOTHING)
        parent = self._cell(cells, self._own.parent) or ""
        if not parent and (inner := next((one for one in self._in_parents if self._cell(cells, one)), None)):
            return Rejection(number, f'Column "{self._own.parent}" is empty, but "{inner}" has a value.')
        return Row(number, [own], [part], parent=parent, key=key)

    def _level(self, text: str | None) -> Level | str:
        """The level of a row, or why it has none."""
        hierarchy = self._hierarchy
        name = self._own.default_level if text is None else self._levels.get(fold(text), text)
        if name is None:
            return f'Column "{self._own.level}" has no level.'
        alike = (one for one in hierarchy.levels.values() if fold(one.name) == fold(name))
        found = hierarchy.find(name) or next(alike, None)
        if found is not None:
            return found
        levels = ", ".join(one.label for one in hierarchy.levels.values())
        return (
            f'Column "{self._own.level}" has "{shorten(name)}", which is none of the levels {levels}; '
            f"--level LEVEL={shorten(name)} says which of them it is."
        )

    def _columns(self, level: Level) -> tuple[LevelColumns, dict[str, str], dict[str, str]]:
        """The columns of a level, those of attributes that it does not have, and all by attribute, for messages."""
        if level.name not in self._by_level:
            given = self._own.levels.get(level.name) or LevelColumns(level.name, "")
            named = {name: column for name, column in self._own.attributes.items() if name in level.attributes}
            columns = LevelColumns(
                level.name, "", given.name or self._own.name, None, {**named, **given.attributes}, given.names,
                numeric=frozenset(name for name, one in level.attributes.items() if one.kind in NUMERIC),
            )  # fmt: skip
            others = {name: column for name, column in self._own.attributes.items() if name not in level.attributes}
            for other in self._own.levels.values():
                taken = {*columns.attributes.values(), *others.values()}
                others |= {name: column for name, column in other.attributes.items() if column not in taken}
            self._by_level[level.name] = columns, others, {**columns.columns, "id": self._own.id}
        return self._by_level[level.name]


def is_node_id(text: str) -> bool:
    """Whether an id of a file can be that of a node."""
    try:
        checked_id(text)
    except BadInput:
        return False
    return True


def hashed_id(text: str) -> str:
    """The id of a node whose id in the file cannot be one, such as a web address: always the same for the same."""
    return b32encode(hashlib.blake2b(text.encode(), digest_size=10).digest()).decode().lower()


def other_keys(key: str, own: str) -> tuple[str, str]:
    """Keys for a node whose sibling has its key already."""
    return f"{key} ({own})" if is_node_id(own) else f"{key} ({hashed_id(own)})", f"{key} ({hashed_id(own)})"


def natural_order(text: str) -> tuple[int, str]:
    """An order of ids in which 9 is before 10."""
    return len(text) if text.isdecimal() else 1 << 30, text


def _is_key(text: str | None) -> bool:
    """Whether a name or an id can be a key."""
    try:
        return text is not None and len(text) <= MAX_KEY_CHARACTERS and bool(checked_segment(text))
    except BadInput:
        return False
