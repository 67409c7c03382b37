"""Levels in columns: a row has a column for each level, from the root down, so that it has a whole path; or paths in
cells of a column.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.model.paths import visible_key
from store.transfer.formats.cells import fold, named
from store.transfer.formats.source import REASON, Guess
from store.transfer.formats.table import Table
from store.transfer.rows import Part, Rejection, Row
from store.transfer.shapes.cell_paths import CellPaths, begin_with_leaf, paths_in_cells, see_paths, see_signs
from store.transfer.shapes.chains import Chains, has_pairs
from store.transfer.shapes.columns import LevelCells, LevelColumns, NoLevels, check_columns, columns, match_columns
from store.transfer.shapes.doubts import Look, nested_level, shape_doubt
from store.transfer.shapes.groups import check_groups
from store.transfer.shapes.shape import RowOptions, Shape
from store.transfer.shapes.twins import check_twins

MAX_REPEATED = 12  # codes of the column before, each of which is an option


class _Nodes(NamedTuple):
    """The nodes of a row so far: their keys, their contents and the columns of the keys."""

    path: list[str]
    parts: list[Part]
    columns: list[str]


class Levels(Shape):
    """Rows of cells, by columns that are given, or named like levels. The first of the siblings of a folded level says
    how these are written.

    Raises NoLevels where there is no column of a level.
    """

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        self.levels = self._found_levels(table.header)
        self.rejected = table.rejected(REASON)
        check_columns(table.header, self.levels)
        self._columns = {level.key: level.values for level in self.levels}
        used = [column for own in self._columns.values() for column in {*own}]
        self._shares_columns = len(used) > len({*used})
        self._layouts: dict[tuple[int, ...], list[LevelColumns]] = {}
        self._fill_down = options.cells.fill_down

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        return not options.tree

    def _found_levels(self, header: Sequence[str]) -> list[LevelColumns]:
        """The columns of levels that are given, or follow from the names of the columns."""
        given = self.given.columns
        self.options = given if given.levels else given.merged(match_columns(self.hierarchy, header))
        try:
            levels = columns(self.hierarchy, self.options)
        except NoLevels as error:
            unmatched = NoLevels(f"{error} The file has {named(header)}.")
            unmatched.table = self.table
            raise unmatched from None
        used = {column for own in levels for column in (own.key, *own.values)} | {self.order_column} | self.skip.columns
        others = [column for column in header if column and column not in used]
        self.guesses = [f"columns not imported: {named(others)}."] if others else []
        if not given.levels:
            words = " ".join(f"{option} {value}" for option, value in self.options.pairs())
            self.guesses = [f"columns {words}, by their names; --level sets them.", *self.guesses]
        return levels

    def start(self) -> None:
        header = self.table.header  # a description shows the columns before a wrong one of these options
        self._cells = LevelCells(header, self.levels, self.given.cells)
        if unused := {*self._fill_down} - {column for own in self.levels for column in (own.key, *own.values)}:
            raise BadInput(f'Column "{min(unused)}" of --fill-down is not imported; name it with --level or --attr.')
        self._text = self._cells.text
        self._first: dict[tuple[tuple[str, ...], str], tuple[str, str | None]] = {}
        self._above: Sequence[object] = ()

    def filled(self, cells: Sequence[object]) -> Sequence[object]:
        """The cells of a row, with the empty ones of `--fill-down` as in the row above.

        A cell to the right of one that has another value than above stays empty, since a new group begins there.
        """
        if not self._fill_down:
            return cells
        found = list(cells)
        is_same = bool(self._above)
        for level in self.levels:
            for column in (level.key, *level.values):
                index = self._cells.index[column]
                if is_same and column in self._fill_down and not self._text(found, column):
                    found[index] = self._above[index]
                if column == level.key:
                    is_same = is_same and found[index] == self._above[index]
        self._above = found
        return found

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        if self._cells.is_header(cells):
            return Rejection(number, "The row is the header again; remove it.")
        path, parts, keys, absent = list[str](), list[Part](), list[str](), False
        others = list[Row]()
        text = self._text
        levels = self._layout(cells) if self._shares_columns else self.levels
        for index, level in enumerate(levels, start=1):
            if not (key := text(cells, level.key)):
                absent = absent or level.constant_part is None
            elif level.paths is None and not level.fold:  # as most are
                path.append(key)
                keys.append(level.key)
                name = self._cells.value(cells, level.name) if level.name else None
                parts.append(level.constant_part or self._cells.part(cells, level, name))
            elif level.paths is None:
                self._add(_Nodes(path, parts, keys), cells, level, (key,))
            else:
                first, *more = self._paths(cells, level.key, level.paths, levels[index:])
                for other in more:
                    branch = _Nodes([*path], [*parts], [*keys])
                    self._add(branch, cells, level, other)
                    others.append(Row(number, *branch))
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
                several = f'Column "{column}" has {len(found)} paths, and the node of "{deeper}" can stand below one'
                raise BadInput(f"{several} of them; write a row for each place that it is to have.")
        return found

    def _add(self, row: _Nodes, cells: Sequence[object], level: LevelColumns, path: Sequence[str]) -> None:
        """Add nodes of a level below one another to a row; the values are those of the last one."""
        *above, key = path
        name, levels = self._cells.value(cells, level.name), [*level.above, *[level.level] * len(path)]
        nests = level.level in self.hierarchy.levels[level.level].under
        if level.above and len(path) > len(level.above) + 1 and not nests:
            known = ", ".join([*level.above, level.level])
            raise BadInput(
                f'Column "{level.key}": "{shorten("/".join(path))}" has {len(path)} keys, and its levels are {known}.'
            )
        for one, place in zip(above, levels, strict=False):
            row.path.append(self._folded(tuple(row.path), one, None)[0] if level.fold else one)
            row.parts.append(Part(place))
        if level.fold:
            key, name = self._folded(tuple(row.path), key, name)
        row.path.append(key)
        row.columns.extend([level.key] * len(path))
        if len(path) > len(level.above):
            row.parts.append(level.constant_part or self._cells.part(cells, level, name))
        elif used := next((column for column in level.values if self._cells.shows(cells, column)), None):
            raise BadInput(f'Column "{used}" has a value, but the path in "{level.key}" has no {level.level}.')
        else:
            row.parts.append(Part(levels[len(above)]))

    def _layout(self, cells: Sequence[object]) -> list[LevelColumns]:
        """The columns of the levels, where one column is given for several: it is that of the deepest in the row."""
        present = tuple([number for number, level in enumerate(self.levels) if self._text(cells, level.key)])
        if present not in self._layouts:
            layout, taken = [*self.levels], set[str]()
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
                if column not in used and (text := self._cells.shows(cells, column)):
                    return f'Column "{column}" has {shorten(repr(text))}, but "{key}" is empty; fill in or clear both.'
        return None

    def _folded(self, above: tuple[str, ...], key: str, name: str | None) -> tuple[str, str | None]:
        first_key, first_name = self._first.setdefault((above, _caseless(key)), (key, name))
        if name and first_name and _caseless(name) == _caseless(first_name):
            name = first_name
        return first_key, name

    def check(self, look: Look, see: Callable[[Look], None]) -> None:
        """Raise Doubt for a table without a header, in another shape, or with groups of rows."""
        if Guess.SHAPE not in self.given.taken:
            if not any(level.paths for level in self.levels):
                see(look)
            self._check_paths(look)
            check_groups(self, look)
            check_twins(self, look)

    def _check_paths(self, look: Look) -> None:
        """Raise Doubt for paths that begin with the leaf, or have several signs."""
        given = self.given.columns.levels
        for place, level in enumerate(self.levels):
            if not (paths := level.paths):
                continue
            column, cells = f'Column "{shorten(level.key)}" of {look.source}', look.sample.column(level.key)
            see_signs(column, cells, paths.split, paths.each or "")
            if not paths.is_reversed and begin_with_leaf(cells, paths):
                options = [*given[:place], f"{given[place]} reversed", *given[place + 1 :]]
                words = [word for one in options for word in ("--level", one)]
                raise shape_doubt(f"{column} has paths that begin with the leaf: their ends repeat", words)

    @classmethod
    def see_table(cls, look: Look) -> None:
        if has_pairs(look.sample):
            seen = f"Each row of {look.source} has a code and its name, one column further right for each depth"
            raise shape_doubt(seen, other="write the codes in one column and the names in another")
        if len(look.keys) < 2:
            cls.see_chain(look, is_series=True)  # before codes, which may be numbers of rows

    @classmethod
    def see_column(cls, look: Look, place: str, column: str, values: Sequence[str]) -> None:
        level = nested_level(look.hierarchy)
        if not look.keys and level and (path := paths_in_cells({*values} - {""})):
            see_paths(look.hierarchy, place, path, level.name, column, values)

    @classmethod
    def see_chain(cls, look: Look, *, is_series: bool = False) -> None:
        """Raise Doubt for columns of words that are all of one level that nests in itself, or only where at least three
        are numbered.
        """
        level, keys = nested_level(look.hierarchy), look.keys
        if level is None:
            return
        attributes = {fold(name) for one in look.hierarchy.levels.values() for name in one.attributes}
        chains = Chains(look.sample, attributes, fold(level.name))
        chain, are_stairs = chains.found
        numbered = [look.sample.header[at] for at, series in chains.series.items() if "#" in series]
        if is_series and len({*numbered}.intersection(chain)) < 3:
            return
        own = [column for column in chain if fold(level.name) in fold(column)]  # such as Subcategory
        places = [look.sample.header.index(column) for column in chain]
        is_below = places == sorted(places) and {*keys[:1]} <= {*chain[1:]}
        is_key = len(keys) == 1 and chains.title and len({*look.sample.column(keys[0])}) < len(look.sample.texts)
        if len(chain) > 1 and (not keys or len(own) > 1 or is_below or chains.title in keys or is_key):
            options = [word for column in chain for word in ("--level", f"{level.name.lower()}={column}")]
            options += [word for column in chain[:-1] if are_stairs for word in ("--fill-down", column)]
            options += ["--name", f"{level.name.lower()}={chains.title}"] if chains.title else []
            seen = f"{look.source} has columns that are below one another: {', '.join(map(shorten, chain))}"
            again: list[tuple[str, str]] = []
            if chains.title and chains.repeats:
                rows = ([row[at].strip() for at in places] for row in look.rows() if len(row) > max(places))
                cells = (cell for row in rows for cell in zip(chain[1:], row[1:], row, strict=False))
                again = [*dict.fromkeys((column, code) for column, code, above in cells if code and code == above)]
            for column, code in again[:1]:
                seen += f'; rows have "{shorten(code)}" of the column before again in "{shorten(column)}"'
            options += [word for column, code in again for word in ("--null", f"{column}={code}")]
            raise shape_doubt(
                seen, options if len(again) <= MAX_REPEATED else (), other="clear such cells" if again else ""
            )


def _caseless(text: str) -> str:
    return visible_key(unicodedata.normalize("NFC", text)).casefold()
