"""Tables of binary files: Excel workbooks (.xlsx), by openpyxl, and Parquet, by pyarrow.

A sheet is read row by row. Each row, and what a workbook has beside them, is in memory as a whole, where a file of
100 KB can have gigabytes. So elements and bytes are counted before the library reads them.
"""

import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, cast
from xml.parsers import expat

from store.errors import BadInput, shorten
from store.transfer.formats.columns import ShownCell, named, text_of
from store.transfer.formats.tables import Table, TableRow, checked_header, flat

MAX_SHEET_ROWS = 1_048_576  # as many as Excel has
MAX_DIGITS = 15  # of a number, of which Excel keeps no more
MAX_GENERAL = 11  # characters of a number with a fraction that Excel shows in the format General
SAMPLE_ROWS = 50  # in which a header is compared with the rows below
MAX_TEXTS = 5_000_000, 200_000_000  # elements and bytes of the texts of all sheets
MAX_PART = 500_000, 20_000_000  # elements and bytes of a row, and of any other part, such as the formats
_TEXTS = "xl/sharedStrings.xml"
_READ = re.compile(r"(docProps|xl/worksheets|xl/theme|xl/chartsheets)/|xl/(workbook|styles|sharedStrings)|.*\.rels$|\[")
_CELL, _VALUE, _FORMULA, _ROW, _MERGED, _DIMENSION = [
    f"http://schemas.openxmlformats.org/spreadsheetml/2006/main {tag}"
    for tag in "c v f row mergeCell dimension".split()
]
_TOKEN = re.compile(
    r"""(?P<blank>\[(?:\$-[0-9a-f]{1,4}|black|blue|cyan|green|magenta|red|white|yellow|color ?[0-9]+)\]|_.)"""
    r"""|"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|(?P<digit>[0#])|(?P<point>\.)|(?P<plain>[-+$():!^&'~{}<>= ])""",
    re.IGNORECASE,
)
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a control character in a text
_UNCOMPUTED = "The formula has no computed value; open the file in Excel and save it."
_SECTIONS = re.compile(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")  # at ; outside of quotes
BATCH_ROWS = 1_000
_EXTRA = "install it with: pip install 'clade-graphql[files]'"


def excel_table(
    file: Path, sheet: str | None = None, header_row: int | None = None, column_names: Sequence[str] = ()
) -> Table:
    """The table of a sheet, the first visible one by default.

    Its header is the row with Excel's number `header_row`, by default the first that is not empty; or all rows are data
    of these columns. Raises BadInput where the workbook cannot be read, or the rows are wider than its first one.
    """
    try:
        from openpyxl import load_workbook
        from openpyxl.cell.read_only import EMPTY_CELL
    except ImportError:
        raise BadInput(f"Excel files need openpyxl; {_EXTRA}") from None
    with _readable(file):
        with zipfile.ZipFile(file) as archive:
            for name in filter(_READ.match, archive.namelist()):
                _Part(file, archive, name, is_sheet=False)
        warnings.filterwarnings("ignore", module="openpyxl")  # of what it does not keep, such as validations
        book = load_workbook(file.open("rb"), read_only=True, data_only=True, keep_links=False)
        sheets = {one.title: one for one in book.worksheets}
        if sheet is not None and sheet not in sheets:
            raise BadInput(f'{file.name} has no sheet "{sheet}"; it has {named([*sheets])}.')
        visible = [name for name, one in sheets.items() if one.sheet_state == "visible"]
        sheet = sheet or next(iter([*visible, *sheets]))
        with zipfile.ZipFile(file) as archive:
            part = _Part(file, archive, sheets[sheet]._worksheet_path, is_sheet=True)
        sheets[sheet].reset_dimensions()  # by which rows would be cut where they are wrong

    def cells() -> Iterator[tuple[int, list[object]]]:
        """The rows that are not empty, without empty cells at their ends."""
        with _readable(file):
            for number, row in enumerate(sheets[sheet].iter_rows(), start=1):
                values = [None if one is EMPTY_CELL else _cell(one, part.uncomputed) for one in row]
                while values and values[-1] in (None, ""):
                    values.pop()
                if values:
                    yield number, values

    names, start = list(column_names), 0
    if not names:
        found = next(((number, row) for number, row in cells() if header_row in (None, number)), None)
        if found is None and header_row is not None:
            raise BadInput(
                f'Row {header_row} of the sheet "{sheet}" of {file.name} is empty; --header-row names another.'
            )
        if found is None:
            if others := [name for name in sheets if name != sheet]:
                raise BadInput(f'The sheet "{sheet}" of {file.name} is empty; --sheet names another: {named(others)}.')
            raise BadInput(f'"{file.name}" has no header: the first row of its sheet must name the columns.')
        start, first = found
        names = [text_of(cell).strip() for cell in first]
        if header_row is None:
            _check_width(file, start, names, islice(cells(), 1, SAMPLE_ROWS))
    width = len(checked_header(file, names))

    def rows() -> Iterator[TableRow]:
        for number, row in cells():
            if number > start:
                yield number, row + [None] * (width - len(row)), None

    return Table(names, rows, part.merged_columns(names, start))


def shown_number(value: float, code: str) -> str | None:
    """A number as Excel shows it in a number format; None where that is not known, or rounded, or hidden.

    ECMA-376 Part 1, 18.8.30 and 18.8.31: sections for positive and negative numbers and zero, the digits 0 and #, one
    decimal point and literal characters. Thousands, percent, fractions, exponents and conditions are not known, as
    they depend on the language of who looks at them; nor is a number of more digits than Excel keeps.
    """
    number = Decimal(f"{value:.{MAX_DIGITS}g}")
    if not abs(number) < 10**MAX_DIGITS:
        return None
    sections = _SECTIONS.split(code)
    index = 1 if number < 0 < len(sections) - 1 else 2 if number == 0 and len(sections) > 2 else 0
    sign = "-" if number < 0 and index == 0 else ""
    if sections[index].casefold() in ("general", "@"):
        text = f"{abs(number):f}"
        is_short = len(text) <= MAX_GENERAL and (number == 0 or abs(number) >= Decimal("0.0001"))
        return sign + text if number == int(number) or is_short else None
    tokens = list(_TOKEN.finditer(sections[index]))
    kinds = [token.lastgroup for token in tokens]
    points = kinds.count("point")
    whole = kinds[: kinds.index("point")] if points else kinds
    places = kinds.count("digit") - whole.count("digit")
    marks = [token["digit"] for token in tokens if token["digit"]]
    scaled = abs(number).scaleb(places)
    if (
        _TOKEN.sub("", sections[index])
        or points > 1
        or not marks
        or scaled != int(scaled)
        or "#" in marks[-places or len(marks) :]
    ):
        return None
    least = max(places, len(marks) - marks.index("0") if "0" in marks else 0)
    digits = list(str(int(scaled)).lstrip("0").zfill(least))
    text = ""
    for token in reversed(tokens):
        if token["digit"]:
            marks.pop()
            text = ("".join(digits) if not marks else digits.pop() if digits else "") + text
        else:
            text = (token["quoted"] or token["escaped"] or token["point"] or token["plain"] or "") + text
    return (sign + text).strip() or None


def parquet_table(file: Path) -> Table:
    """The table of a file, with the fields of structures as columns such as address.city.

    Raises BadInput where it cannot be read.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise BadInput(f"Parquet files need pyarrow; {_EXTRA}") from None
    try:
        with parquet.ParquetFile(file) as opened:
            header = [name for field in opened.schema_arrow for name in _names(field)]
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error
    return Table(checked_header(file, header), lambda: _parquet_rows(file, header))


class _Part:
    """What a part of a workbook has, counted before it is read: the merged ranges of a sheet, and the cells with a
    formula that has no computed value.

    Raises BadInput for a part, or a row of a sheet, that takes too much memory, and for a document type: entities, by
    which a few lines of XML become gigabytes, need one, and ECMA-376 Part 2 allows none in a package. Raises ValueError
    for rows or cells that are not in order, of which the library would leave some out.
    """

    def __init__(self, file: Path, archive: zipfile.ZipFile, name: str, *, is_sheet: bool) -> None:
        self.merged: list[str] = []
        self.uncomputed: set[str] = set()
        self._row = self._elements = 0
        self._cell = self._formula = ""
        is_over = False  # the library reads a sheet that is not imported up to its dimension

        def start(tag: str, attributes: Mapping[str, str]) -> None:
            nonlocal is_over
            self._elements += 1
            if tag == _VALUE:
                self._formula = ""
            elif tag == _CELL:
                self._next(attributes.get("r", ""))
            elif tag == _FORMULA:
                self._formula = self._cell
            elif tag == _ROW:
                self._next("")
                row = int(float(attributes.get("r", self._row + 1)))
                if not self._row < row <= MAX_SHEET_ROWS:
                    raise ValueError(f"row {row} is after row {self._row}")
                self._row, self._elements = row, 0
            elif tag == _MERGED:
                self.merged.append(attributes["ref"])
            elif tag == _DIMENSION:
                is_over = not is_sheet

        def refuse(*_: object) -> None:
            raise BadInput(
                f"{file.name} has in {name} more than is read at once; remove what lies far from the table, or save "
                "the sheet as CSV."
            )

        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler, parser.StartDoctypeDeclHandler = start, refuse
        most_elements, most_bytes = MAX_TEXTS if name == _TEXTS else MAX_PART
        size = row = 0
        with archive.open(name) as content:
            while (block := content.read(1 << 16)) and not is_over:
                parser.Parse(block)
                size, row = (size + len(block) if row == self._row else 0), self._row
                if size > most_bytes or self._elements > most_elements or len(self.uncomputed) > MAX_SHEET_ROWS:
                    refuse()
        self._next("")

    def _next(self, cell: str) -> None:
        """Begin a cell, or end a row."""
        if self._formula:
            self.uncomputed.add(self._formula)
            self._formula = ""
        if cell and (len(cell), cell) <= (len(self._cell), self._cell):
            raise ValueError(f"the cell {cell} is after {self._cell}")
        self._cell = cell

    def merged_columns(self, names: Sequence[str], start: int) -> list[str]:
        """The names of the columns with cells that are merged over rows below the row `start`."""
        from openpyxl.utils import range_boundaries

        found = [range_boundaries(one) for one in self.merged]
        columns = {one for left, top, right, end in found if start < top < end for one in range(left, right + 1)}
        return [name for number, name in enumerate(names, start=1) if number in columns]


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turns the errors of a workbook that is none, or damaged, into BadInput."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # the library has no error of its own for what it does not expect
        said = shorten(str(error).split("\n")[0].rstrip("."), 200)
        raise BadInput(
            f"{file.name} cannot be read as an Excel workbook ({said}); save it as .xlsx in Excel, or the sheet as CSV."
        ) from error


def _cell(cell: Any, uncomputed: set[str]) -> object:
    """The value of a cell that is not empty; of a number or an error with what the sheet shows."""
    value = cell.value
    if isinstance(value, str) and cell.data_type != "e":
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value) if "_x" in value else value
    if isinstance(value, str):
        return ShownCell(None, None, f"The sheet has the error {value}; mend it, or write the value.")
    if value is None:
        is_formula = cell.data_type == "n" and cell.coordinate in uncomputed
        return ShownCell(None, None, _UNCOMPUTED) if is_formula else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    # Other numbers below 164 are formats of some languages, mostly of dates, for which the library says General.
    number = cell.style_array.numFmtId
    code = cell.number_format if number >= 164 or number in _formats() else f"number {number}"
    if code == "General" and isinstance(value, int) and abs(value) < 10**MAX_DIGITS:
        return value
    reason = f'{value} in the format "{code}" is not known as Excel shows it; format the column as text.'
    return ShownCell(value, shown_number(value, code), reason)


@cache
def _formats() -> Mapping[int, str]:
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    return cast(Mapping[int, str], BUILTIN_FORMATS)


def _check_width(file: Path, start: int, names: Sequence[str], sample: Iterator[tuple[int, list[object]]]) -> None:
    """Raise BadInput for a first row that is narrower than those below it, as a title above the header."""
    rows = list(sample)
    usual = sorted(len(row) for _, row in rows)[len(rows) // 2] if rows else 0
    if len(names) < usual:
        number, row = next((number, row) for number, row in rows if len(row) >= usual)
        raise BadInput(
            f"Row {start} of {file.name}, {named(names)}, has fewer columns than the rows below; --header-row {number} "
            f"takes {named([text_of(cell) for cell in row])} as the header."
        )


def _names(field: Any, prefix: str = "") -> Iterator[str]:
    import pyarrow

    if pyarrow.types.is_struct(field.type):
        for inner in field.type:
            yield from _names(inner, f"{prefix}{field.name}.")
    else:
        yield f"{prefix}{field.name}"


def _parquet_rows(file: Path, header: list[str]) -> Iterator[TableRow]:
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(file, pre_buffer=False) as opened:
            for batch in opened.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
                for fields in batch.to_pylist():
                    number += 1
                    values = map(flat(fields).get, header)
                    cells = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in values]
                    yield number, cells, None
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> BadInput:
    return BadInput(f"{file.name} cannot be read as Parquet: {str(error).splitlines()[0].rstrip('.')}.")
