"""Excel workbooks (.xlsx): one sheet, whose first row that is not empty is the header."""

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from store.errors import BadInput
from store.transfer.formats.row_reader import named, text_of
from store.transfer.formats.table import Table, TableRow

MAX_UNPACKED_BYTES = 500_000_000  # of the XML in a workbook, which is in memory as a whole
_EXTRA = "Excel files need python-calamine; install it with: pip install 'clade-graphql[files]'"


def excel_table(file: Path, sheet: str | None = None) -> Table:
    """The table of a sheet, the first one by default. Raises BadInput where the workbook cannot be read."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise BadInput(_EXTRA) from None
    _check_size(file)
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
    return Table(names, lambda: _rows(enumerate(cells[start:], start=start + 1), len(names)))


def sheets(file: Path) -> list[str]:
    """The names of the sheets of a workbook that can be read."""
    from python_calamine import CalamineWorkbook

    return list(CalamineWorkbook.from_path(file).sheet_names)


def _rows(rows: Iterable[tuple[int, Sequence[object]]], width: int) -> Iterator[TableRow]:
    """The rows, without empty cells to the right of the header."""
    for number, cells in rows:
        is_wider = any(cell != "" for cell in cells[width:])
        yield number, cells if is_wider else cells[:width], None


def _check_size(file: Path) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(info.file_size for info in archive.infolist())
    except (OSError, zipfile.BadZipFile) as error:
        raise BadInput(f"{file.name} cannot be read as an Excel workbook: {error}.") from error
    if size > MAX_UNPACKED_BYTES:
        raise BadInput(
            f"{file.name} has {size:,} bytes unpacked, at most {MAX_UNPACKED_BYTES:,} are read; save the sheet as CSV."
        )
