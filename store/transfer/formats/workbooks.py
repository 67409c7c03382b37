"""Tables of binary files: Excel workbooks (.xlsx), row by row by openpyxl, and Parquet, in batches by pyarrow."""

import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from store.errors import BadInput, shorten
from store.transfer.formats.columns import ShownCell, named, text_of
from store.transfer.formats.shapes import TITLE_ROWS, check_titles
from store.transfer.formats.tables import Table, TableRow, checked_header, flat

MAX_SHEET_ROWS = 1_048_576  # as many as Excel has
MAX_DIGITS = 15  # of a number, of which Excel keeps no more
MAX_GENERAL, MIN_GENERAL = 11, Decimal("0.0001")  # characters and value that the format General shows as they are
_VALUE, _FORMULA, _ROW, _MERGED = [
    f"{{http://schemas.openxmlformats.org/spreadsheetml/2006/main}}{tag}" for tag in "v f row mergeCell".split()
]
_SECTION_END = re.compile(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")  # outside of quotes
_TOKEN = re.compile(
    r"""(?P<mark>[0#.])|"([^"]*)"|\\(.)|([-+$(): ])"""
    r"""|_.|\[(?:\$-[0-9a-f]{1,4}|black|blue|cyan|green|magenta|red|white|yellow|color ?[0-9]+)\]""",
    re.IGNORECASE,
)
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a control character in a text
_UNCOMPUTED = "The formula has no computed value; open the file in Excel and save it."
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
        from openpyxl.utils import range_boundaries
    except ImportError:
        raise BadInput(f"Excel files need openpyxl; {_EXTRA}") from None
    with _readable(file), zipfile.ZipFile(file) as archive:
        warnings.filterwarnings("ignore", module="openpyxl")  # of what it does not keep, such as validations
        book = load_workbook(file.open("rb"), read_only=True, data_only=True, keep_links=False)
        sheets = {one.title: one for one in book.worksheets}
        if sheet is not None and sheet not in sheets:
            raise BadInput(f'{file.name} has no sheet "{sheet}"; it has {named([*sheets])}.')
        name = sheet or next(iter([*[name for name in sheets if sheets[name].sheet_state == "visible"], *sheets]))
        with archive.open(sheets[name]._worksheet_path) as content:
            found, uncomputed = _facts(content)
        sheets[name].reset_dimensions()  # by which rows would be cut where they are wrong
        ranges = [range_boundaries(one) for one in found]

    def rows(first: int) -> Iterator[TableRow]:
        """The rows from one on that are not empty, without empty cells at their ends."""
        with _readable(file):
            for number, row in enumerate(sheets[name].iter_rows(), start=1):
                cells = [None if one is EMPTY_CELL else _cell(one, uncomputed) for one in row]
                while cells and cells[-1] in (None, ""):
                    cells.pop()
                if cells and number >= first:
                    yield number, cells, None, None

    start, header = 0, list(column_names)
    if not header:
        sample = [(number, [*map(text_of, row)]) for number, row, *_ in islice(rows(header_row or 1), TITLE_ROWS)]
        if header_row and (not sample or sample[0][0] != header_row):
            raise BadInput(f'Row {header_row} of sheet "{name}" of {file.name} is empty; --header-row names another.')
        if not sample:
            if others := [other for other in sheets if other != name]:
                raise BadInput(f'The sheet "{name}" of {file.name} is empty; --sheet names another: {named(others)}.')
            raise BadInput(f'"{file.name}" has no header: the first row of its sheet must name the columns.')
        if not header_row:
            check_titles(f"Row {{}} of {file.name}", sample, are_padded=True)
        start, header = sample[0][0], [text.strip() for text in sample[0][1]]
    columns = {one for left, top, right, end in ranges if start < top < end for one in range(left, right + 1)}
    merged = [one for number, one in enumerate(header, start=1) if number in columns]
    return Table(checked_header(file, header), lambda: rows(start + 1), merged)


def shown_number(value: float, code: str) -> str | None:
    """A number as Excel shows it in a number format; None where that is not known, or rounded, or hidden.

    ECMA-376 Part 1, 18.8.30 and 18.8.31: sections for positive and negative numbers and zero, the digits 0 and #, a
    decimal point and literal characters. Thousands, percent, fractions, exponents and conditions are not known, as
    most of them depend on the language of who looks at them; nor is a number of more digits than Excel keeps.
    """
    number = Decimal(f"{value:.{MAX_DIGITS}g}")
    sections = _SECTION_END.split(code)
    index = 1 if number < 0 < len(sections) - 1 else 2 if number == 0 and len(sections) > 2 else 0
    section, sign = sections[index], "-" if number < 0 and index == 0 else ""
    number = abs(number)
    if section.casefold() in ("general", "@"):
        text = f"{number:f}"
        is_whole = number < 10**MAX_DIGITS and number == int(number)
        return sign + text if is_whole or (number > MIN_GENERAL and len(text) <= MAX_GENERAL) else None
    tokens = list(_TOKEN.finditer(section))
    marks = "".join([token["mark"] or "" for token in tokens])
    whole, _, fraction = marks.partition(".")
    if _TOKEN.sub("", section) or not re.fullmatch(r"(#*0+|#+)(\.0+)?", marks) or number >= 10**MAX_DIGITS:
        return None
    scaled = number.scaleb(len(fraction))
    if scaled != int(scaled):
        return None
    digits = str(int(scaled)).lstrip("0").zfill(len(whole.lstrip("#")) + len(fraction))
    left, text = len(whole + fraction), ""
    for token in reversed(tokens):
        shown = "".join(filter(None, token.groups()))
        if token["mark"] in ("0", "#"):
            left -= 1
            digits, shown = (digits[:-1], digits[-1:]) if left else ("", digits)
        text = shown + text
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
    with _readable(file, "Parquet"), parquet.ParquetFile(file) as opened:
        fields = [*opened.schema_arrow]
        while any(pyarrow.types.is_struct(field.type) for field in fields):
            fields = [inner for field in fields for inner in field.flatten()]
        header = [field.name for field in fields]

    def rows() -> Iterator[TableRow]:
        with _readable(file, "Parquet"), parquet.ParquetFile(file, pre_buffer=False) as opened:
            batches = opened.iter_batches(batch_size=BATCH_ROWS, use_threads=False)
            for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), start=1):
                values = map(flat(row).get, header)
                cells = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in values]
                yield number, cells, None, None

    return Table(checked_header(file, header), rows)


def _facts(sheet: IO[bytes]) -> tuple[list[str], set[str]]:
    """The merged ranges of a sheet, and its cells with a formula that has no computed value.

    Raises ValueError for rows or cells that are not in order, of which the library would leave some out.
    """
    merged: list[str] = []
    uncomputed: set[str] = set()
    last = 0
    for _, element in ElementTree.iterparse(sheet):  # noqa: S314 - expat bounds the expansion of entities
        if element.tag == _MERGED:
            merged.append(element.attrib["ref"])
        elif element.tag == _ROW:
            row = int(float(element.get("r", last + 1)))
            cells = [one.attrib["r"] for one in element if "r" in one.attrib]
            if not last < row <= MAX_SHEET_ROWS or cells != sorted({*cells}, key=lambda cell: (len(cell), cell)):
                raise ValueError(f"row {row} or a cell in it is not in order")
            formulas = [one for one in element if one.find(_FORMULA) is not None]
            uncomputed |= {one.get("r", "") for one in formulas if one.find(_VALUE) is None}
            last = row
            element.clear()
    return merged, uncomputed


@contextmanager
def _readable(file: Path, what: str = "an Excel workbook") -> Iterator[None]:
    """Turns the errors of a file that is damaged, or of another format, into BadInput."""
    try:
        yield
    except BadInput:
        raise
    except Exception as error:  # the libraries have no errors of their own for what they do not expect
        said = shorten(str(error).split("\n")[0].rstrip("."), 200)
        advice = "write it again, or as CSV" if what == "Parquet" else "save it as .xlsx in Excel, or the sheet as CSV"
        raise BadInput(f"{file.name} cannot be read as {what} ({said}); {advice}.") from error


def _cell(cell: Any, uncomputed: set[str]) -> object:
    """The value of a cell that is not empty; of a number or an error with what the sheet shows."""
    value = cell.value
    if isinstance(value, str):
        if cell.data_type == "e":
            return ShownCell(None, None, f"The sheet has the error {value}; mend it, or write the value.")
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value) if "_x" in value else value
    if value is None:
        is_formula = cell.data_type == "n" and cell.coordinate in uncomputed
        return ShownCell(None, None, _UNCOMPUTED) if is_formula else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    # Other numbers below 164 are formats of some languages, mostly of dates, for which the library says General.
    number = cell.style_array.numFmtId
    code = cell.number_format if number >= 164 or number in BUILTIN_FORMATS else f"number {number}"
    if code == "General" and isinstance(value, int) and abs(value) < 10**MAX_DIGITS:
        return value
    reason = f'{value} in the format "{code}" is not known as Excel shows it; format the column as text.'
    return ShownCell(value, shown_number(value, code), reason)
