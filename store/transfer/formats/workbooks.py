"""Tables of binary files: Excel workbooks (.xlsx), row by row by openpyxl, and Parquet, in batches by pyarrow."""

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from store.errors import BadInput, install_hint, shorten
from store.transfer.formats.cells import ShownCell, named, text_of
from store.transfer.formats.source import Doubt, Guess
from store.transfer.formats.table import INDENT, TITLE_ROWS, Table, TableRow, bounded_row, check_titles, flat
from store.transfer.formats.workbook_parts import MAX_CELL_CHARACTERS, MAX_SHEET_COLUMNS, Parts, SheetScan, TextScan

MAX_FORMAT_CHARACTERS = 255  # of a number format of Excel
MAX_DIGITS = 15  # of a number, of which Excel keeps no more
MAX_GENERAL, MIN_GENERAL = 11, Decimal("0.0001")  # characters and value that the format General shows as they are
_SECTION_END = re.compile(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")  # outside of quotes
_TOKEN = re.compile(
    r"""(?P<mark>[0#.])|"([^"]*)"|\\(.)|([-+$(): ])"""
    r"""|_.|\[(?:\$-[0-9a-f]{1,4}|black|blue|cyan|green|magenta|red|white|yellow|color ?[0-9]+)\]""",
    re.IGNORECASE,
)
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a control character in a text
_LEFT = (None, "general", "left", "distributed")  # alignments in which an indent is before the text
_GROUPS = (
    "the sheet has groups of rows, and each may belong to the row below it; write the rows above their details, and "
    'clear "Summary rows below detail" in Data, Outline of Excel'
)
_UNCOMPUTED = "The formula has no computed value; open the file in Excel and save it."
BATCH_ROWS, BATCH_BYTES = 1_000, 16_000_000  # of Parquet


def excel_table(
    file: Path, sheet: str | None = None, header_row: int | None = None, column_names: Sequence[str] = (),
    taken: Collection[Guess] = (),
) -> Table:  # fmt: skip
    """The table of a sheet, the first visible one by default.

    Its header is the row with Excel's number `header_row`, by default the first that is not empty; or all rows are data
    of these columns. Where cells of the header are merged with those below, that row has the other names. Raises
    BadInput where the workbook cannot be read, or the rows are wider than its first one, and Doubt, unless that is
    `taken`, for a first sheet that is about the others.
    """
    with _readable(file):
        archive, sheets = _opened(file)
        from openpyxl.cell.read_only import EMPTY_CELL

        if sheet is not None and sheet not in sheets:
            raise BadInput(f'{file.name} has no sheet "{sheet}"; it has {named([*sheets])}.')
        name = sheet or next(iter([*[name for name in sheets if sheets[name].sheet_state == "visible"], *sheets]))

        @cache
        def scanned(one: str) -> SheetScan:
            with archive.open(sheets[one]._worksheet_path) as content:
                return SheetScan(content)

        found = scanned(name)
        if len(sheets) > 1 and not (sheet or header_row or column_names or Guess.SHAPE in taken):
            _see_cover(file, name, sheets, scanned)
        sheets[name].reset_dimensions()  # by which rows would be cut where they are wrong
        book = sheets[name].parent
        indents = [int(one.indent) if one.indent and one.horizontal in _LEFT else 0 for one in book._alignments]
        depths_of = [indents[style.alignmentId] for style in book._cell_styles]

    def rows(first: int) -> Iterator[TableRow]:
        """The rows from one on that are not empty, without empty cells at their ends."""
        with _readable(file):
            # What comes after the rows, such as links, is not read: the library would keep it.
            for number, row in enumerate(islice(sheets[name].iter_rows(), found.last), start=1):
                cells = [None if one is EMPTY_CELL else _cell(one, found.uncomputed) for one in row]
                while cells and cells[-1] in (None, ""):
                    cells.pop()
                if cells and number >= first:
                    depths = [0 if one is EMPTY_CELL else depths_of[one._style_id] for one in row]
                    depths[_first_text(cells)] += max(found.levels[number] - 1, 0)
                    yield bounded_row(number, [*map(_indented, cells, depths)] if any(depths) else cells)

    start, header = 0, list(column_names)
    if not header:
        start, header = _header(file, name, [*sheets], header_row, found, rows(header_row or 1))
    columns = {*found.merged(start)}
    merged = [one for number, one in enumerate(header, start=1) if number in columns]
    unclear = _GROUPS if found.are_details_above(start) else ""
    return Table(file.name, header, lambda: rows(start + 1), merged, header_row=start or None, unclear=unclear)


def _header(
    file: Path, name: str, sheets: Sequence[str], header_row: int | None, found: SheetScan, rows: Iterable[TableRow]
) -> tuple[int, list[str]]:
    """The number of the last row of the header, and the names of the columns, of a sheet and its rows from the given
    header on. Raises BadInput where it has none, or a title.
    """
    sample = [(number, [*map(text_of, row)]) for number, row, *_ in islice(rows, TITLE_ROWS)]
    if header_row and (not sample or sample[0][0] != header_row):
        raise BadInput(f'Row {header_row} of sheet "{name}" of {file.name} is empty; --header-row names another.')
    if not sample:
        if others := [other for other in sheets if other != name]:
            raise BadInput(f'The sheet "{name}" of {file.name} is empty; --sheet names another: {named(others)}.')
        raise BadInput(f'"{file.name}" has no header: the first row of its sheet must name the columns.')
    if not header_row:
        check_titles(f"Row {{}} of {file.name}", sample, are_padded=True)
    start, header = sample[0][0], [text.strip() for text in sample[0][1]]
    width = min(found.widths.get(start, 0), MAX_SHEET_COLUMNS)  # of a header whose last name is over several cells
    header += [""] * (width - len(header))
    below = [text.strip() for number, row in sample[1:2] if number == found.ends.get(start) for text in row]
    if any(name and not above for above, name in zip_longest(header, below, fillvalue="")):
        return start + 1, [one or above for above, one in zip_longest(header, below, fillvalue="")]
    return start, header


def _see_cover(file: Path, name: str, sheets: Mapping[str, Any], scanned: Callable[[str], SheetScan]) -> None:
    """Raise Doubt where a sheet has texts beside a few names, below a title, and another one is a wider table."""

    def widths(one: str) -> list[int]:
        """The numbers of cells with values in the first rows."""
        last = min(scanned(one).last, TITLE_ROWS)
        sheets[one].reset_dimensions()
        rows = islice(sheets[one].iter_rows(values_only=True), last)
        return [sum(cell not in (None, "") for cell in row) for row in rows]

    def is_table(one: str) -> bool:
        found = widths(one)
        return sum(width > 2 for width in found) > max(2, len(found) / 2)

    own = widths(name)
    if next(filter(None, own), 0) != 1 or max(own) != 2 or len(own) == TITLE_ROWS:
        return
    shown = [one for one in sheets if one != name and sheets[one].sheet_state == "visible"]
    if tables := [one for one in shown if is_table(one)]:
        seen = f'The first sheet of {file.name}, "{shorten(name)}", has a title and texts, and no table as another has'
        below = ("--sheet", name, "--header-row", str(own.index(2) + 1))  # where the title is that of a table
        raise Doubt(Guess.SHAPE, seen, *[("--sheet", one) for one in tables], below, other="--sheet names another")


def _first_text(cells: Sequence[object]) -> int:
    """The place of the first text of a row, of its first number if it has none."""
    kinds = (str, int | float | ShownCell)
    return next((at for kind in kinds for at, cell in enumerate(cells) if isinstance(cell, kind) and cell != ""), 0)


def _indented(cell: object, depth: int) -> object:
    """A cell with blanks before its text, as the sheet shows it indented, or in a group of rows."""
    blanks = 2 * depth * INDENT
    if isinstance(cell, ShownCell):
        return cell._replace(text=cell.text and blanks + cell.text)
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return ShownCell(cell, blanks + text_of(cell))
    return blanks + cell if isinstance(cell, str) and cell else cell


def _opened(file: Path) -> tuple[Parts, dict[str, Any]]:
    """A workbook whose shared texts are within Excel's bounds, and its sheets by name, not looked through yet."""
    try:
        from openpyxl.reader.excel import ExcelReader
        from openpyxl.xml.constants import SHARED_STRINGS, WORKSHEET_TYPE
    except ImportError:
        raise BadInput(f"Excel files need openpyxl; {install_hint('openpyxl')}") from None
    warnings.filterwarnings("ignore", module="openpyxl")  # of what it does not keep, such as validations
    with file.open("rb") as opened:
        reader = ExcelReader(opened, read_only=True, data_only=True, keep_links=False)
    reader.archive = archive = Parts(file)
    reader.read_manifest()
    archive.postponed = {one.PartName[1:] for one in reader.package.findall(WORKSHEET_TYPE)}
    archive.streamed = {one.PartName[1:] for one in reader.package.findall(SHARED_STRINGS)} | archive.postponed
    for part in archive.streamed - archive.postponed:
        with archive.open(part) as content:
            TextScan(content)
    reader.read()  # which would look through each sheet that does not say its size
    archive.postponed.clear()
    return archive, {one.title: one for one in reader.wb.worksheets}


def shown_number(value: float, code: str) -> str | None:
    """A number as Excel shows it in a number format; None where that is not known, or rounded, or hidden.

    ECMA-376 Part 1, 18.8.30 and 18.8.31: sections for positive and negative numbers and zero, the digits 0 and #, a
    decimal point and literal characters. Thousands, percent, fractions, exponents and conditions are not known, as
    most of them depend on the language of who looks at them; nor is a number of more digits than Excel keeps.
    """
    if len(code) > MAX_FORMAT_CHARACTERS:
        return None
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
        raise BadInput(f"Parquet files need pyarrow; {install_hint('pyarrow')}") from None
    with _readable(file, "Parquet"), parquet.ParquetFile(file) as opened:
        schema = opened.schema_arrow
        fields = [*schema]
        while any(pyarrow.types.is_struct(field.type) for field in fields):
            fields = [inner for field in fields for inner in field.flatten()]
        header = [field.name for field in fields]

    def rows() -> Iterator[TableRow]:
        with _readable(file, "Parquet"), _parquet_file(file) as opened:
            for number, row in enumerate(_parquet_rows(opened, schema), start=1):
                values = map(flat(row).get, header)
                cells = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in values]
                yield bounded_row(number, cells)

    return Table(file.name, header, rows)


def _parquet_file(file: Path) -> Any:
    """A file whose texts stay in dictionaries where they are written so: there a long one can be in every row."""
    from pyarrow import parquet

    schema = parquet.read_metadata(file).schema
    texts = [schema.column(n).path for n in range(len(schema)) if str(schema.column(n).logical_type) == "String"]
    return parquet.ParquetFile(file, pre_buffer=False, read_dictionary=texts)


def _parquet_rows(opened: Any, plain: Any) -> Iterator[dict[str, Any]]:
    """The rows of a file, in a schema without dictionaries, by batches of about `BATCH_BYTES` or of one row."""
    import pyarrow

    for group in range(opened.num_row_groups):
        metadata = opened.metadata.row_group(group)
        size = BATCH_BYTES * metadata.num_rows // max(metadata.total_byte_size, 1)
        for batch in opened.iter_batches(min(max(size, 1), BATCH_ROWS), row_groups=[group], use_threads=False):
            step = max(BATCH_BYTES // sum(_most_bytes(column) for column in batch.columns), 1)
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                if step < batch.num_rows:  # a cast has all values of lists, also of those that a slice leaves out
                    part = part.take(pyarrow.array(range(len(part))))
                yield from part.cast(plain).to_pylist()


def _most_bytes(column: Any) -> int:
    """A bound of the bytes that one value of a column has."""
    import pyarrow
    from pyarrow import compute

    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        return _most_bytes(column.dictionary)
    if pyarrow.types.is_struct(kind):
        return sum(map(_most_bytes, column.flatten()))
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        return (compute.max(compute.list_value_length(column)).as_py() or 0) * _most_bytes(column.flatten()) + 1
    if pyarrow.types.is_string(kind) or pyarrow.types.is_binary(kind) or pyarrow.types.is_large_string(kind):
        return (compute.max(compute.binary_length(column)).as_py() or 0) + 1
    return int(column.nbytes) // max(len(column), 1) + 1


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
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value) if "_x" in value else value
        if len(text) > MAX_CELL_CHARACTERS:
            return ShownCell(
                None, None, f"It has {len(text):,} characters; Excel has at most {MAX_CELL_CHARACTERS:,} in a cell."
            )
        return text
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
    reason = f'{value} in the format "{shorten(code)}" is not known as Excel shows it; format the column as text.'
    return ShownCell(value, shown_number(value, code), reason)
