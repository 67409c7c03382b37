"""Tables, which every format gives: a header, rows of cells, and where each row stands in the file. A shape makes nodes
of them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from store.errors import BadInput, quantity
from store.transfer.formats.cells import named, text_of
from store.transfer.formats.lines import MAX_LINE_BYTES, TOO_LONG
from store.transfer.formats.skip import Skip
from store.transfer.formats.source import RejectedRows, csv_line, free_name

MAX_COLUMNS = 20_000  # of a table; Excel has 16,384
MAX_DEPTH = 32  # of objects in objects
SAMPLE_ROWS = 5_000
SAMPLE_CELLS = 200_000
SAMPLE_CHARACTERS = 20_000_000
COMPARED_COLUMNS = 100  # of a sample
TITLE_ROWS, MAX_TITLES = 50, 20  # rows in which a title is looked for, and those above a header
SHOWN_NAMES = 3
COMMENT = re.compile(r"#|//|(?:;|--)\s(?!.*;)")  # a line above a table or a tree
INDENT = "\u2003"  # the blank before texts that a sheet shows indented, unlike one that is typed

TableRow = tuple[int, Sequence[object], str | None, str | None, str]  # number, cells, what is wrong, text, place
Values = Callable[[], Iterator[tuple[int, str, Any]]]  # number, text, and a value of JSON, or a Rejection


class Sample:
    """The first rows of a table, fewer of a wide one, or of one with long texts: as they are, also those that cannot be
    read, and the others as texts, as wide as the header; and its first columns, without blanks.
    """

    def __init__(self, header: Sequence[str], rows: Iterator[TableRow], skip: Skip | None = None) -> None:
        self.header = header
        self.rows: list[TableRow] = []
        self.texts: list[Sequence[str]] = []
        size = 0
        for row in islice(rows, min(SAMPLE_ROWS, SAMPLE_CELLS // max(1, len(header)) + 1)):
            self.rows.append(row)
            if row[2] is None and not (skip and skip.has(row[1])):
                self.texts.append(padded(row[1], len(header)))
                size += sum(map(len, self.texts[-1]))
                if size > SAMPLE_CHARACTERS:
                    break
        self.is_whole = next(rows, None) is None
        width = min(len(header), COMPARED_COLUMNS)
        self.columns = [[row[index].strip() for row in self.texts] for index in range(width)]

    def column(self, name: str) -> list[str]:
        """The values of the first column of this name."""
        index = self.header.index(name)
        return self.columns[index] if index < len(self.columns) else [row[index].strip() for row in self.texts]


@dataclass
class Table:
    """A header, and a function to all rows, each with its number in the file, what is wrong with it, its text, and what
    says its place beside the number, as of one of several files.

    The text is None where it is a line of CSV of the cells, which `line` makes. `rejected_by` says how rejected rows
    are written, with a column of this name for the reason. `merged` are the columns of a sheet with cells that are
    merged over several rows below the header, `guesses` what was guessed about the file, with `doubt` where that may be
    wrong. The header may be a row of it, with the number `header_row`, or a function, where only all rows tell it.

    JSON has its `values` as well, as they are in the file, and a document as a whole, where the rows of a table are
    those of its objects: `lists` are then the columns of lists of objects, and whether a list is one of `children`, or
    in another of its name. A text `is_text`: each of its lines is a row of one cell. It is `unclear` for this reason
    what the rows of a sheet with groups are below. Samples and texts are without the rows of `skip`, others with them.
    """

    name: str
    columns: Sequence[str] | Callable[[], Sequence[str]]
    rows: Callable[[], Iterator[TableRow]]
    merged: Sequence[str] = ()
    line: Callable[[Iterable[str]], str] = csv_line
    rejected_by: Callable[[str], RejectedRows] | None = None
    guesses: Sequence[str] = ()
    doubt: str = ""
    header_row: int | None = None
    values: Values | None = None
    document: Callable[[], Any] | None = None
    lists: Mapping[str, bool] = field(default_factory=dict)
    is_text: bool = False
    unclear: str = ""
    skip: Skip | None = None

    @cached_property
    def header(self) -> Sequence[str]:
        """The names of the columns; raises BadInput for so many that each row would take much memory."""
        header = self.columns() if callable(self.columns) else self.columns
        if len(header) > MAX_COLUMNS:
            raise BadInput(f"{self.name} has {len(header):,} columns; at most {MAX_COLUMNS:,} are read.")
        return header

    @cached_property
    def sample(self) -> Sample:
        """The first rows, read once for all checks."""
        return Sample(self.header, self.rows(), self.skip)

    @cached_property
    def objects(self) -> list[dict[str, Any]]:
        """The first objects of JSON, as they are in the file."""
        found, size = [], 0
        for _, text, value in self.values() if self.values else ():
            size += len(text)
            found += [value] if isinstance(value, dict) else []
            if len(found) == SAMPLE_ROWS or size > SAMPLE_CHARACTERS:
                break
        return found

    def check_titles(self) -> None:
        """Raise BadInput for a title above the header, as `check_titles` does."""
        rows = [(number, [*map(text_of, cells)]) for number, cells, reason, *_ in self.sample.rows if reason is None]
        check_titles(f"Line {{}} of {self.name}", [(self.header_row or 1, self.header), *rows[: TITLE_ROWS - 1]])

    def rejected(self, reason_column: str) -> RejectedRows:
        """How rejected rows are written, with this column for the reason: by default as lines of CSV."""
        if self.rejected_by:
            return self.rejected_by(reason_column)
        head = csv_line([*self.header, free_name(reason_column, self.header)]).encode()
        return RejectedRows(
            ".csv", head + b"\n", head, lambda text, reason: f"{text},{csv_line([reason])}\n".encode("utf-8", "replace")
        )

    def texts(self) -> Iterator[list[str]]:
        """The rows as texts, as wide as the header, without those that cannot be read."""
        skip = self.skip
        rows = (cells for _, cells, reason, *_ in self.rows() if reason is None and not (skip and skip.has(cells)))
        return (padded(cells, len(self.header)) for cells in rows)


def padded(cells: Sequence[object], width: int) -> list[str]:
    """The cells of a row as texts, at least so many."""
    return [*map(text_of, cells), *[""] * (width - len(cells))]


def fitted(cells: Sequence[object], width: int) -> Sequence[object]:
    """The cells of a row as many as the header has: filled with empty ones, or without empty ones at the end.

    Raises BadInput where there are more.
    """
    if any(text_of(cell).strip() for cell in cells[width:]):
        raise BadInput(f"The row has {quantity(len(cells), 'column')}, the header {width}.")
    return [*cells[:width], *[""] * (width - len(cells))]


def bounded_row(number: int, cells: Sequence[object]) -> TableRow:
    """The row of these cells, or its error where their texts are longer than a line of a text file may be."""
    size = sum([len(one) for one in cells if isinstance(one, str)])
    return (number, cells, None, None, "") if size <= MAX_LINE_BYTES else (number, (), TOO_LONG, "", "")


def flat(fields: dict[str, Any], prefix: str = "", depth: int = 0) -> dict[str, object]:
    """The values of an object and those in it by dotted names, such as address.city. Raises BadInput if it is deep."""
    if depth > MAX_DEPTH:
        raise BadInput(f"An object is nested more than {MAX_DEPTH} times.")
    found: dict[str, object] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.", depth + 1)
        else:
            found[f"{prefix}{name}"] = value
    return found


def check_titles(place: str, rows: Sequence[tuple[int, Sequence[str]]], *, are_padded: bool = False) -> None:
    """Raise BadInput where the first of `rows` is narrower than nearly all others, as a title above a header is.

    Each has its number and its cells, and `place` has a {} for the number. Empty cells at the end of a title, as
    spreadsheets write them, do not make it wider; rows that `are_padded` have them, or had them in their sheet.
    """
    widths = [max((at for at, cell in enumerate(cells, start=1) if cell.strip()), default=0) for _, cells in rows]
    wider = (index for index, width in enumerate(widths[: MAX_TITLES + 1]) if width > widths[0])
    first = next((index for index in wider if not COMMENT.match(rows[index][1][0])), None)
    if first is None:
        return
    first -= COMMENT.match(rows[first - 1][1][0]) is not None and widths[first - 1] >= widths[first]  # as #id, name
    (line, title), (number, header) = rows[0], rows[first]
    is_padded = are_padded or len(title) > widths[0]
    if is_padded and 2 * sum(map(bool, title)) > sum(map(bool, header)):
        return  # a few columns without a name, such as notes beside a table
    below = widths[first:] if is_padded else [len(cells) for _, cells in rows[first:]]
    if len(below) > 1 and sum(width > widths[0] for width in below) >= 0.9 * len(below):
        raise BadInput(
            f"{place.format(line)} has {quantity(widths[0], 'column')}, the rows below it have more; "
            f"--header-row {number} takes {named(header[: widths[first]][:SHOWN_NAMES])} as the names of the columns."
        )
