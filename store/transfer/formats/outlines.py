"""Outlines: nodes in their order, whose depths are shown by blanks or marks before them, or are numbers in a column."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import json_text, text_of
from store.transfer.formats.lines import line_of, row_of, text_lines
from store.transfer.formats.trees import TreeReader
from store.transfer.parent_ids import level_below
from store.transfer.rows import Link, Rejection, Row, TextRows

_HEADING = re.compile(r"(#+)\s+(.*)", re.DOTALL)
_BRANCH = re.compile(r"([\s│┃|]*(?:[├└┣┗╰`+|\\](?:[─━]+|--+)\s*|[│┃|]\s+))(.*)", re.DOTALL)  # of the program tree
_TRUNK = re.compile(r"[\s│┃|]+")
_MARK = re.compile(r"(\s*)(-+|\*+|\++|•+|·+|–+|—+|>+|\.+)\s+(.*)", re.DOTALL)
_UNCLEAR = re.compile(r"\s*([-*+•·–—>][^\W\d]|--|\*\*|\.\.|#+[^\W\d]|[-*+•·–—>#]+$)")
MAX_DIGITS = 4  # of a depth
_TEXT = re.compile(r"(\s*)(.*)", re.DOTALL)


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


@dataclass
class _Places:
    """The paths of the nodes of an outline, in their order, and their levels where the rows do not say them."""

    hierarchy: Hierarchy
    depth: int = -1
    deepest: int = 0
    rows: int = 0
    _path: list[str] = field(default_factory=list)
    _levels: list[str] = field(default_factory=list)

    def add(self, depth: int, key: str, level: str | None) -> tuple[list[str], str]:
        """The path and the level of the next node. Raises BadInput where they are not clear."""
        if depth > self.depth + 1:
            raise BadInput("it is deeper by more than one than the row before it")
        if level is None:
            level, reason = level_below(self.hierarchy, self._levels[depth - 1] if depth else None)
            if reason:
                raise BadInput(reason.rstrip("."))
        self.depth, self.deepest, self.rows = depth, max(self.deepest, depth), self.rows + 1
        self._path[depth:], self._levels[depth:] = [key], [level]
        return [*self._path], level

    def stop(self, number: int, reason: object) -> BadInput:
        """The error of a row, which stops an import, since what is below it has no place either."""
        return BadInput(f"Row {number} has no place in the outline: {reason}.")

    def finish(self) -> None:
        if self.rows > 1 and not self.deepest:
            raise BadInput("No row is below another one: nothing shows their depths.")


def read_outline(hierarchy: Hierarchy, file: Path, encoding: str) -> TextRows:
    """The lines of a text as nodes, each with its line of JSON. Raises BadInput for a line without a clear place."""
    indents, places = Indents(), _Places(hierarchy)
    for number, line, problem in text_lines(file, encoding, indented=True):
        try:
            if problem:
                raise BadInput(problem.reason.rstrip("."))
            if _TRUNK.fullmatch(line):
                continue
            path, level = places.add(*indents.read(line, places.depth), None)
        except BadInput as error:
            raise places.stop(number, error) from None
        fields = {"path": path, "level": level}
        yield json_text(fields), row_of(number, fields)
    places.finish()


class OutlineReader(TreeReader):
    """Turns cells into rows with links, whose parents are depths: by numbers, or by what is before the texts."""

    def start(self) -> None:
        """Begin with the first row."""
        self._indents, self._base, self._depth = Indents(), -1, -1

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, without a link where all are empty; raises BadInput where its depth is not clear."""
        if not any(text_of(cell).strip() for cell in cells):
            return Row(number, (), ())
        tree, level = self._tree, self.level_of(cells)
        if tree.indent is not None:
            self._depth, text = self._indents.read(text_of(cells[self._index[tree.indent]]), self._depth)
            names = [text]
        else:
            text = self._text(cells, tree.depth or "")
            if not text.isdecimal() or len(text) > MAX_DIGITS:
                raise BadInput(f'column "{tree.depth}" has {shorten(text) or "nothing"} and no whole number')
            self._base = int(text) if self._base < 0 else self._base
            self._depth = int(text) - self._base
            names = [self._text(cells, name) for name in self.names_of(level)]
        name = next(filter(None, names), "")
        key = self._text(cells, tree.key) if tree.key else name
        if not key or self._depth < 0:
            raise BadInput("it has no key" if not key else f"its depth is less than {self._base}, that of the first")
        kept = [cell if index in self._used else None for index, cell in enumerate(cells)]
        return Row(number, (), (), link=Link(name, str(self._depth), key, bool(tree.key), level, None, kept))


def read_outline_table(hierarchy: Hierarchy, reader: OutlineReader, read: Callable[[], TextRows]) -> TextRows:
    """The rows of a table as nodes, each with its line of JSON. Raises BadInput for a row without a clear place."""
    places = _Places(hierarchy)
    reader.start()
    for _, row in read():
        try:
            if isinstance(row, Rejection):
                raise BadInput(row.reason.rstrip("."))
            if row.link is None:
                continue
            path, level = places.add(int(row.link.parent), row.link.key, row.link.level)
        except BadInput as error:
            raise places.stop(row.number, error) from None
        part = reader.part(row.link.cells, level, None)
        if row.link.is_fixed and part.name is None and row.link.own:
            part = part._replace(name=row.link.own)
        placed = Row(row.number, path, [part])
        yield line_of(placed), placed
    places.finish()
