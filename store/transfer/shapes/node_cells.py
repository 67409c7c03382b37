"""Tables with a node in each row: the columns of all levels, the level and the names of a row, and its part."""

from collections.abc import Sequence
from dataclasses import replace

from store.errors import BadInput, shell_words, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.cells import fold, named, text_of
from store.transfer.formats.source import csv_line
from store.transfer.formats.table import Table
from store.transfer.rows import IN_FILE, NOTHING, Part
from store.transfer.shapes.columns import LevelCells, LevelColumns, check_columns, columns, formatted
from store.transfer.shapes.shape import RowOptions, TreeBy


class NodeCells(LevelCells):
    """The cells of rows that are nodes of a tree. Raises BadInput for columns that the file does not have."""

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions, tree: TreeBy) -> None:
        by_level = columns(hierarchy, replace(options.columns, case_insensitive=[]), hierarchy.levels)
        self.levels = _columns(hierarchy, table.header, tree, by_level)
        super().__init__(table.header, self.levels, options.cells, tree.columns)
        check_columns(table.header, [LevelColumns("", column) for column in tree.columns])
        self._tree, self._level_column, self._id_column = tree, tree.parts.get("level"), tree.parts.get("id", "")
        self._by_name = {own.level: own for own in self.levels}
        self._labels = {
            fold(name): level.name for level in hierarchy.levels.values() for name in (level.name, level.label)
        }
        self._known = ", ".join(dict.fromkeys(self._labels.values()))
        self._levels: dict[str, str] = {}
        for value, _, name in (map(str.strip, pair.rpartition("=")) for pair in tree.levels):
            given = f'--tree-by level={self._level_column} takes "{shorten(value)}" for'
            if (level := self._labels.get(fold(name))) is None:
                skip = f"{shell_words(['--skip', f'{self._level_column}={value}'])} leaves such rows out"
                raise BadInput(f'{given} "{shorten(name)}", which is none of the levels {self._known}; {skip}.')
            if self._levels.setdefault(value.casefold(), level) != level:
                raise BadInput(f"{given} two levels; name one of them.")
        self._name_columns = [*dict.fromkeys(own.name for own in self.levels if own.name)]
        values = {column: name for own in self.levels for name, column in own.columns.items()}
        self._values = values | {column: column for own in self.levels for column in own.names.values()}
        self._order = None if options.order in (None, IN_FILE) else self.index[options.order]
        self._kept = frozenset([*(self.index[column] for column in self._values), self._order])
        others = [
            column for column in table.header if column and column not in {*tree.columns, *self._values, options.order}
        ]
        self.guesses = [f"columns not imported: {named(others)}."] if others else []

    def kept(self, cells: Sequence[object]) -> list[object]:
        """The cells of a row that have values of nodes, the others empty."""
        return [cell if index in self._kept else None for index, cell in enumerate(cells)]

    def level_of(self, cells: Sequence[object]) -> str | None:
        """The level that the row says, if it does; raises BadInput for another text."""
        column = self._level_column
        text = self.text(cells, column) if column else ""
        level = self._levels.get(text.casefold()) or self._labels.get(fold(text))
        if level is None and text:
            parts = [f"{what}={name}" for what, name in self._tree.parts.items() if what != "level"]
            parts += [f"level={column}:{shorten(text)}=LEVEL", *self._tree.levels]
            way = f"{shell_words(['--tree-by', csv_line(parts)])} takes it for one"
            raise BadInput(f'Column "{column}": {shorten(text)} is none of the levels {self._known}; {way}.')
        return level

    def names_of(self, cells: Sequence[object], level: str | None) -> list[str]:
        """The texts in the columns of names of a level, of all where it is not known."""
        names = [name for name in [self._by_name[level].name] if name] if level else self._name_columns
        return [self.text(cells, name) for name in names]

    def id_columns(self, level: str | None) -> list[str | None]:
        """The columns of ids of a level, of all where it is not known; None for each that has none."""
        return [self._by_name[level].id] if level else [own.id for own in self.levels]

    def node(self, cells: Sequence[object], level: str, node_id: str | None) -> Part:
        """The part of a row; values in columns of other levels are attributes that this one does not have."""
        own = self._by_name[level]
        part = self.part(cells, own, self.value(cells, own.name))
        others = {
            name: text
            for column, name in self._values.items()
            if column not in own.values and (text := self.text(cells, column))
        }
        columns = {**own.columns, "id": own.id or self._id_column}
        return part._replace(
            id=node_id or part.id, attributes={**others, **part.attributes} or NOTHING, columns=columns,
            rank=None if self._order is None else text_of(cells[self._order]).strip() or None,
        )  # fmt: skip


def _columns(
    hierarchy: Hierarchy, header: Sequence[str], tree: TreeBy, given: Sequence[LevelColumns]
) -> list[LevelColumns]:
    """The columns of all levels: those that are given, and those that are named like names, attributes and, of codes,
    ids.
    """
    title = tree.parts.get("name")
    used = {*tree.columns, title, *(column for own in given for column in own.values)}
    free = [(fold(column), column) for column in header if column and column not in used]

    def called(*names: str) -> str | None:
        ways = ([column for folded, column in free if folded == name] for name in names)
        return next((found[0] for found in ways if len(found) == 1), None)

    found: list[LevelColumns] = []
    for own in given:
        level, word = hierarchy.levels[own.level], fold(own.level)
        attributes = {name: column for name in level.attributes if (column := called(word + fold(name), fold(name)))}
        node_id = own.id or (None if "id" in tree.parts else called(f"{word}id", "id"))
        name = own.name or title or called(f"{word}name", "name")
        attributes |= own.attributes
        found.append(replace(own, name=name, id=node_id, attributes=attributes, formatted=formatted(level)))
    return found
