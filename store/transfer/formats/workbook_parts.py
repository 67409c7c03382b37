"""Parts of an Excel workbook, within the bounds of Excel: what a library reads whole has a largest size, and sheets and
texts are looked through in one pass that keeps nothing of what it has passed.
"""

import re
import zipfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from store.errors import BadInput
from store.transfer.formats.lines import MAX_LINE_BYTES
from store.transfer.formats.source import BLOCK_BYTES
from store.transfer.formats.table import TITLE_ROWS

MAX_SHEET_ROWS = 1_048_576
MAX_SHEET_COLUMNS = 16_384
MAX_CELL_CHARACTERS = 32_767
MAX_WRITTEN = 8 * MAX_CELL_CHARACTERS  # characters of a cell in XML, where an escaped one has seven, with phonetic ones
MAX_TEXTS = 5_000_000  # in memory; more are hundreds of megabytes in XML, or texts of nothing
MAX_PART_BYTES = 20_000_000  # of what is read whole, such as styles; those of Excel have a few megabytes at most
MAX_DEPTH = 64  # of elements
MAX_ELEMENTS = 8 * MAX_SHEET_COLUMNS  # of a row, or of a text
MAX_OTHERS = 2 * MAX_SHEET_COLUMNS  # elements before the last row that belong to no row, such as columns
MAX_SPANS = 100_000  # of columns that merged cells have
MAX_UNCOMPUTED = 1_000_000

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_VALUE, _FORMULA, _CELL, _ROW, _MERGED, _TEXT, _OUTLINE = [
    _MAIN + tag for tag in "v f c row mergeCell si outlinePr".split()
]
_RANGE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})(?::\$?([A-Z]{1,3})\$?([0-9]{1,7}))?")
_COLUMN = re.compile("[A-Z]+")
_AS_CSV = "save the sheet as CSV"


class Parts(zipfile.ZipFile):
    """The archive of a workbook. Only parts in `streamed` may be large; raises BadInput for others.

    Those in `postponed` look empty, as long as they are in it.
    """

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.streamed, self.postponed = set[str](), set[str]()

    def open(self, name: Any, *args: Any, **options: Any) -> IO[bytes]:
        part = name if isinstance(name, zipfile.ZipInfo) else self.getinfo(name)
        if part.filename in self.postponed:
            return BytesIO(b"<worksheet/>")
        if part.filename not in self.streamed and part.file_size > MAX_PART_BYTES:
            raise BadInput(
                f"Its part {part.filename} has {part.file_size:,} bytes; at most {MAX_PART_BYTES:,} are read. Save it "
                f"again in Excel, or {_AS_CSV}."
            )
        return super().open(name, *args, **options)


class _Scan:
    """One pass over a part. Raises BadInput or ValueError for what no workbook of Excel has."""

    def __init__(self, content: IO[bytes]) -> None:
        self._depth = self._events = 0
        self._parser = expat.ParserCreate(namespace_separator="}")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        while block := content.read(BLOCK_BYTES):
            before = self._events
            self._parser.Parse(block, False)
            if self._events == before and len(block) == BLOCK_BYTES:
                raise ValueError(f"a tag or a comment has more than {BLOCK_BYTES:,} bytes")
        self._parser.Parse(b"", True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._events += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(f"elements are nested more than {MAX_DEPTH} times")

    def _end(self, tag: str) -> None:
        self._depth -= 1

    def _characters(self, text: str) -> None:
        self._events += 1


class TextScan(_Scan):
    """The texts that the cells of all sheets share."""

    def __init__(self, content: IO[bytes]) -> None:
        self._texts = self._elements = self._size = 0
        super().__init__(content)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        super()._start(tag, attributes)
        self._elements += 1
        if tag == _TEXT:
            self._texts += 1
            self._elements = self._size = 0
        if self._texts > MAX_TEXTS:
            raise BadInput(f"The workbook has more than {MAX_TEXTS:,} texts; {_AS_CSV}.")
        if self._elements > MAX_ELEMENTS:
            raise ValueError(f"a text has more than {MAX_ELEMENTS:,} elements")

    def _characters(self, text: str) -> None:
        super()._characters(text)
        self._size += len(text)
        check_text(self._size, "A text of the workbook")


class SheetScan(_Scan):
    """What is known of a sheet before its rows are read: the number of the last one, the cells with a formula that has
    no computed value, the columns of merged cells, and the groups of rows: in `levels` a byte for each row, 0 of one
    without values, 1 of one in no group.

    Raises ValueError for rows or cells that are not in order, of which the library would leave some out.
    """

    def __init__(self, content: IO[bytes]) -> None:
        self.last = 0
        self.uncomputed: set[str] = set()
        self.levels = bytearray(1)
        self._level, self._are_details_below = 1, False
        self.ends: dict[int, int] = {}  # of the first rows of merged cells: the last rows
        self.widths: dict[int, int] = {}  # of these: the last columns
        self._spans: dict[tuple[int, int], int] = {}  # of merged cells of several rows: their last first row
        self._row = self._others = self._elements = self._cells = self._size = self._written = 0
        self._cell, self._before = "", (0, "")
        self._has_formula = self._has_value = False
        super().__init__(content)

    def merged(self, header: int) -> Iterable[int]:
        """The columns, from 1 on, that have cells below the header which are merged over several rows."""
        reach = 0
        for left, right in sorted(span for span, top in self._spans.items() if top > header):
            yield from range(max(left, reach + 1), right + 1)
            reach = max(reach, right)

    def are_details_above(self, header: int) -> bool:
        """Whether each group of rows below the header may belong to the row below it, as by default in Excel."""
        levels = [*filter(None, self.levels[header + 1 :])]
        return bool(levels) and levels[-1] == min(levels) < max(levels) and not self._are_details_below

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        super()._start(tag, attributes)
        if self._row:
            self._elements += 1
            if tag == _CELL:
                self._begin_cell(attributes.get("r", ""))
            self._has_formula |= tag == _FORMULA
            self._has_value |= tag == _VALUE
            if self._elements > MAX_ELEMENTS:
                raise ValueError(f"row {self._row} has more than {MAX_ELEMENTS:,} elements")
        elif tag == _ROW:
            self._begin_row(int(float(attributes.get("r", self.last + 1))))
            self._level = 1 + int(attributes.get("outlineLevel", 0))
        elif tag == _MERGED:
            self._merge(attributes["ref"])
        else:
            self._are_details_below |= tag == _OUTLINE and attributes.get("summaryBelow") in ("0", "false")
            self._others += 1

    def _begin_row(self, number: int) -> None:
        if self._others > MAX_OTHERS:
            raise ValueError(f"row {number} comes after more than {MAX_OTHERS:,} elements of other kinds")
        if not self.last < number <= MAX_SHEET_ROWS:
            raise ValueError(f"row {number} or a cell in it is not in order")
        self._row = self.last = number
        self._elements = self._cells = self._written = 0
        self._before = (0, "")

    def _begin_cell(self, reference: str) -> None:
        place = (len(reference), reference)
        if reference and place <= self._before:
            raise ValueError(f"row {self._row} or a cell in it is not in order")
        self._cells += 1
        if self._cells > MAX_SHEET_COLUMNS or (reference and _number(_COLUMN.match(reference)) > MAX_SHEET_COLUMNS):
            raise ValueError(f"row {self._row} has more than {MAX_SHEET_COLUMNS:,} columns, the most of Excel")
        self._cell, self._size = reference, 0
        self._before = place if reference else self._before
        self._has_formula = self._has_value = False

    def _merge(self, reference: str) -> None:
        found = _RANGE.fullmatch(reference)
        if found is None:
            raise ValueError(f"merged cells have the range {reference[:20]}")
        left, top, right, end = found.groups()
        if end and int(top) <= TITLE_ROWS:
            self.widths[int(top)] = max(self.widths.get(int(top), 0), _number(_COLUMN.match(right)))
        if int(top) < int(end or top):
            span = (_number(_COLUMN.match(left)), min(_number(_COLUMN.match(right)), MAX_SHEET_COLUMNS))
            self._spans[span] = max(self._spans.get(span, 0), int(top))
            self.ends |= {int(top): int(end or top)} if int(top) <= TITLE_ROWS else {}
        if len(self._spans) > MAX_SPANS:
            raise ValueError(f"merged cells have more than {MAX_SPANS:,} places")

    def _end(self, tag: str) -> None:
        super()._end(tag)
        if tag == _ROW:
            self.levels.extend(bytes(self._row + 1 - len(self.levels)))
            self.levels[self._row] = self._level if self._written else 0
            self._row = 0
        elif tag == _CELL and self._has_formula and not self._has_value:
            self.uncomputed.add(self._cell)
            if len(self.uncomputed) > MAX_UNCOMPUTED:
                raise BadInput(
                    f"The sheet has more than {MAX_UNCOMPUTED:,} formulas without a computed value; open the file in "
                    "Excel and save it."
                )

    def _characters(self, text: str) -> None:
        super()._characters(text)
        if self._row:
            self._size += len(text)
            self._written += len(text)
            check_text(self._size, f"Cell {self._cell}")
            if self._written > MAX_LINE_BYTES:
                raise BadInput(f"Row {self._row} of the sheet has more than {MAX_LINE_BYTES:,} characters; shorten it.")


def check_text(size: int, what: str, limit: int = MAX_WRITTEN) -> None:
    """Raise BadInput for a text that is longer than those of cells are."""
    if size > limit:
        raise BadInput(f"{what} has more than {MAX_CELL_CHARACTERS:,} characters, the most of Excel; shorten it.")


def _number(letters: re.Match[str] | None) -> int:
    """The number of a column, from 1 on; beyond all for what names none."""
    number = 0
    for letter in letters[0] if letters and len(letters[0]) <= 3 else "ZZZZ":
        number = 26 * number + ord(letter) - 64
    return number
