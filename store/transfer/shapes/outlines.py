"""Outlines: nodes in their order, whose depths are shown by blanks or marks before them, or are numbers in a column."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy
from store.model.keys import MAX_SEGMENTS
from store.transfer.formats.cells import fold, text_of, typed_text
from store.transfer.formats.source import Guess
from store.transfer.formats.table import INDENT, Table, TableRow
from store.transfer.rows import Rejection, Row, TextRows
from store.transfer.shapes.doubts import NUMBER, Look, shape_doubt
from store.transfer.shapes.node_cells import NodeCells
from store.transfer.shapes.parent_tree import level_below
from store.transfer.shapes.paths import line_of
from store.transfer.shapes.shape import RowOptions, Shape, TreeBy, TreeParts

_HEADING = re.compile(r"(#+)\s+(.*)", re.DOTALL)
_BRANCH = re.compile(
    r"([\s│┃|]*(?:[├└┣┗╰`+|\\](?:[─━]+|--+|-(?=\s))\s*|[│┃|]\s+))(.*)", re.DOTALL
)  # of the program tree
_TRUNK = re.compile(r"[\s│┃|]+")
_MARK = re.compile(r"(\s*)(-+|\*+|\++|•+|·+|–+|—+|>+|\.+)\s+(.*)", re.DOTALL)
_UNCLEAR = re.compile(r"\s*([-*+•·–—>][^\W\d]|--|\*\*|\.\.|#+[^\W\d]|[-*+•·–—>#]+$)")
_SUMMARY = re.compile(r"[\d,]+ director(?:y|ies)(?:, [\d,]+ files?)?")  # below what the program tree has drawn
_WINDOWS = re.compile(r"((?:[│|][ \xa0]{3}|[ \xa0]{4})*)([├└]───(?! )|[+\\]---(?! ))?(.*)", re.DOTALL)
_WINDOWS_ROOT = re.compile(r"[A-Za-z]:(?:\.|\\.*)|\\\\[^\\]+\\.+")
_MARKDOWN = re.compile(r".*\.(?:md|markdown)(?:\.gz|\.zip)?", re.IGNORECASE | re.DOTALL)
_MARKDOWN_MARK = re.compile(r"#+\s|\s*(?:[-*+]|\d+[.)])\s")
_NUMBER = re.compile(r"(\s*)(\d{1,9})[.)]\s+(?=\S)(.*)", re.DOTALL)
_LINK = re.compile(r"!?\[((?:\\.|[^\[\]\\])*)\]\((?:[^()]|\([^()]*\))*\)")
_CHECK_BOX = re.compile(r"\A\[[ xX]\]\s+(?=\S)")
_RULE = re.compile(r"\s*([-*_])(?:\s*\1){2,}")
_TABLE_ROW = re.compile(r"\s*\|.*\S.*\|", re.DOTALL)
_NO_MARK = "it has no mark, and others have one; remove it, or write a mark such as - or # before it if it is a node"
_WHOLE = re.compile(r"(\d{1,4})(?:[.,]0+)?")  # a depth, perhaps as 1.0
_TEXT = re.compile(r"(\s*)(.*)", re.DOTALL)
_MARKS = re.compile(r"\s+\S|[-+*.>–—•·│├└─┬| \xa0]+\s*[^\W\d]")  # of the depth of a line in an outline
_TOTAL = re.compile(r"(?:total|summe|итого|всего)(?: of| for)? (.+)|(.+?),? (?:total|gesamt)", re.IGNORECASE)
_SIGNS = "-*+•·–—>#├└┣┗╰─━│┃|`\\ \xa0"  # before texts
_DEPTH = re.compile("1?[0-9]")
_DEPTHS = frozenset(("level", "lvl", "ebene", "niveau", "nivel", "livello", "stufe", "indent"))
_DEPTHS |= {f"{of}level" for of in ("display", "outline", "tree", "hierarchy", "node", "indent", "category")}


@dataclass
class Indents:
    """The depths of texts by what stands before them: blanks or tabs, marks such as `-`, repeated or after blanks,
    headings such as `##`, or the branches of a drawn tree. It is the same for all of a depth; headings are above all
    that follows them, where lists begin anew.

    In a text numbers such as `1.` are marks as well, in a list whose first one is 0 or 1. In Markdown a line that is
    only a link is an item of the heading above it, or a root where a rule stands between; with marks no other line is
    a node. A tree that `is_windows` is
    drawn by its command tree: four characters are a depth, and files have blanks before them.
    """

    is_text: bool = False
    is_markdown: bool = False
    is_windows: bool = False
    is_below_rule: bool = False  # with no heading after it
    _widths: list[int] = field(default_factory=list)  # of what is before the texts of each depth
    kinds: set[str] = field(default_factory=set)
    _blanks: set[bool] = field(default_factory=set)  # whether they are tabs
    _first_heading: int = 0
    _heading: int = 0
    _lists: dict[int, set[str]] = field(default_factory=dict)  # open ones with numbers, by their widths

    def read(self, line: str, before: int) -> tuple[int, str]:
        """The depth of a text, and what it says; `before` is the depth of the one before it, -1 of the first.

        Raises BadInput where the depth is not clear.
        """
        if self.is_windows:
            return self._drawn(line, before)
        if match := _HEADING.match(line):
            self.kinds.add("heading")
            self._begin()
            self._first_heading = self._first_heading or len(match[1])
            depth = len(match[1]) - self._first_heading
            if not 0 <= depth <= self._heading:
                raise BadInput("the heading before it is more than one depth above, or the first heading below it")
            self._heading, self.is_below_rule = depth + 1, False
            return depth, self._said(match[2])
        if self.is_markdown and _LINK.fullmatch(line):
            self._begin()
            return 0 if self.is_below_rule else self._heading, self._said(line)
        width, said = self._width(line)
        if width not in self._widths:
            if self._widths and (width < self._widths[-1] or before != self._heading + len(self._widths) - 1):
                raise BadInput("it is indented as no row above it of the same depth is, or by more than one depth")
            self._widths.append(width)
        depth = self._widths.index(width)
        if self._lists:  # what is below 10. is indented by one more than below 9.
            del self._widths[depth + 1 :]
        return self._heading + depth, said

    def _begin(self) -> None:
        for found in (self._widths, self._blanks, self._lists):
            found.clear()

    def _said(self, text: str) -> str:
        """A text without a check box, and links by their texts."""
        return _LINK.sub(r"\1", _CHECK_BOX.sub("", text)) if self.is_text else text

    def _drawn(self, line: str, before: int) -> tuple[int, str]:
        trunk, branch, said = _WINDOWS.match(line).groups()  # type: ignore[union-attr]
        depth = len(trunk) // 4 + bool(branch)
        self._heading = depth if before < 0 else self._heading
        if depth < self._heading or (before >= 0 and not depth):
            raise BadInput(_NO_MARK)
        return depth - self._heading, said

    def _width(self, line: str) -> tuple[int, str]:
        """The width of what is before a text, and the text."""
        if self.is_text and _TABLE_ROW.fullmatch(line):
            raise BadInput("it is a row of a table; remove the table, or import it as a file of its own")
        if match := _BRANCH.match(line):
            self.kinds.add("branch")
            return len(match[1]), match[2]
        number = _NUMBER.match(line) if self.is_text else None
        width = len(line) - len(line.lstrip()) + 1
        for open_list in [one for one in self._lists if one > width or (not number and one == width)]:
            del self._lists[open_list]
        if number and "indent" not in self.kinds and (width in self._lists or int(number[2]) < 2):
            self.kinds.add("mark")
            indent, said = number[1], self._said(number[3])
            if said in self._lists.setdefault(width, set()):
                raise BadInput("it differs from a row above it by its number alone; write the number after the text")
            self._lists[width].add(said)
        elif (match := _MARK.match(line)) and not (self.is_markdown and match[2][0] == ">"):
            self.kinds.add("mark")
            indent, width, said = match[1], len(match[1]) + len(match[2]), self._said(match[3])
        else:
            if _UNCLEAR.match(line):
                raise BadInput("it begins with a mark and no blank after it, or has no text")
            indent, said = _TEXT.match(line).groups()  # type: ignore[union-attr]
            width = len(indent)
            self.kinds |= {"indent"} if width else set()
            if self.kinds & {"branch", "heading"} or ("mark" in self.kinds and (width or self.is_markdown)):
                raise BadInput(_NO_MARK)
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
        if table.unclear and "indent" in tree.parts:
            raise BadInput(f"The depths of rows are not clear: {table.unclear}.")
        self._indent, self._depth, self._key = map(tree.parts.get, ("indent", "depth", "key"))
        self._left_out, self._is_windows = _frame(table) if table.is_text else ({}, False)
        if self._left_out:
            lines = ", ".join(f'row {number} "{shorten(text)}"' for number, text in self._left_out.items())
            said = f"{quantity(len(self._left_out), 'line')} beside the tree left out: {lines}."
            self.guesses = [*self.guesses, said]
        for column in table.sample.columns if Guess.SHAPE not in options.taken else ():
            texts = [cell.lstrip(_SIGNS) for cell in column]
            totals = [text for text in texts if (own := _TOTAL.fullmatch(text)) and {*own.groups()} & {*texts}]
            if len(totals) > 1:
                seen = f'{table.name} has rows of totals, such as "{shorten(totals[0])}", which would become nodes'
                raise shape_doubt(seen, other="remove these rows, which have totals")

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The rows, each with its line of JSON."""
        is_whole = rows is None or self.table.sample.is_whole
        given = self.table.rows() if rows is None else rows
        if self.table.is_text:
            given = (row for row in _without_branches(given) if row[0] not in self._left_out)
        for _, row in super().read(given):
            if isinstance(row, Rejection):
                raise BadInput(f"Row {row.number} has no place in the outline: {row.reason.rstrip('.')}.")
            if row.path:
                yield line_of(row), row
        if is_whole and self._count > 1 and not self._deepest:
            raise BadInput("No row is below another one: nothing shows their depths.")

    def start(self) -> None:
        is_text = self.table.is_text
        is_markdown = is_text and bool(_MARKDOWN.fullmatch(self.table.name))
        self._indents = Indents(is_text, is_markdown, self._is_windows)
        self._base, self._deepest, self._count = -1, 0, 0
        if is_markdown and any(_MARKDOWN_MARK.match(str(row[1][0])) for row in self.table.sample.rows):
            self._indents.kinds.add("heading")
        self._path, self._levels_above = list[str](), list[str]()
        self._skipped = MAX_SEGMENTS  # the depth of a skipped row, while rows are below it

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, without a path where all are empty; raises BadInput where its place is not clear."""
        if not any(text_of(cell).strip() for cell in cells):
            return Row(number, (), ())
        if self.table.is_text and _RULE.fullmatch(str(cells[0])):
            self._indents.is_below_rule = True
            return Row(number, (), ())
        is_skipped = self.skip.takes(cells)
        level = None if is_skipped else self._cells.level_of(cells)
        if self._indent is not None:
            cell = cells[self._cells.index[self._indent]]
            typed_text(cell, self._indent, is_name=True)
            depth, name = self._indents.read(text_of(cell), len(self._path) - 1)
        else:
            text = text_of(cells[self._cells.index[self._depth or ""]]).strip()
            if not (whole := _WHOLE.fullmatch(text)):
                raise BadInput(f'column "{self._depth}" has {shorten(text) or "nothing"} and no whole number')
            self._base = int(whole[1]) if self._base < 0 else self._base
            depth = self._numbers.index(int(whole[1])) - self._numbers.index(self._base)
            name = next(filter(None, self._cells.names_of(cells, level)), "")
        key = self._cells.text(cells, self._key) if self._key else name
        if not key or depth < 0:
            raise BadInput("it has no key" if not key else f"its depth is less than {self._base}, that of the first")
        if depth >= MAX_SEGMENTS:
            raise BadInput(f"it is below {depth} others, and a path has at most {MAX_SEGMENTS} keys")
        if depth > len(self._path):
            raise BadInput(
                "it is deeper by more than one than the row before it; write a row between them, or correct its depth"
            )
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

    @cached_property
    def _numbers(self) -> list[int]:
        """The depths of all rows, which may have gaps, such as 2, 4 and 7."""
        index = self._cells.index[self._depth or ""]
        cells = {text_of(row[1][index]).strip() for row in self.table.rows() if index < len(row[1])}
        return sorted({int(found[1]) for found in map(_WHOLE.fullmatch, cells) if found})

    @classmethod
    def see_table(cls, look: Look) -> None:
        """Raise Doubt for cells with indents, whatever their texts are, also beside a column of keys."""
        for index, column in enumerate(look.sample.header if len(look.keys) < 2 else ()):
            texts = [row[index] for row in look.sample.texts]
            if any(text.startswith(INDENT) for text in texts):
                others = [one for one in look.keys if one != column]
                key = {"key": others[0]} if others else {}
                _see_outline(f'Column "{shorten(column)}" of {look.source}', texts, look.tree_by(indent=column, **key))

    @classmethod
    def see_column(cls, look: Look, place: str, column: str, values: Sequence[str]) -> None:
        if column in look.keys or not look.keys:
            index = look.sample.header.index(column)
            _see_outline(place, [row[index] for row in look.sample.texts], look.tree_by(indent=column))
        is_depth = fold(column) in _DEPTHS or (not look.keys and fold(column) in ("depth", "tiefe"))
        is_depth = is_depth and len({*values} - {""}) > 1 and all(map(_DEPTH.fullmatch, values))
        are_ordered = are_in_order(values)
        if column not in look.keys and (is_depth or (fold(column) in (*_DEPTHS, "adminlevel") and are_ordered)):
            raise shape_doubt(
                f"{place} seems to have the depths of nodes, which are in their order below one another, and all would "
                "become siblings",
                look.tree_by(depth=column) if are_ordered else (),
            )

    @classmethod
    def see_keys(cls, source: str, roots: Sequence[str], codes: Collection[str], *, are_flat: bool) -> None:
        if are_flat:
            _see_outline(source, roots, ("--tree-by", "indent"))


def _frame(table: Table) -> tuple[dict[int, str], bool]:
    """The lines above the root of a tree that the command tree of Windows has drawn, by their numbers, and whether a
    tree is drawn so.
    """
    lines = [(number, str(cells[0])) for number, cells, reason, *_ in table.sample.rows if reason is None]
    branches = (at for at, (_, text) in enumerate(lines) if (drawn := _WINDOWS.match(text)) and drawn[2])
    first = next(branches, None)
    root = next((at for at, (_, text) in enumerate(lines[:first]) if _WINDOWS_ROOT.fullmatch(text)), 0)
    return ({}, False) if first is None else (dict(lines[:root]), True)


def _without_branches(rows: Iterable[TableRow]) -> Iterator[TableRow]:
    """The lines of a text without those that only draw a tree, and what is below a drawn tree."""
    is_drawn = False
    for row in rows:
        line = str(row[1][0])
        is_drawn = is_drawn or bool(_BRANCH.match(line))
        if not (_TRUNK.fullmatch(line) or (is_drawn and _SUMMARY.fullmatch(line))):
            yield row


def are_in_order(values: Sequence[str]) -> bool:
    """Whether numbers with gaps, such as 10, 20 and 30, go up by one of them at a time, and down again: rows that are
    sorted by their depths do not say what they are below, unless each but the last depth has one row.
    """
    found = [int(whole[1]) for whole in map(_WHOLE.fullmatch, values) if whole]
    numbers = sorted({*found})
    if len(found) < len(values) or not 1 < len(numbers) <= MAX_SEGMENTS or found[0] != numbers[0]:
        return False
    steps = [numbers.index(after) - numbers.index(before) for before, after in pairwise(found)]
    return max(steps) == 1 and (min(steps) < 0 or found.index(numbers[-1]) == len(numbers) - 1)


def _see_outline(place: str, texts: Sequence[str], options: Sequence[str]) -> None:
    """Raise Doubt for texts, in the order of the file, of which many are indented or have a mark of their depth, some
    a longer one than the first; of cells that a sheet shows indented two are enough.
    """
    given = [*filter(str.strip, texts)]
    depths = [len(mark[0]) if (mark := _MARKS.match(text)) else 0 for text in given]
    found = [text for text, depth in zip(given, depths, strict=True) if depth > min(depths)]
    has_many = bool(found) and sum(map(bool, depths)) >= 0.3 * len(given)
    has_many = has_many and not all(NUMBER.fullmatch(text.strip()) for text in given)  # which stand right
    if has_many or sum(text.startswith(INDENT) for text in found) > 1:
        seen = "is indented" if found[0].startswith(INDENT) else "begins with blanks or signs that may show its depth"
        shown = shorten(found[0].lstrip(INDENT))
        raise shape_doubt(f"{place} is an outline: {shown!r} {seen}, and all would become siblings", options)
