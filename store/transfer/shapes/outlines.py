"""Outlines: nodes in their order, whose depths are shown by blanks or marks before them, or are numbers in a column."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.model.keys import MAX_SEGMENTS
from store.transfer.formats.cells import fold, text_of
from store.transfer.formats.table import Table, TableRow
from store.transfer.rows import Rejection, Row, TextRows
from store.transfer.shapes.doubts import Look, shape_doubt
from store.transfer.shapes.node_cells import NodeCells
from store.transfer.shapes.parent_tree import level_below
from store.transfer.shapes.paths import line_of
from store.transfer.shapes.shape import RowOptions, Shape, TreeBy, TreeParts

_HEADING = re.compile(r"(#+)\s+(.*)", re.DOTALL)
_BRANCH = re.compile(r"([\s│┃|]*(?:[├└┣┗╰`+|\\](?:[─━]+|--+)\s*|[│┃|]\s+))(.*)", re.DOTALL)  # of the program tree
_TRUNK = re.compile(r"[\s│┃|]+")
_MARK = re.compile(r"(\s*)(-+|\*+|\++|•+|·+|–+|—+|>+|\.+)\s+(.*)", re.DOTALL)
_UNCLEAR = re.compile(r"\s*([-*+•·–—>][^\W\d]|--|\*\*|\.\.|#+[^\W\d]|[-*+•·–—>#]+$)")
_SUMMARY = re.compile(r"[\d,]+ director(?:y|ies)(?:, [\d,]+ files?)?")  # below what the program tree has drawn
MAX_DIGITS = 4  # of a depth
_TEXT = re.compile(r"(\s*)(.*)", re.DOTALL)
_MARKS = re.compile(r"\s+\S|[-+*.>–—•·│├└─┬| \xa0]+\s*[^\W\d]")  # of the depth of a line in an outline
_DEPTH = re.compile("1?[0-9]")
DEPTHS = frozenset(("level", "lvl", "ebene", "niveau", "nivel", "livello", "stufe", "indent"))


@dataclass
class Indents:
    """The depths of texts by what stands before them: blanks or tabs, marks such as `-`, repeated or after blanks,
    headings such as `##`, or the branches of a drawn tree. It is the same for all of a depth; headings are above all
    that follows them.
    """

    _widths: list[int] = field(default_factory=list)  # of what is before the texts of each depth
    _kinds: set[str] = field(default_factory=set)
    _blanks: set[bool] = field(default_factory=set)  # whether they are tabs
    _first_heading: int = 0
    _heading: int = 0

    def read(self, line: str, before: int) -> tuple[int, str]:
        """The depth of a text, and what it says; `before` is the depth of the one before it, -1 of the first.

        Raises BadInput where the depth is not clear.
        """
        if match := _HEADING.match(line):
            self._kinds.add("heading")
            self._first_heading = self._first_heading or len(match[1])
            depth = len(match[1]) - self._first_heading
            if not 0 <= depth <= self._heading:
                raise BadInput("the heading before it is more than one depth above, or the first heading below it")
            self._heading = depth + 1
            return depth, match[2]
        width, said = self._width(line)
        if width not in self._widths:
            if self._widths and (width < self._widths[-1] or before != self._heading + len(self._widths) - 1):
                raise BadInput("it is indented as no row above it of the same depth is, or by more than one depth")
            self._widths.append(width)
        return self._heading + self._widths.index(width), said

    def _width(self, line: str) -> tuple[int, str]:
        if match := _BRANCH.match(line):
            self._kinds.add("branch")
            return len(match[1]), match[2]
        if match := _MARK.match(line):
            self._kinds.add("mark")
            indent, width, said = match[1], len(match[1]) + len(match[2]), match[3]
        else:
            if _UNCLEAR.match(line):
                raise BadInput("it begins with a mark and no blank after it, or has no text")
            indent, said = _TEXT.match(line).groups()  # type: ignore[union-attr]
            width = len(indent)
            if self._kinds & {"branch", "heading"} or (width and "mark" in self._kinds):
                raise BadInput("it has no mark, and rows above it have one")
        self._blanks |= {one == "\t" for one in indent}
        if len(self._blanks) > 1:
            raise BadInput("tabs and blanks are mixed before the texts; write one of them in all rows")
        return width, said


class Outline(Shape):
    """Rows in the order of an outline, by the depths of their nodes: numbers, or what is before the texts.

    In a text the lines are the texts. A row without a clear place stops the import, since what is below it has none.
    """

    trees: ClassVar = {
        "indent": TreeParts(("indent",), ("key", "level")),
        "depth": TreeParts(("depth",), ("key", "level", "name")),
    }
    needs_order = True
    has_lists = skips_below = True

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        tree = options.tree or TreeBy("indent", {"indent": ""})
        self.is_table = not table.is_text
        if table.is_text:
            self.refuse_columns()
        self._cells = NodeCells(hierarchy, table, options, tree)
        self.levels, self.guesses = self._cells.levels, self._cells.guesses
        self._indent, self._depth, self._key = map(tree.parts.get, ("indent", "depth", "key"))

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The rows, each with its line of JSON."""
        is_whole = rows is None or self.table.sample.is_whole
        given = self.table.rows() if rows is None else rows
        for _, row in super().read(_without_branches(given) if self.table.is_text else given):
            if isinstance(row, Rejection):
                raise BadInput(f"Row {row.number} has no place in the outline: {row.reason.rstrip('.')}.")
            if row.path:
                yield line_of(row), row
        if is_whole and self._count > 1 and not self._deepest:
            raise BadInput("No row is below another one: nothing shows their depths.")

    def start(self) -> None:
        self._indents, self._base, self._deepest, self._count = Indents(), -1, 0, 0
        self._path, self._levels_above = list[str](), list[str]()
        self._skipped = MAX_SEGMENTS  # the depth of a skipped row, while rows are below it

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, without a path where all are empty; raises BadInput where its place is not clear."""
        if not any(text_of(cell).strip() for cell in cells):
            return Row(number, (), ())
        is_skipped = self.skip.takes(cells)
        level = None if is_skipped else self._cells.level_of(cells)
        if self._indent is not None:
            depth, name = self._indents.read(text_of(cells[self._cells.index[self._indent]]), len(self._path) - 1)
        else:
            text = self._cells.text(cells, self._depth or "")
            if not text.isdecimal() or len(text) > MAX_DIGITS:
                raise BadInput(f'column "{self._depth}" has {shorten(text) or "nothing"} and no whole number')
            self._base = int(text) if self._base < 0 else self._base
            depth = int(text) - self._base
            name = next(filter(None, self._cells.names_of(cells, level)), "")
        key = self._cells.text(cells, self._key) if self._key else name
        if not key or depth < 0:
            raise BadInput("it has no key" if not key else f"its depth is less than {self._base}, that of the first")
        if depth >= MAX_SEGMENTS:
            raise BadInput(f"it is below {depth} others, and a path has at most {MAX_SEGMENTS} keys")
        if depth > len(self._path):
            raise BadInput("it is deeper by more than one than the row before it")
        if is_skipped or depth > self._skipped:
            self.skip.below += depth > self._skipped and not is_skipped
            self._skipped, self._deepest = min(depth, self._skipped), max(self._deepest, depth)
            self._path[depth:] = [key]
            return Row(number, (), ())
        self._skipped = MAX_SEGMENTS
        if level is None:
            level, reason = level_below(self.hierarchy, self._levels_above[depth - 1] if depth else None)
            if reason:
                raise BadInput(reason)
        self._path[depth:], self._levels_above[depth:] = [key], [level]
        self._deepest, self._count = max(self._deepest, depth), self._count + 1
        part = self._cells.node(cells, level, None)
        if self._key and part.name is None and name:
            part = part._replace(name=name)
        return Row(number, [*self._path], [part])

    @classmethod
    def see_column(cls, look: Look, place: str, column: str, values: Sequence[str]) -> None:
        if column in look.keys or not look.keys:
            index = look.sample.header.index(column)
            _see_outline(place, [row[index] for row in look.sample.texts], look.tree_by(indent=column))
        is_depth = fold(column) in DEPTHS or (not look.keys and fold(column) in ("depth", "tiefe"))
        if column not in look.keys and is_depth and len({*values} - {""}) > 1 and all(map(_DEPTH.fullmatch, values)):
            raise shape_doubt(
                f"{place} seems to have the depths of nodes, which are in their order below one another, and all would "
                "become siblings",
                look.tree_by(depth=column),
            )

    @classmethod
    def see_keys(cls, source: str, roots: Sequence[str], codes: Collection[str], *, are_flat: bool) -> None:
        if are_flat:
            _see_outline(source, roots, ("--tree-by", "indent"))


def _without_branches(rows: Iterable[TableRow]) -> Iterator[TableRow]:
    """The lines of a text without those that only draw a tree, and what is below a drawn one."""
    is_drawn = False
    for row in rows:
        line = str(row[1][0])
        is_drawn = is_drawn or bool(_BRANCH.match(line))
        if not (_TRUNK.fullmatch(line) or (is_drawn and _SUMMARY.fullmatch(line))):
            yield row


def _see_outline(place: str, texts: Sequence[str], options: Sequence[str]) -> None:
    """Raise Doubt for texts, in the order of the file, that are indented or have a mark of their depth, as many have
    and the first not.
    """
    marks = [_MARKS.match(text) for text in texts]
    found = [text for text, mark in zip(texts, marks, strict=True) if mark]
    if found and marks[0] is None and len(found) >= 0.3 * len(texts):
        raise shape_doubt(
            f"{place} is an outline: {shorten(found[0])!r} begins with blanks or signs that may show its depth, and "
            "all would become siblings",
            options,
        )
