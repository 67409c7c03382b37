"""Columns of a table for the levels of a hierarchy: as the options of an import give them, or matched by their names
with levels and attributes, and the parts of nodes in their cells.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from store.errors import BadInput, quantity
from store.model.attributes import NUMBERS, Attribute, Kind
from store.model.hierarchy import Hierarchy, Level
from store.model.names import NAMES, canonical_language
from store.transfer.formats.cells import PLAIN, CellFormat, fold, named, text_of, typed_text
from store.transfer.formats.table import Table
from store.transfer.rows import NOTHING, Part
from store.transfer.shapes.cell_paths import CellPaths

OPTIONS = ("--level", "--name", "--id", "--attr", "--fold-case", "--name-in")  # in the order of `ColumnOptions`
_PATHS = re.compile(
    r"""(.*\S)\s+split\s+("[^"]*"|'[^']*')(?:\s+each\s+("[^"]*"|'[^']*'))?(\s+reversed)?""", re.DOTALL
)  # of a column of paths
_TARGETS = {"--attr": ("attribute", 'store.street="Column"'), "--name-in": ("language", 'city.de="Column"')}


class NoLevels(BadInput):
    """No column of a level; with the table that lacks it."""

    table: Table | None = None


@dataclass
class LevelColumns:
    """The names of the columns of one level: for its key, and optionally for name, id and attributes, and for names in
    other languages by language tag.

    With `paths` the key's column has whole paths of nodes of this level, whose first ones are of the levels `above`,
    and the values are those of the last ones. With `fold`, siblings that differ in case only are one node, written as
    the first of them. `formatted` are the attributes that are numbers, dates or lists. Nothing of it changes once rows
    are read.
    """

    level: str
    key: str
    name: str | None = None
    id: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    fold: bool = False
    formatted: Mapping[str, Attribute] = field(default_factory=dict)
    paths: CellPaths | None = None
    above: Sequence[str] = ()

    @cached_property
    def constant_part(self) -> Part | None:
        """The part that all rows have for a level with a column for its key alone, else None."""
        return None if self.values else Part(self.level)

    def without(self, taken: Collection[str]) -> "LevelColumns":
        """These columns without the ones that a level below takes; the key keeps its own."""
        own = {name: column for name, column in self.columns.items() if column not in taken}
        names = {language: column for language, column in self.names.items() if column not in taken}
        return replace(self, name=own.pop("name", None), id=own.pop("id", None), attributes=own, names=names)

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


def is_number(attribute: Attribute | None) -> bool:
    """Whether the values of an attribute are numbers."""
    return attribute is not None and attribute.kind in NUMBERS


def formatted(level: Level) -> Mapping[str, Attribute]:
    """The attributes of a level that are numbers, dates or lists, which a format of cells concerns."""
    kinds = {*NUMBERS, Kind.DATE, Kind.DATETIME}
    return {name: one for name, one in level.attributes.items() if one.many or one.kind in kinds}


class LevelCells:
    """The cells of rows by the names of their columns: texts, numbers, and the parts of nodes of `levels`.

    Columns of keys, names and ids, and the others that are `naming`, have texts or whole numbers alone. Raises BadInput
    for columns that the header has not once.
    """

    def __init__(
        self, header: Sequence[str], levels: Sequence[LevelColumns], cell_format: CellFormat = PLAIN,
        naming: Collection[str] = (),
    ) -> None:  # fmt: skip
        check_columns(header, levels)
        cell_format.check(header)
        self.index = {column: index for index, column in enumerate(header)}
        self._header, self._format = [*header], cell_format
        self._nulls = [cell_format.nulls_in(column) for column in header]
        self._naming = {column for one in levels for column in (one.key, one.name, one.id, *one.names.values())}
        self._naming |= {*naming}

    def is_header(self, cells: Sequence[object]) -> bool:
        """Whether a row is the header again."""
        return cells[0] == self._header[0] and list(cells) == self._header

    def text(self, cells: Sequence[object], column: str, *, is_number: bool = False) -> str:
        """The text of a cell, empty where it means no value. Raises BadInput for a typed one that is no name."""
        index = self.index[column]
        cell, is_name = cells[index], column in self._naming
        text = cell.strip() if isinstance(cell, str) else typed_text(cell, column, is_name=is_name, is_number=is_number)
        return "" if text in self._nulls[index] else text

    def value(self, cells: Sequence[object], column: str | None) -> str | None:
        """The text of a cell, None for no value or no column."""
        return (self.text(cells, column) or None) if column else None

    def shows(self, cells: Sequence[object], column: str) -> str:
        """The text of a cell of any type, empty where it means no value."""
        text = text_of(cells[self.index[column]]).strip()
        return "" if text in self._nulls[self.index[column]] else text

    def part(self, cells: Sequence[object], level: LevelColumns, name: str | None) -> Part:
        """The part of a node with this name."""
        attributes: dict[str, object] = {}
        for attribute, column in level.attributes.items():
            kind = level.formatted.get(attribute)
            attributes[attribute] = self._formatted(cells, column, kind) if kind else self.value(cells, column)
        if level.names:
            attributes[NAMES] = {language: self.value(cells, column) for language, column in level.names.items()}
        node_id = self.value(cells, level.id)
        return Part(level.level, name, node_id, attributes or NOTHING, columns=level.columns)

    def _formatted(self, cells: Sequence[object], column: str, attribute: Attribute) -> object:
        text = self.text(cells, column, is_number=is_number(attribute)) or None
        if text and isinstance(cells[self.index[column]], str):
            return self._format.value(text, attribute, column)
        return text


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


def columns(hierarchy: Hierarchy, options: ColumnOptions, in_keys: Iterable[str] = ()) -> list[LevelColumns]:
    """The columns that the options describe, from the root down. Raises BadInput for the first wrong option.

    Levels that are `in_keys` have no column of their own. What is given once for a level with several columns belongs
    to the deepest one that a row has.
    """
    found = _level_columns(hierarchy, options.levels, in_keys)
    given: dict[tuple[str, str, str], list[str]] = {}
    for option, value in options.pairs():
        if option == "--level":
            continue
        name, column = (value, "") if option == "--fold-case" else _split(option, value)
        what = "fold" if option == "--fold-case" else option.removeprefix("--")
        if option in _TARGETS:
            lacks, example = _TARGETS[option]
            name, dot, what = name.partition(".")
            if not dot:
                raise BadInput(f"{option} {value} has no {lacks}; use {option} {example}.")
        if option == "--name-in":
            what = canonical_language(what)
        level = hierarchy.level(name)
        if option == "--attr" and what not in level.attributes:
            raise BadInput(f'{level.name} has no attribute "{what}"; it has {", ".join(level.attributes) or "none"}.')
        if not any(one.level == level.name for one in found):
            raise BadInput(f"{option} {name} needs a column for this level; add --level {name}=Column.")
        given.setdefault((option, level.name, what), []).append(column)
    for (option, level_name, what), names in given.items():
        own = [one for one in found if one.level == level_name]
        if len(names) not in (1, len(own)) and option != "--fold-case":
            raise BadInput(
                f"{option} is given {len(names)} times for {what} of {level_name}, which has "
                f"{quantity(len(own), 'column')}: give one, or one for each of them in their order."
            )
        for one, column in zip(own, names if len(names) == len(own) else names[:1] * len(own), strict=True):
            if option == "--name-in":
                one.names[what] = column
            elif option == "--attr":
                one.attributes[what] = column
            else:
                setattr(one, what, column or True)
    return found


def _level_columns(hierarchy: Hierarchy, options: Iterable[str], in_keys: Iterable[str]) -> list[LevelColumns]:
    """The columns of `--level`; each level must be allowed below an earlier one, as in the rows."""
    found = [LevelColumns(name, "") for name in dict.fromkeys(in_keys)]
    for option in options:
        given, column, paths = level_column(option)
        *leading, level = [hierarchy.level(one.strip()) for one in given.split(",")]
        if leading and not paths:
            raise BadInput(f'--level {given} names several levels, as of paths; add split " > " after the column.')
        before = [level for one in found for level in (*one.above, one.level)]
        for upper, lower in pairwise([*leading, level] if leading else [level, level] if paths else []):
            if upper.name not in lower.under:
                raise BadInput(f"--level {given} has paths, but a {lower.name} may not stand under a {upper.name}.")
        first = [*leading, level][0]
        above = {*before[before.index(first.name) :]} if first.name in before else {None, *before}
        if not first.under & above:
            places = ", ".join(sorted(one or "the root" for one in first.under))
            raise BadInput(f"--level {given} is in the wrong position: {first.name} is allowed under {places}.")
        if any(one.key == column and one.level == level.name for one in found):
            raise BadInput(f'--level {given} has the column "{column}" twice; name each of its columns once.')
        names = [one.name for one in leading]
        found.append(LevelColumns(level.name, column, formatted=formatted(level), paths=paths, above=names))
    if not found:
        roots = [level.name for level in hierarchy.levels.values() if level.may_be_root]
        raise NoLevels(
            f"No column is named like a level of {hierarchy.name} that may be a root ({', '.join(roots)}); name the "
            f"columns of its levels from the root down, such as --level {roots[0].lower()}=COLUMN."
        )
    return found


def level_column(option: str) -> tuple[str, str, CellPaths | None]:
    """The level, the column, and how this one has paths, of `level=column` or `level=column split " > " each "|"`; the
    levels of paths may be several, with commas.
    """
    name, column = _split("--level", option)
    if not (match := _PATHS.fullmatch(column)):
        return name, column, None
    column, split, each, is_reversed = match.groups()
    return name, column, CellPaths(split[1:-1], each and each[1:-1], bool(is_reversed))


def _split(option: str, value: str) -> tuple[str, str]:
    left, equals, column = value.partition("=")
    if not (left.strip() and equals and column.strip()):
        raise BadInput(f'{option} {value} has no column; use {option} {left or "city"}="Column".')
    return left.strip(), column.strip()


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
