"""Shapes: how the rows of a table say a tree. Each is a file of its own, and an entry of the list in `choice.py`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, cast

from store.errors import BadInput, shorten
from store.model.attributes import Attribute
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.transfer.formats.cells import PLAIN, CellFormat, text_of
from store.transfer.formats.skip import Skip, inner
from store.transfer.formats.source import REJECTED_JSON, Guess, RejectedRows
from store.transfer.formats.table import SAMPLE_CHARACTERS, SAMPLE_ROWS, Table, TableRow, fitted
from store.transfer.rows import IN_FILE, NodesOf, Rejection, Row, TextRows
from store.transfer.shapes.columns import ColumnOptions, LevelColumns, columns
from store.transfer.shapes.doubts import Look
from store.transfer.shapes.parent_tree import ParentTree

_OF_NODES = frozenset(("path", "key", "level", "name", "id", NAMES, "rank", "undefined"))  # fields of any node


class TreeParts(NamedTuple):
    """The parts of `--tree-by` that a shape needs, and those that it takes besides."""

    needed: Sequence[str]
    others: Sequence[str] = ()


@dataclass(frozen=True)
class TreeBy:
    """How a file says its tree where levels have no columns of their own: the name of the shape, and its parts, such as
    the columns of ids and of parents, by their names in `--tree-by`. `levels` are values of the column of levels, each
    with its level, such as `VAR=variant`; before a header is known, the first one is in the part of this column.
    """

    shape: str
    parts: Mapping[str, str]
    levels: Sequence[str] = ()

    def on(self, header: Sequence[str]) -> "TreeBy":
        """These parts for a table with this header, which tells what of `level=a:b=c` is the column."""
        text = self.parts.get("level", "")
        column = max((one for one in header if text == one or text.startswith(f"{one}:")), key=len, default=text)
        if column == text:
            return self
        levels = (text[len(column) + 1 :], *self.levels)
        return replace(self, parts={**self.parts, "level": column}, levels=levels)

    @property
    def columns(self) -> list[str]:
        """The columns of a table that say the tree, the keys and the levels."""
        return [column for part, column in self.parts.items() if column and part not in ("name", "split")]


@dataclass(frozen=True)
class RowOptions:
    """What a command says about the rows of a file, and the guesses that are `taken` without a doubt.

    `by_id` is the column of ids by which rows name stored nodes, or of values of the unique attribute `by_value`. Rows
    of `skip` are left out. `order` is the column by which siblings are in order, or `IN_FILE`.
    """

    columns: ColumnOptions = field(default_factory=ColumnOptions)
    cells: CellFormat = PLAIN
    tree: TreeBy | None = None
    by_id: str | None = None
    taken: Collection[Guess] = ()
    ignore_unknown: bool = False
    by_value: Attribute | None = None
    skip: Skip = field(default_factory=Skip)
    order: str | None = None


class Shape:
    """The rows of a table, read as one shape: a path and the content of a node in each.

    `trees` are the parts of `--tree-by` by the part that names the shape; one that `needs_order` is told by the order
    of rows, which items of a table do not have. `levels` are the columns of levels, `options` those with what follows
    from the names of the columns, which `guesses` say. With a `tree` rows name their parents and get their paths from
    it; with `by_id` they name stored nodes. Rejected rows are written as `rejected`. A shape that `is_table` reads
    cells of columns, another one lines of text or objects. Paths that are lists of keys are meant so where it
    `has_lists`; other ones are in the `path_column`, if they are in one. A file that `is_export` is not checked. A
    shape that `skips_below` leaves skipped rows out itself, with what is below them. Columns that are only for `--skip`
    and `--order` are `unused`. A constructor raises BadInput for options that the shape does not take, and for columns
    that are not there.
    """

    trees: ClassVar[Mapping[str, TreeParts]] = {}
    needs_order: ClassVar[bool] = False
    levels: Sequence[LevelColumns] = ()
    guesses: Sequence[str] = ()
    tree: ParentTree | None = None
    by_id: NodesOf | None = None
    rejected: RejectedRows = REJECTED_JSON
    is_table = True
    has_lists = False
    path_column = ""
    is_export = False
    skips_below = False

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        self.hierarchy, self.table, self.given = hierarchy, table, options
        self.options, self.skip = options.columns, options.skip
        self.order_column = None if options.order == IN_FILE else options.order
        given = self.skip.columns | ({self.order_column} if self.order_column else set())
        self._has_order = False
        self.unused = given.difference(_OF_NODES, *(level.attributes for level in hierarchy.levels.values()))

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        """Whether a table with these options has this shape; of several shapes the first counts."""
        return options.tree is not None and options.tree.shape in cls.trees

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The rows of the table, or these of them, each with its text. Empty rows, as spreadsheets write them, are left
        out.

        Raises BadInput and Doubt for what is wrong with the table as a whole.
        """
        table, width, skip = self.table, len(self.table.header), self.skip
        at = table.header.index(self.order_column) if self.order_column else -1
        skip.start()
        self.start()
        skips = bool(skip.values) and not self.skips_below
        for number, cells, reason, text, place in table.rows() if rows is None else rows:
            if reason is None and not any(cells) and all(cell in (None, "") for cell in cells):
                continue
            try:
                if reason is not None:
                    raise BadInput(reason)
                fitting = cells if len(cells) == width else fitted(cells, width)
                cells = self.filled(fitting)
                text = text if cells is fitting else None
                if skips and skip.takes(cells):
                    continue
                row = self.row(number, cells)
                row = row if at < 0 else ordered(row, cells[at])
            except BadInput as error:
                row = Rejection(number, str(error), own=self.own_of(cells))
            if place and isinstance(row, Rejection):
                row = row._replace(reason=place + row.reason)
            yield table.line(map(text_of, cells)) if text is None else text, row

    def ordered(self, row: Row | Rejection, fields: Mapping[str, object]) -> Row | Rejection:
        """The row of an object of JSON, whose node comes among its siblings by a field, if one is given."""
        if self.order_column:
            found = inner(fields, self.order_column)
            self._has_order = self._has_order or found is not None
            row = ordered(row, found)
        return row

    def check_fields(self) -> None:
        """Raise BadInput for a field of `--skip` or `--order` that no object had, once all are read."""
        missing = [(column, "--skip") for column in sorted(self.skip.missing)]
        missing += [(self.order_column, "--order")] if self.order_column and not self._has_order else []
        for column, option in missing:
            raise BadInput(f'No row of {self.table.name} has "{shorten(column)}" of {option}.')

    def start(self) -> None:
        """Forget former rows, before rows are read."""

    def own_of(self, cells: Sequence[object]) -> str:
        """By what others name the node of a row that is rejected, if they do."""
        return ""

    def filled(self, cells: Sequence[object]) -> Sequence[object]:
        """The cells of a row, with those that stand above it."""
        return cells

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells: texts, or numbers, truth values, dates and times where the format has types.

        Raises BadInput, with the column, for a typed cell that is no text where one is needed.
        """
        raise NotImplementedError

    def rows(self) -> Iterator[Row | Rejection]:
        """The rows with their paths, in the order of the file or that of its tree."""
        return self.tree.rows() if self.tree else (row for _, row in self.read())

    @cached_property
    def first(self) -> list[Row | Rejection]:
        """The first rows in the order of the file, for checks."""
        found: list[Row | Rejection] = []
        size = 0
        has_sample = self.is_table or self.table.is_text
        for text, row in self.read(self.table.sample.rows if has_sample else None):
            found.append(row)
            size += len(text)
            if len(found) == SAMPLE_ROWS or size > SAMPLE_CHARACTERS:
                break
        return found

    def forget_first(self) -> None:
        """Free the first rows, once the checks are done."""
        for holder, name in ((self, "first"), (self.table, "sample"), (self.table, "objects")):
            vars(holder).pop(name, None)

    def own_columns(self) -> Sequence[str]:
        """The columns that are imported by their own names."""
        return ()

    def places(self) -> dict[str, str]:
        """The columns that are imported, with what they become, for a person."""
        found = {name: name for name in self.own_columns()}
        for level in self.levels:
            for column, place in level.places():
                found[column] = f"{found[column]}, {place}" if column in found else place
        return found

    def check(self, look: Look, see: Callable[[Look], None]) -> None:
        """Raise Doubt for a table that would become another tree, and BadInput for columns without a place.

        `see` raises Doubt where another shape sees its own table.
        """

    def value_columns(self) -> list[LevelColumns]:
        """The columns that options give to levels of a table of paths, besides those that are named like attributes."""
        if self.given.cells.fill_down or self.given.columns.case_insensitive:
            raise BadInput("--fill-down and --fold-case need columns of levels, not of paths or ids.")
        found = columns(self.hierarchy, self.given.columns, self.hierarchy.levels)
        return [level for level in found if level.values]

    def refuse_columns(self) -> None:
        """Raise BadInput for options that only tables have."""
        if any(self.given.columns.pairs()) or self.given.cells != PLAIN:
            raise BadInput("Options of columns and cells need a table: CSV, Excel, Parquet, GeoJSON or JSON objects.")

    @classmethod
    def see_table(cls, look: Look) -> None:
        """Raise Doubt for a table that has this shape, and is taken for another one."""

    @classmethod
    def see_column(cls, look: Look, place: str, column: str, values: Sequence[str]) -> None:
        """The same for one column, by its values; `place` names it."""

    @classmethod
    def see_keys(cls, source: str, roots: Sequence[str], codes: Collection[str], *, are_flat: bool) -> None:
        """The same for the first keys of rows and the codes of these; rows that `are_flat` have no key below."""


def ordered(row: Row | Rejection, value: object) -> Row | Rejection:
    """The row, whose nodes come among their siblings by a value."""
    if isinstance(row, Rejection):
        return row
    text = text_of(value).strip() or None
    parts = [*row.parts[:-1], *(part._replace(rank=text) for part in row.parts[-1:])]
    return row._replace(parts=parts, others=[cast(Row, ordered(one, value)) for one in row.others])
