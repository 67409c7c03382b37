"""Excel workbooks (.xlsx): one sheet, whose first row that is not empty is the header."""

import re
import zipfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from store.errors import BadInput
from store.transfer.formats.files import BLOCK_BYTES, DAMAGED
from store.transfer.formats.lines import MAX_LINE_BYTES
from store.transfer.formats.table_rows import Table, TableRow, checked_header, named, text_of

MAX_UNPACKED_BYTES = 500_000_000  # of the files in a workbook
MAX_CELLS = 20_000_000  # of the rectangle around the cells of a sheet, which is in memory as a whole
_CELL = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
_TEXT_CELL = re.compile(rb"""\bt\s*=\s*["']s["'][^<]*<(?:\w+:)?v[^<>]*>\s*([0-9]{1,9})""")
_END_OF_TEXT = re.compile(rb"</(?:\w+:)?si\s*>")
_SHARED_TEXTS = "xl/sharedstrings.xml"
OVERLAP_BYTES = 40_000  # of two blocks, in which a reference may be cut; more than the text of a cell
_ANY_SIZE = 1 << 60
_OTHER_FORMATS = {"content.xml", "xl/workbook.bin"}  # of OpenDocument and .xlsb, which are not checked here
_EXTRA = "Excel files need python-calamine; install it with: pip install 'clade-graphql[files]'"


def excel_table(file: Path, sheet: str | None = None, header: Sequence[str] = ()) -> Table:
    """The table of a sheet, the first one by default. Raises BadInput where the workbook cannot be read.

    A `header` names the columns of a sheet without one.
    """
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
    if header and [*header] != names[: len(header)]:
        names, start = [*header], start - 1
    while not names[-1]:
        names.pop()
    return Table(checked_header(file, names), lambda: _rows(enumerate(cells[start:], start=start + 1), len(names)))


def _rows(rows: Iterable[tuple[int, Sequence[object]]], width: int) -> Iterator[TableRow]:
    """The rows, without empty cells to the right of the header."""
    for number, cells in rows:
        is_wider = any(cell != "" for cell in cells[width:])
        yield number, cells if is_wider else cells[:width], None


def _check(file: Path) -> None:
    """Raise BadInput for a workbook that would take too much memory, whatever sizes it says that it has."""
    size = 0
    try:
        with zipfile.ZipFile(file) as archive:
            if _OTHER_FORMATS & {*archive.namelist()}:
                raise BadInput(f"{file.name} is no .xlsx workbook; save it as one, or the sheet as CSV.")
            for info in archive.infolist():
                info.file_size = _ANY_SIZE  # zipfile reads no more than this, others read what there is
            texts = _text_sizes(file, archive)
            for info in archive.infolist():
                with archive.open(info) as content:
                    size += _checked_size(file, content, size, texts)
    except (OSError, ValueError, *DAMAGED) as error:
        raise BadInput(f"{file.name} cannot be read as an Excel workbook: {error}.") from error


def _text_sizes(file: Path, archive: zipfile.ZipFile) -> "array[int]":
    """The bytes of each shared text with its markup; any number of cells can refer to it. Raises BadInput."""
    sizes = array("L")
    size, rest = 0, b""
    for info in archive.infolist():
        if info.filename.lower() != _SHARED_TEXTS:
            continue
        with archive.open(info) as content:
            while block := content.read(BLOCK_BYTES):
                size += len(block)
                *whole, rest = _END_OF_TEXT.split(rest + block)
                for one in whole:
                    sizes.extend([0] * one.count(b"<si/>"))
                    sizes.append(len(one))
                if size > MAX_UNPACKED_BYTES or len(rest) > MAX_LINE_BYTES:
                    raise BadInput(f"{file.name} has too much text; save the sheet as CSV.")
    return sizes


def _checked_size(file: Path, content: IO[bytes], before: int, texts: "array[int]") -> int:
    """The bytes of a file in a workbook, after so many others. Raises BadInput for too many of them, or of cells, or of
    texts in cells.
    """
    size = columns = rows = text_size = 0
    rest = b""
    while block := content.read(BLOCK_BYTES):
        size += len(block)
        if before + size > MAX_UNPACKED_BYTES:
            raise BadInput(f"{file.name} has more than {MAX_UNPACKED_BYTES:,} bytes unpacked; save the sheet as CSV.")
        for letters, row in _CELL.findall(rest + block):
            columns, rows = max(columns, _column(letters)), max(rows, int(row))
        if columns * rows > MAX_CELLS:
            raise BadInput(
                f"{file.name} has a sheet of {rows:,} rows and {columns:,} columns, at most {MAX_CELLS:,} cells are "
                "read; remove cells that lie far from the others, or save the sheet as CSV."
            )
        numbers = map(int, _TEXT_CELL.findall(rest + block))
        text_size += sum(texts[number] for number in numbers if number < len(texts))
        if text_size > MAX_UNPACKED_BYTES:
            raise BadInput(
                f"{file.name} has more than {MAX_UNPACKED_BYTES:,} bytes in the cells of a sheet; save it as CSV."
            )
        rest = (rest + block)[-OVERLAP_BYTES:]
        if rest.isspace():
            raise BadInput(f"{file.name} cannot be read as an Excel workbook: it has more than {len(rest):,} spaces.")
    return size


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number
