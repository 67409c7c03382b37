"""Taxonomies: a path such as `A > B > C` on each line of a text, perhaps with an id before it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.model.records import checked_id
from store.transfer.formats.source import Doubt, Guess
from store.transfer.formats.table import Table, TableRow
from store.transfer.rows import Part, Rejection, Row, TextRows
from store.transfer.shapes.cell_paths import are_domains, joined_path, see_signs
from store.transfer.shapes.doubts import ENOUGH_ROWS, nested_level, shape_doubt
from store.transfer.shapes.shape import RowOptions, Shape

_ID = re.compile(r"(?=\S*(?:\d|://))(\S+)(?:\s*\t\s*|\s+[-:|]\s+)")  # a text with a digit, or a URI
_OBJECT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +\d+ \S")
_DIVIDER = re.compile(r"(?<=\s)>(?=\s)")
_COMMENTS = ("#", "//")
_FIELD = re.compile(r"(?:< ?)?([\w:.-]+):\s")
_ALIGNED = re.compile(r"\w {2,}[\w;#|]")
_LETTER = re.compile(r"([A-Z])( {2,}|\t+)\S")  # of a depth, and the blanks that go with it
_ITEM = re.compile(r"[-*+]\s+\S|\d+[.)]\s+\S")  # of a list
_BLANKS = " \t\x0b\x0c"


class Taxonomy(Shape):
    """Lines in any order; all nodes are of one level, and the id is that of the last one. Lines that begin with # or
    // are skipped.
    """

    is_table = False
    path_column = "path"

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        self.refuse_columns()
        if (level := nested_level(hierarchy)) is None:
            needs = "A taxonomy needs a level that may be a root and is allowed under itself"
            raise BadInput(f"{needs}; {hierarchy.name} has none: use csv or jsonl.")
        self._level, self.rejected = level.name, table.rejected("")
        self._has_ids = self._ids()

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        return table.is_text and not options.tree

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The rows, each with its line."""
        level = self._level
        for number, line, reason in self._lines(self.table.rows() if rows is None else rows):
            node_id = None if self._has_ids is None else _ID.match(line)
            path = [segment.strip() for segment in _DIVIDER.split(f" {line[node_id.end() if node_id else 0 :]} ")]
            last = Part(level, id=node_id[1] if node_id and self._has_ids else None)
            row = Row(number, path, [*[Part(level)] * (len(path) - 1), last])
            yield line, Rejection(number, reason) if reason else row

    def _lines(self, rows: Iterable[TableRow]) -> Iterator[tuple[int, str, str | None]]:
        """Number, text and what is wrong of each line that is no comment."""
        for number, cells, reason, *_ in rows:
            if not (line := str(cells[0]).lstrip(_BLANKS)).startswith(_COMMENTS):
                yield number, line, reason
            else:
                self.path_column = ""  # of a table, which has no comments

    def _ids(self) -> bool | None:
        """Whether nodes get the ids before the paths, of which each line has one that no other node has; None where
        there are none. Numbers belong to the keys where each belongs to one first key, and is repeated with it or the
        last keys have numbers, too.

        Raises Doubt, unless the guess is taken, where only some lines have an id, or some have the same one, or where
        ids cannot be stored. Raises it as well for indented lines without paths, which are an outline.
        """
        name, taken = self.table.name, self.given.taken
        lines = [(number, line) for number, line, reason in self._lines(self.table.rows()) if not reason]
        has_paths = any(" > " in text for _, text in lines)
        if has_paths and Guess.SHAPE not in taken:
            see_signs(name, [text for _, text in lines], " > ")
        elif Guess.SHAPE not in taken:
            self._refuse_list([text for _, text in lines])
            self._refuse_outline()
            self._refuse_headings()
        found = [(row, match[1], text[match.end() :]) for row, text in lines if (match := _ID.match(text))]
        places: dict[str, tuple[int, str]] = {}  # of each id the first row, and its path
        repeated = (
            f"The id {shorten(node_id)} is in rows {places[node_id][0]} and {row} of {name}"
            for row, node_id, path in found
            if places.setdefault(node_id, (row, path))[1] != path
        )
        reason = next(repeated, "")
        firsts = {(node_id, path.partition(" > ")[0]) for _, node_id, path in found}
        are_of_first = len(firsts) == len({node_id for node_id, _ in firsts}) == len({key for _, key in firsts})
        last_keys = (path.rpartition(" > ")[2].lstrip() for _, _, path in found if " > " in path)
        are_of_keys = are_of_first and (reason or (has_paths and all(map(_ID.match, last_keys))))
        if not found or (are_of_keys and len(found) == len(lines)):
            return None
        if len(found) < len(lines):
            row, text = next(line for line in lines if not _ID.match(line[1]))
            some = f"Some lines of {name} begin with an id, such as {shorten(found[0][1])}"
            reason = f'{some}, but not row {row}, "{shorten(text)}"'
        has_ids = not reason
        if reason:
            reason += ". Give each line an id of its own, or none; now they would belong to the keys"
        for row, node_id, _ in found if has_ids else ():
            try:
                checked_id(node_id)
            except BadInput as error:
                said = f"Row {row} of {name}: {error} Write others, such as the last part"
                reason = reason or f"{said}; now ids would be made from the paths"
        if reason and Guess.IDS not in taken:
            raise Doubt(Guess.IDS, reason)
        return not reason if has_ids else None

    def _refuse_list(self, lines: Sequence[str]) -> None:
        """Raise Doubt for lines that are no paths, but a listing, fields with their names, or columns."""
        folders = {line[:-1] for line in lines if line.endswith(":")}
        fields = [match[1] for match in map(_FIELD.match, lines) if match]
        objects, aligned = (sum(map(bool, map(form, lines))) for form in (_OBJECT.match, _ALIGNED.search))
        letters = [match for match in map(_LETTER.match, lines) if match]
        depths = {(match[1], len(match[2])) for match in letters}
        are_depths = len(depths) > 1 and all(len({*one}) == len(depths) for one in zip(*depths, strict=True))
        if 2 * objects > len(lines):
            seen, other = "lists objects with dates and sizes, as aws s3 ls does", "write a file of the keys alone"
        elif any("/" in one and one.rpartition("/")[0] in folders for one in folders):
            seen, other = "lists folders one after another, as ls -R does", "write a path on each line, as find does"
        elif 4 * len(fields) > 3 * len(lines) and 3 * len({*fields}) <= len(fields):
            seen, other = f'has fields with their names, such as "{shorten(fields[0])}"', "write CSV of the nodes"
        elif are_depths and 2 * len(letters) >= len(lines):
            seen, other = "begins with letters that are depths, all in one column", "indent its lines without letters"
        elif 4 * aligned > 3 * len(lines) > ENOUGH_ROWS:
            seen, other = "has columns that are aligned by blanks", "write it as CSV"
        else:
            return
        raise shape_doubt(f"{self.table.name} {seen}", other=other)

    def _refuse_outline(self) -> None:
        """Raise Doubt for a line that is indented more than the first one, or is a heading or an item below #."""
        first = ""
        for number, cells, *_ in self.table.rows():
            line = str(cells[0])
            first = first or line
            is_deeper = len(line) - len(line.lstrip(_BLANKS)) > len(first) - len(first.lstrip(_BLANKS))
            if is_deeper or (first.startswith("# ") and (line.startswith("## ") or _ITEM.match(line))):
                seen = f"{self.table.name} is an outline: row {number} is indented, or has a mark of its depth"
                raise shape_doubt(f"{seen}, and each line would be a root, or a comment", ["--tree-by", "indent"])

    def _refuse_headings(self) -> None:
        """Raise Doubt for several comments between the lines, each above some of them, as headings are."""
        lines = [str(cells[0]).lstrip(_BLANKS) for _, cells, *_ in self.table.sample.rows]
        above = [one for one, below in pairwise(lines) if one.startswith(_COMMENTS) > below.startswith(_COMMENTS)]
        texts = {one for one in lines if not one.startswith(_COMMENTS)}
        if len(above) > 1 and not joined_path(texts) and not are_domains(texts):
            seen = f'{self.table.name} has comments between its lines, such as "{shorten(above[1])}", as if headings'
            raise shape_doubt(seen, other="remove them, or write the path of each line")
