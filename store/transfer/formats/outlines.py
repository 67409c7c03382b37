"""Outlines: nodes in their order, whose depths are shown by blanks or marks before them, or are numbers in a column."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from store.errors import BadInput, shorten
from store.model.keys import MAX_SEGMENTS
from store.transfer.formats.columns import text_of
from store.transfer.formats.lines import line_of, text_lines
from store.transfer.formats.tables import Table, TableRow, read_table
from store.transfer.formats.trees import TreeReader
from store.transfer.parent_ids import level_below
from store.transfer.rows import Rejection, Row, TextRows

_HEADING = re.compile(r"(#+)\s+(.*)", re.DOTALL)
_BRANCH = re.compile(r"([\s│┃|]*(?:[├└┣┗╰`+|\\](?:[─━]+|--+)\s*|[│┃|]\s+))(.*)", re.DOTALL)  # of the program tree
_TRUNK = re.compile(r"[\s│┃|]+")
_MARK = re.compile(r"(\s*)(-+|\*+|\++|•+|·+|–+|—+|>+|\.+)\s+(.*)", re.DOTALL)
_UNCLEAR = re.compile(r"\s*([-*+•·–—>][^\W\d]|--|\*\*|\.\.|#+[^\W\d]|[-*+•·–—>#]+$)")
_SUMMARY = re.compile(r"[\d,]+ director(?:y|ies)(?:, [\d,]+ files?)?")  # below what the program tree has drawn
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


class OutlineReader(TreeReader):
    """Turns cells into rows with paths, by depths: by numbers, or by what is before the texts."""

    def start(self) -> None:
        """Begin with the first row."""
        self._indents, self._base, self._deepest, self._rows = Indents(), -1, 0, 0
        self._path, self._levels_above = list[str](), list[str]()

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, without a path where all are empty; raises BadInput where its place is not clear."""
        if not any(text_of(cell).strip() for cell in cells):
            return Row(number, (), ())
        tree, level = self._tree, self.level_of(cells)
        if tree.indent is not None:
            depth, name = self._indents.read(text_of(cells[self._index[tree.indent]]), len(self._path) - 1)
        else:
            text = self._text(cells, tree.depth or "")
            if not text.isdecimal() or len(text) > MAX_DIGITS:
                raise BadInput(f'column "{tree.depth}" has {shorten(text) or "nothing"} and no whole number')
            self._base = int(text) if self._base < 0 else self._base
            depth = int(text) - self._base
            name = next(filter(None, (self._text(cells, name) for name in self.names_of(level))), "")
        key = self._text(cells, tree.key) if tree.key else name
        if not key or depth < 0:
            raise BadInput("it has no key" if not key else f"its depth is less than {self._base}, that of the first")
        if depth >= MAX_SEGMENTS:
            raise BadInput(f"it is below {depth} others, and a path has at most {MAX_SEGMENTS} keys")
        if depth > len(self._path):
            raise BadInput("it is deeper by more than one than the row before it")
        if level is None:
            level, reason = level_below(self._hierarchy, self._levels_above[depth - 1] if depth else None)
            if reason:
                raise BadInput(reason)
        self._path[depth:], self._levels_above[depth:] = [key], [level]
        self._deepest, self._rows = max(self._deepest, depth), self._rows + 1
        part = self.part(cells, level, None)
        if tree.key and part.name is None and name:
            part = part._replace(name=name)
        return Row(number, [*self._path], [part])

    def finish(self) -> None:
        """Raise BadInput where all of several rows were roots."""
        if self._rows > 1 and not self._deepest:
            raise BadInput("No row is below another one: nothing shows their depths.")


def outline_table(file: Path, encoding: str) -> Table:
    """The lines of a text as a table of one column without a name."""

    def rows() -> Iterator[TableRow]:
        is_drawn = False
        for number, line, problem in text_lines(file, encoding, indented=True):
            is_drawn = is_drawn or bool(_BRANCH.match(line))
            if not (_TRUNK.fullmatch(line) or (is_drawn and _SUMMARY.fullmatch(line))):
                yield number, [line], problem.reason if problem else None, line

    return Table([""], rows)


def read_outline(table: Table, reader: OutlineReader) -> TextRows:
    """The rows of a table as nodes, each with its line of JSON. Raises BadInput for a row without a clear place, since
    what is below it has none either.
    """
    reader.start()
    for _, row in read_table(table, reader):
        if isinstance(row, Rejection):
            raise BadInput(f"Row {row.number} has no place in the outline: {row.reason.rstrip('.')}.")
        if row.path:
            yield line_of(row), row
    reader.finish()
