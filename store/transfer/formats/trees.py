"""Tables with a node in each row, which names its parent or is below it by its code."""

from collections.abc import Sequence
from dataclasses import replace

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import (
    NUMERIC,
    CellFormat,
    LevelColumns,
    RowReader,
    TreeBy,
    check_columns,
    fold,
)
from store.transfer.parent_ids import link_of, node_id_of
from store.transfer.rows import NOTHING, Part, Rejection, Row


def tree_columns(
    hierarchy: Hierarchy, header: Sequence[str], tree: TreeBy, given: Sequence[LevelColumns]
) -> list[LevelColumns]:
    """The columns of all levels: those that are given, and those that are named like names, attributes and, of codes,
    ids.
    """
    used = {*tree.columns, tree.name, *(column for own in given for column in own.values)}
    free = [(fold(column), column) for column in header if column and column not in used]

    def named(*names: str) -> str | None:
        for name in names:
            found = [column for folded, column in free if folded == name]
            if len(found) == 1:
                return found[0]
        return None

    columns: list[LevelColumns] = []
    for own in given:
        level, word = hierarchy.levels[own.level], fold(own.level)
        attributes = {name: column for name in level.attributes if (column := named(word + fold(name), fold(name)))}
        numeric = frozenset(name for name, attribute in level.attributes.items() if attribute.kind in NUMERIC)
        node_id = own.id or (None if tree.id else named(f"{word}id", "id"))
        name = own.name or tree.name or named(f"{word}name", "name")
        columns.append(
            replace(own, name=name, id=node_id, attributes={**attributes, **own.attributes}, numeric=numeric)
        )
    return columns


class TreeReader(RowReader):
    """Turns cells into rows with links, and later their cells into parts, once the levels are known.

    Raises BadInput for columns that the file does not have.
    """

    def __init__(
        self, hierarchy: Hierarchy, tree: TreeBy, levels: Sequence[LevelColumns], header: Sequence[str],
        cell_format: CellFormat,
    ) -> None:  # fmt: skip
        super().__init__(levels, header, cell_format)
        check_columns(header, [LevelColumns("", column) for column in tree.columns])
        self._naming |= {*tree.columns}
        self._hierarchy, self._tree, self.levels = hierarchy, tree, levels
        self._in_parents = [column for column in header if column.startswith(f"{tree.parent}.")]  # of an object
        self._by_name = {own.level: own for own in levels}
        self._names = {
            fold(name): level.name for level in hierarchy.levels.values() for name in (level.name, level.label)
        }
        self._name_columns = [*dict.fromkeys(own.name for own in levels if own.name)]
        self._values = {column: name for own in levels for name, column in own.columns.items()}
        self._values |= {column: column for own in levels for column in own.names.values()}
        self.used = {*tree.columns, *self._values}
        self._used = frozenset(self._index[column] for column in self._values)

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, whose link has those that are imported. Raises BadInput."""
        if cells[0] == self._header[0] and list(cells) == self._header:
            return Rejection(number, "The row is the header again; remove it.")
        tree, level = self._tree, self.level_of(cells)
        column = tree.id or tree.prefix or ""
        own = self._text(cells, column)
        if not own:
            return Rejection(number, f'Column "{column}" is empty, and others cannot name the node.')
        names = [self._text(cells, name) for name in self.names_of(level)]
        key = self._text(cells, tree.key) if tree.key else own if tree.prefix else ""
        ids = [self._by_name[level].id] if level else [one.id for one in self._levels]
        given = next((text for one in ids if one and (text := self._text(cells, one))), None)
        node_id = given if any(ids) or tree.prefix else node_id_of(own)
        parent = self._text(cells, tree.parent) if tree.parent else ""
        if not parent and (inner := next((one for one in self._in_parents if self._text(cells, one)), None)):
            return Rejection(number, f'Column "{tree.parent}" is empty, but "{inner}" has a value.')
        kept = [cell if index in self._used else None for index, cell in enumerate(cells)]
        link = link_of(own, parent, [key] if key else names, bool(key), level, node_id, kept)
        return Row(number, (), (), link=link)

    def level_of(self, cells: Sequence[object]) -> str | None:
        """The level that the row says, if it does; raises BadInput for another text."""
        column = self._tree.level
        if not column or not (text := self._text(cells, column)):
            return None
        if (level := self._names.get(fold(text))) is None:
            levels = ", ".join(dict.fromkeys(self._names.values()))
            raise BadInput(f'Column "{column}": {shorten(text)} is none of the levels {levels}.')
        return level

    def names_of(self, level: str | None) -> list[str]:
        """The columns of names of a level, of all where it is not known."""
        return [name for name in [self._by_name[level].name] if name] if level else self._name_columns

    def part(self, cells: Sequence[object], level: str, node_id: str | None) -> Part:
        """The part of a row; values in columns of other levels are attributes that this one does not have."""
        own = self._by_name[level]
        part = self._part(cells, own, self._cell(cells, own.name) if own.name else None)
        others = {
            name: text
            for column, name in self._values.items()
            if column not in own.values and (text := self._text(cells, column))
        }
        columns = {**own.columns, "id": own.id or self._tree.id or ""}
        return part._replace(
            id=node_id or part.id, attributes={**others, **part.attributes} or NOTHING, columns=columns
        )
