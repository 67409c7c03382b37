"""Columns of a table: cells, by a column for each level from the root down, become a path with its nodes.

The columns are given as options of an import, or matched by their names with levels and attributes of a hierarchy.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import NamedTuple

import orjson

from store.errors import BadInput, quantity, shorten
from store.model.attributes import Kind
from store.model.hierarchy import Hierarchy, Level
from store.model.names import NAMES
from store.model.paths import visible_key
from store.transfer.formats.cell_paths import CellPaths
from store.transfer.formats.source import NumberFormat
from store.transfer.rows import NOTHING, Part, Rejection, Row

NUMERIC = frozenset({Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DECIMAL})
OPTIONS = ("--level", "--name", "--id", "--attr", "--fold-case", "--name-in")  # in the order of `ColumnOptions`
MAX_COLUMNS = 20_000  # of a table; Excel has 16,384
MAX_NAMED_COLUMNS = 40  # in a message


@dataclass
class LevelColumns:
    """The names of the columns of one level: for its key, and optionally for name, id and attributes, and for names in
    other languages by language tag.

    With `paths` the key's column has whole paths of nodes of this level, and the values are those of the last ones.
    With `fold`, siblings that differ in case only are one node, written as the first of them. `numeric` are the
    attributes that are numbers. Nothing of it changes once rows are read.
    """

    level: str
    key: str
    name: str | None = None
    id: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    fold: bool = False
    numeric: frozenset[str] = frozenset()
    paths: CellPaths | None = None

    @cached_property
    def constant_part(self) -> Part | None:
        """The part that all rows have for a level with a column for its key alone, else None."""
        return None if self.values else Part(self.level)

    def without(self, taken: Collection[str]) -> "LevelColumns":
        """These columns without the ones that a level below takes; the key keeps its own."""
        return replace(
            self,
            name=None if self.name in taken else self.name,
            id=None if self.id in taken else self.id,
            attributes={name: column for name, column in self.attributes.items() if column not in taken},
            names={language: column for language, column in self.names.items() if column not in taken},
        )

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns by attribute, with those of the name and the id."""
        found = {"name": self.name, "id": self.id, **self.attributes}
        return {name: column for name, column in found.items() if column}

    @property
    def values(self) -> list[str]:
        """The columns of values, without the key's."""
        return [*self.columns.values(), *self.names.values()]

    def places(self) -> Iterator[tuple[str, str]]:
        """Each column with what it becomes, for a person."""
        level = self.level.lower()
        yield self.key, f"{'paths' if self.paths else 'key'} of {level}"
        for attribute, column in self.columns.items():
            yield column, f"{attribute} of {level}"
        for language, column in self.names.items():
            yield column, f"name of {level} in {language}"


@dataclass(frozen=True)
class CellFormat:
    """How cells are written: texts that mean no value, in all columns or in one, the format of numbers, and columns
    whose empty cells have the value above, as merged cells have.
    """

    nulls: frozenset[str] = frozenset()
    nulls_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: NumberFormat | None = None
    fill_down: frozenset[str] = frozenset()

    def nulls_in(self, column: str) -> frozenset[str]:
        """The texts that mean no value in a column."""
        return self.nulls | self.nulls_of.get(column, frozenset())

    def number(self, text: str) -> object:
        """The number in a text, or what no attribute takes where it is written in another way."""
        if self.numbers is None:
            return text
        try:
            return self.numbers.plain(text)
        except BadInput:
            return _NotLike(text, self.numbers.example)

    def check(self, header: Sequence[str]) -> None:
        """Raise BadInput for a column of an option that is not in the header."""
        for option, used_by in (("--null", self.nulls_of), ("--fill-down", self.fill_down)):
            if unknown := {*used_by} - {*header}:
                raise BadInput(f'The file has no column "{min(unknown)}" for {option}; it has {named(header)}.')


PLAIN = CellFormat()


@dataclass
class ColumnOptions:
    """The columns of a table as in the command line, such as `city=City` and `store.street=Street`."""

    levels: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    case_insensitive: list[str] = field(default_factory=list)
    names_in: list[str] = field(default_factory=list)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each option with its value."""
        for option, values in zip(OPTIONS, vars(self).values(), strict=True):
            for value in values:
                yield option, value

    def merged(self, other: "ColumnOptions") -> "ColumnOptions":
        """These options, and what only the other ones have."""
        found: list[list[str]] = []
        for first, second in zip(vars(self).values(), vars(other).values(), strict=True):
            targets = {option.partition("=")[0].lower() for option in first}
            found.append([*first, *(option for option in second if option.partition("=")[0].lower() not in targets)])
        return ColumnOptions(*found)


@dataclass(frozen=True)
class TreeBy:
    """How a file says its tree where levels have no columns of their own; exactly one of the first five is given.

    `id` is the column of ids, with `parent` that of the parent's id; `prefix` the one of codes that begin with that of
    their parent; `indent` the one of names that are indented, empty where the lines of a text are; `depth` that of
    depths; `children` are the names of lists of children in JSON. `key`, `level`, `name` and `id` are the columns, in
    JSON the names, of these.
    """

    id: str | None = None
    parent: str | None = None
    prefix: str | None = None
    indent: str | None = None
    depth: str | None = None
    children: Sequence[str] = ()
    key: str | None = None
    level: str | None = None
    name: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of a table that say the tree, the keys and the levels."""
        parts = (self.id, self.parent, self.prefix, self.indent, self.depth, self.key, self.level)
        return [column for column in parts if column]

    @property
    def shape(self) -> str:
        """The part that says the shape: parent, prefix, indent, depth or children."""
        shapes = ("parent", "prefix", "indent", "depth", "children")
        return next(shape for shape in shapes if getattr(self, shape) not in (None, ()))


def match_columns(hierarchy: Hierarchy, header: Sequence[str]) -> ColumnOptions:
    """The columns that are named like a level, such as `Country` or `city_name`, and like their attributes.

    Columns that name no level are of the deepest level that has such an attribute.
    """
    # Dotted names stand for what is after the last dot, too. A column that is there twice is matched, and then refused.
    free = {column: {fold(column), fold(column.rpartition(".")[2])} - {""} for column in header}

    def take(*names: str) -> str | None:
        """The column of the first of these names that exactly one has; it is not taken again."""
        for name in names:
            found = [column for column in free if name in free[column]]
            if len(found) == 1:
                del free[found[0]]
                return found[0]
        return None

    def add(options: list[str], target: str, name: str) -> None:
        """Add the column of this name to options as that of a target, unless the target has one."""
        if not any(option.startswith(f"{target}=") for option in options) and (column := take(name)):
            options.append(f"{target}={column}")

    options = ColumnOptions()
    levels: list[Level] = []
    for level in hierarchy.levels.values():
        own = fold(level.name)
        above = {None, *(one.name for one in levels)}
        if level.under & above and (key := take(own, f"{own}key", f"{own}name")):
            levels.append(level)
            options.levels.append(f"{level.name.lower()}={key}")
    for level in levels:
        own, lower = fold(level.name), level.name.lower()
        add(options.names, lower, f"{own}name")
        add(options.ids, lower, f"{own}id")
        for attribute in level.attributes:
            add(options.attributes, f"{lower}.{attribute}", f"{own}{fold(attribute)}")
    for level in reversed(levels):
        for attribute in level.attributes:
            add(options.attributes, f"{level.name.lower()}.{attribute}", fold(attribute))
    for level in levels[-1:]:
        add(options.names, level.name.lower(), "name")
        add(options.ids, level.name.lower(), "id")
    return options


@dataclass(frozen=True, repr=False)
class _NotLike:
    """A number that is not in the format of numbers, which no attribute takes."""

    text: str
    example: str

    def __repr__(self) -> str:
        return f'"{self.text}", which is not written like {self.example},'


class _Nodes(NamedTuple):
    """The nodes of a row so far: their keys, their contents and the columns of the keys."""

    path: list[str]
    parts: list[Part]
    columns: list[str]


class ShownCell(NamedTuple):
    """A cell of a sheet: its value, and the text that the sheet shows, or the reason why that is not known."""

    value: object
    text: str | None
    reason: str = ""


class RowReader:
    """Turns cells into rows; remembers how the first of the siblings of a folded level was written."""

    def __init__(self, levels: Sequence[LevelColumns], header: Sequence[str], cell_format: CellFormat = PLAIN) -> None:
        self._index = {column: index for index, column in enumerate(header)}
        self._header = list(header)
        self._nulls = [cell_format.nulls_in(column) for column in header]
        self._format = cell_format
        self._levels = levels
        self._naming = {column for one in levels for column in (one.key, one.name, one.id, *one.names.values())}
        self._columns = {level.key: level.values for level in levels}
        used = [column for own in self._columns.values() for column in {*own}]
        self._shares_columns = len(used) > len({*used})
        self._layouts: dict[tuple[int, ...], list[LevelColumns]] = {}
        self._first: dict[tuple[tuple[str, ...], str], tuple[str, str | None]] = {}
        self._fill_down = cell_format.fill_down
        self._above: list[object] = []
        check_columns(header, levels)
        cell_format.check(header)
        if unused := {*self._fill_down} - {column for own in levels for column in (own.key, *own.values)}:
            raise BadInput(f'Column "{min(unused)}" of --fill-down is not imported; name it with --level or --attr.')

    def filled(self, cells: Sequence[object]) -> Sequence[object]:
        """The cells of a row, with the empty ones of `--fill-down` as in the row above.

        A cell to the right of one that has another value than above stays empty, since a new group begins there.
        """
        if not self._fill_down:
            return cells
        found = list(cells)
        is_same = bool(self._above)
        for level in self._levels:
            for column in (level.key, *level.values):
                index = self._index[column]
                if is_same and column in self._fill_down and not self._text(found, column):
                    found[index] = self._above[index]
                if column == level.key:
                    is_same = is_same and found[index] == self._above[index]
        self._above = found
        return found

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells: texts, or numbers, truth values, dates and times where the format has types.

        Raises BadInput, with the column, for a typed cell that is no text where one is needed.
        """
        if cells[0] == self._header[0] and list(cells) == self._header:
            return Rejection(number, "The row is the header again; remove it.")
        path, parts, keys, absent = list[str](), list[Part](), list[str](), False
        others: Sequence[Row] = ()
        levels = self._layout(cells) if self._shares_columns else self._levels
        for index, level in enumerate(levels, start=1):
            if not (key := self._text(cells, level.key)):
                absent = absent or level.constant_part is None
            elif level.paths is None and not level.fold:  # as most are
                path.append(key)
                keys.append(level.key)
                name = self._cell(cells, level.name) if level.name else None
                parts.append(level.constant_part or self._part(cells, level, name))
            elif level.paths is None:
                self._add(_Nodes(path, parts, keys), cells, level, (key,))
            else:
                first, *more = self._paths(cells, level.key, level.paths, levels[index:])
                branches = [_Nodes([*path], [*parts], [*keys]) for _ in more]
                for branch, other in zip(branches, more, strict=True):
                    self._add(branch, cells, level, other)
                others = [*others, *(Row(number, *branch) for branch in branches)]
                self._add(_Nodes(path, parts, keys), cells, level, first)
        if not path:
            return Rejection(number, "The row has no key in any column of a level.")
        if absent and (reason := self._homeless(cells, keys)):
            return Rejection(number, reason)
        return Row(number, path, parts, keys, None, False, False, others)

    def _paths(
        self, cells: Sequence[object], column: str, paths: CellPaths, below: Sequence[LevelColumns]
    ) -> list[tuple[str, ...]]:
        """The paths in the cell of a column; the only one that leads to no other where a key of a level below follows.

        Raises BadInput where several do, since the node below has one place.
        """
        cell = self._text(cells, column)
        try:
            found = paths.read(cell)
        except BadInput as error:
            raise BadInput(f'Column "{column}": {error}') from None
        deeper = next((one.key for one in below if self._text(cells, one.key)), None) if len(found) > 1 else None
        if deeper is not None:
            found.sort()
            found = [one for one, after in zip(found, [*found[1:], ()], strict=True) if after[: len(one)] != one]
            if len(found) > 1:
                raise BadInput(
                    f'Column "{column}" has {len(found)} paths, and the node of "{deeper}" can stand below one of '
                    "them; write a row for each place that it is to have."
                )
        return found

    def _add(self, row: "_Nodes", cells: Sequence[object], level: LevelColumns, path: Sequence[str]) -> None:
        """Add nodes of a level below one another to a row; the values are those of the last one."""
        *above, key = path
        name = self._cell(cells, level.name) if level.name else None
        for one in above:
            row.path.append(self._folded(tuple(row.path), one, None)[0] if level.fold else one)
            row.parts.append(Part(level.level))
        if level.fold:
            key, name = self._folded(tuple(row.path), key, name)
        row.path.append(key)
        row.parts.append(level.constant_part or self._part(cells, level, name))
        row.columns.extend([level.key] * len(path))

    def _layout(self, cells: Sequence[object]) -> list[LevelColumns]:
        """The columns of the levels, where one column is given for several: it is that of the deepest in the row."""
        present = tuple([number for number, level in enumerate(self._levels) if self._text(cells, level.key)])
        if present not in self._layouts:
            layout, taken = [*self._levels], set[str]()
            for number in reversed(present):
                layout[number] = layout[number].without(taken)
                taken.update(layout[number].values)
            self._layouts[present] = layout
        return self._layouts[present]

    def _homeless(self, cells: Sequence[object], keys: Sequence[str]) -> str | None:
        """The reason against a row that has a value for a level without a key; `keys` are the columns of its keys."""
        used = {*keys, *(column for key in keys for column in self._columns[key])}
        for key, own in self._columns.items():
            for column in own if key not in keys else ():
                text = text_of(cells[self._index[column]]).strip()
                if column not in used and text and text not in self._nulls[self._index[column]]:
                    return f'Column "{column}" has {shorten(repr(text))}, but "{key}" is empty; fill in or clear both.'
        return None

    def _part(self, cells: Sequence[object], level: LevelColumns, name: str | None) -> Part:
        attributes: dict[str, object] = {}
        for attribute, column in level.attributes.items():
            is_number = attribute in level.numeric
            attributes[attribute] = self._number(cells, column) if is_number else self._cell(cells, column)
        if level.names:
            attributes[NAMES] = {language: self._cell(cells, column) for language, column in level.names.items()}
        node_id = level.id and self._cell(cells, level.id)
        return Part(level.level, name, node_id, attributes or NOTHING, columns=level.columns)

    def _text(self, cells: Sequence[object], column: str) -> str:
        index = self._index[column]
        cell = cells[index]
        text = cell.strip() if isinstance(cell, str) else typed_text(cell, column, is_name=column in self._naming)
        return "" if text in self._nulls[index] else text

    def _cell(self, cells: Sequence[object], column: str) -> str | None:
        return self._text(cells, column) or None

    def _number(self, cells: Sequence[object], column: str) -> object:
        index = self._index[column]
        cell = cells[index]
        text = cell.strip() if isinstance(cell, str) else typed_text(cell, column, is_number=True)
        if not text or text in self._nulls[index]:
            return None
        return self._format.number(text) if isinstance(cell, str) else text

    def _folded(self, above: tuple[str, ...], key: str, name: str | None) -> tuple[str, str | None]:
        first_key, first_name = self._first.setdefault((above, _caseless(key)), (key, name))
        if name and first_name and _caseless(name) == _caseless(first_name):
            name = first_name
        return first_key, name


def fitted(cells: Sequence[object], width: int) -> Sequence[object]:
    """The cells of a row as many as the header has: filled with empty ones, or without empty ones at the end.

    Raises BadInput where there are more.
    """
    if any(text_of(cell).strip() for cell in cells[width:]):
        raise BadInput(f"The row has {quantity(len(cells), 'column')}, the header {width}.")
    return [*cells[:width], *[""] * (width - len(cells))]


def text_of(cell: object) -> str:
    """A typed cell as a text file would have it: 7 for 7.0, true, 2026-11-22, nothing for None, objects as JSON."""
    match cell:
        case None:
            return ""
        case str():
            return cell
        case ShownCell(value, text):
            return text_of(value) if text is None else text
        case bool():
            return str(cell).lower()
        case float() if cell.is_integer() and abs(cell) < 1e15:
            return str(int(cell))
        case datetime() if cell.time() == time() and cell.tzinfo is None:
            return cell.date().isoformat()
        case date() | time():  # a datetime is a date
            return cell.isoformat()
        case list() | tuple() if not any(isinstance(one, dict | list) for one in cell):
            return ";".join(text_of(one) for one in cell)
        case dict() | list() | tuple():
            return json_text(cell)
        case _:
            return str(cell)


def typed_text(cell: object, column: str, *, is_name: bool = False, is_number: bool = False) -> str:
    """The text of a typed cell for a key, a name or an id (`is_name`), an attribute that is a number, or another one.

    Raises BadInput for a number whose text the sheet alone knows, and for a name of a type with several texts: 1.10
    and 1.1 are one number, 2 January and 2026-01-02 one date.
    """
    if isinstance(cell, ShownCell):
        if is_number or (cell.value is None and not is_name):
            return text_of(cell.value)
        if cell.text is None:
            raise BadInput(f'Column "{column}": {cell.reason}')
        return cell.text
    text = text_of(cell)
    is_exact = not isinstance(cell, float) or text.lstrip("-").isdecimal()
    if is_name and (isinstance(cell, bool | date | time | timedelta | dict | list | tuple) or not is_exact):
        raise BadInput(f'Column "{column}": {shorten(text)} is neither a text nor a whole number; write it as a text.')
    return text


def json_text(value: object) -> str:
    """A value as JSON; raises BadInput for one that is nested too deeply."""
    try:
        return orjson.dumps(value, default=str).decode()
    except orjson.JSONEncodeError as error:
        raise BadInput(f"A value cannot be written as JSON ({error}); nest it less deeply.") from error


def check_columns(header: Sequence[str], levels: Iterable[LevelColumns]) -> None:
    """Raise BadInput unless each column of the levels is in the header exactly once."""
    for level in levels:
        for column in (level.key, *level.values):
            if column and header.count(column) != 1:
                places = [str(number) for number, name in enumerate(header, start=1) if name == column]
                found = f'{len(places)} columns "{column}" ({", ".join(places)})' if places else f'no column "{column}"'
                if not places and re.search(" (split|each) ", column):
                    found += ' (paths need quotes: COLUMN split " > " each "|")'
                raise BadInput(f"The file has {found}; it has {named(header)}.")


def named(header: Sequence[str]) -> str:
    """The names of the columns, for a message."""
    names = [f'"{shorten(name)}"' for name in header[:MAX_NAMED_COLUMNS]]
    more = len(header) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def fold(name: str) -> str:
    """A name without case, spaces and punctuation, so that `Square Feet` is `square_feet`."""
    return "".join(character for character in name.casefold() if character.isalnum())


def _caseless(text: str) -> str:
    return visible_key(unicodedata.normalize("NFC", text)).casefold()
