"""Excel workbooks (.xlsx): one sheet, whose first row that is not empty is the header."""

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from store.errors import BadInput
from store.transfer.formats.row_reader import named, text_of
from store.transfer.formats.source import DAMAGED
from store.transfer.formats.table import Table, TableRow, checked_header

MAX_CELLS = 20_000_000  # of the rectangle around the cells of a sheet, which is in memory as a whole
_SHEETS = "xl/worksheets/"
_HEAD_BYTES = 4_000  # of a sheet: its dimension stands before its rows
_DIMENSION = re.compile(rb"""<(?:\w+:)?dimension\s[^>]*ref\s*=\s*["'](?:\w+:)?([A-Z]{1,3})([0-9]{1,7})["']""")
_OTHER_FORMATS = {"content.xml", "xl/workbook.bin"}  # of OpenDocument and .xlsb, which say no dimension
_EXTRA = "Excel files need python-calamine; install it with: pip install 'clade-graphql[files]'"


def excel_table(file: Path, sheet: str | None = None) -> Table:
    """The table of a sheet, the first one by default. Raises BadInput where the workbook cannot be read."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise BadInput(_EXTRA) from None
    _check(file)
    try:
        workbook = CalamineWorkbook.from_path(file)
        if sheet is not None and sheet not in workbook.sheet_names:
            raise BadInput(f'{file.name} has no sheet "{sheet}"; it has {named(workbook.sheet_names)}.')
        sheet = sheet or workbook.sheet_names[0]
        cells = workbook.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
    except (CalamineError, OSError, IndexError) as error:
        raise BadInput(f"{file.name} cannot be read as an Excel workbook: {error}.") from error
    start = next((number for number, row in enumerate(cells, start=1) if any(cell != "" for cell in row)), None)
    if start is None and len(workbook.sheet_names) > 1:
        others = named([name for name in workbook.sheet_names if name != sheet])
        raise BadInput(f'The sheet "{sheet}" of {file.name} is empty; --sheet names another: {others}.')
    if start is None:
        raise BadInput(f'"{file.name}" has no header: the first row of its sheet must name the columns.')
    names = [text_of(cell).strip() for cell in cells[start - 1]]
    while not names[-1]:
        names.pop()
    return Table(checked_header(file, names), lambda: _rows(enumerate(cells[start:], start=start + 1), len(names)))


def _rows(rows: Iterable[tuple[int, Sequence[object]]], width: int) -> Iterator[TableRow]:
    """The rows, without empty cells to the right of the header."""
    for number, cells in rows:
        is_wider = any(cell != "" for cell in cells[width:])
        yield number, cells if is_wider else cells[:width], None


def _check(file: Path) -> None:
    """Raise BadInput for another format, and for a sheet with cells so far from the others that it takes too much
    memory.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            if _OTHER_FORMATS & {*archive.namelist()}:
                raise BadInput(f"{file.name} is no .xlsx workbook; save it as one, or the sheet as CSV.")
            for name in archive.namelist():
                if name.startswith(_SHEETS):
                    with archive.open(name) as content:
                        _check_dimension(file, content.read(_HEAD_BYTES))
    except (OSError, ValueError, *DAMAGED) as error:
        raise BadInput(f"{file.name} cannot be read as an Excel workbook: {error}.") from error


def _check_dimension(file: Path, head: bytes) -> None:
    """Raise BadInput for too many cells up to the last one, where the beginning of a sheet names it."""
    found = _DIMENSION.search(head)
    columns, rows = (_column(found[1]), int(found[2])) if found else (0, 0)
    if columns * rows > MAX_CELLS:
        raise BadInput(
            f"{file.name} has a sheet of {rows:,} rows and {columns:,} columns, at most {MAX_CELLS:,} cells are "
            "read; remove cells that lie far from the others, or save the sheet as CSV."
        )


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number
