"""Tables of binary files: Excel workbooks (.xlsx), by python-calamine, and Parquet, by pyarrow."""

import re
import zipfile
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from store.errors import BadInput
from store.transfer.formats.columns import named, text_of
from store.transfer.formats.source import DAMAGED
from store.transfer.formats.tables import Table, TableRow, checked_header, flat

MAX_CELLS = 20_000_000  # of the rectangle around the cells of a sheet, which is in memory as a whole
_SHEETS = "xl/worksheets/"
_HEAD_BYTES = 4_000  # of a sheet: its dimension stands before its rows
_DIMENSION = re.compile(rb"""<(?:\w+:)?dimension\s[^>]*ref\s*=\s*["'](?:\w+:)?([A-Z]{1,3})([0-9]{1,7})["']""")
_OTHER_FORMATS = {"content.xml", "xl/workbook.bin"}  # of OpenDocument and .xlsb, which say no dimension
BATCH_ROWS = 1_000
_EXTRA = "install it with: pip install 'clade-graphql[files]'"


def excel_table(file: Path, sheet: str | None = None) -> Table:
    """The table of a sheet, the first one by default; its first row that is not empty is the header.

    Raises BadInput where the workbook cannot be read.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise BadInput(f"Excel files need python-calamine; {_EXTRA}") from None
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
    if start is None:
        if others := [name for name in workbook.sheet_names if name != sheet]:
            raise BadInput(f'The sheet "{sheet}" of {file.name} is empty; --sheet names another: {named(others)}.')
        raise BadInput(f'"{file.name}" has no header: the first row of its sheet must name the columns.')
    names = [text_of(cell).strip() for cell in cells[start - 1]]
    while not names[-1]:
        names.pop()
    width = len(checked_header(file, names))

    def rows() -> Iterator[TableRow]:
        """The rows, without empty cells to the right of the header."""
        for number, row in enumerate(cells[start:], start=start + 1):
            is_wider = any(cell != "" for cell in row[width:])
            yield number, row if is_wider else row[:width], None

    return Table(names, rows)


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


def _check(file: Path) -> None:
    """Raise BadInput for another format, and for a sheet with cells so far from the others that it takes too much
    memory, where its beginning names the last cell.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            if _OTHER_FORMATS & {*archive.namelist()}:
                raise BadInput(f"{file.name} is no .xlsx workbook; save it as one, or the sheet as CSV.")
            for name in archive.namelist():
                if not name.startswith(_SHEETS):
                    continue
                with archive.open(name) as content:
                    found = _DIMENSION.search(content.read(_HEAD_BYTES))
                if found is None:
                    continue
                columns, rows = reduce(lambda number, letter: 26 * number + letter - 64, found[1], 0), int(found[2])
                if columns * rows > MAX_CELLS:
                    raise BadInput(
                        f"{file.name} has a sheet of {rows:,} rows and {columns:,} columns, at most {MAX_CELLS:,} "
                        "cells are read; remove cells that lie far from the others, or save the sheet as CSV."
                    )
    except (OSError, ValueError, *DAMAGED) as error:
        raise BadInput(f"{file.name} cannot be read as an Excel workbook: {error}.") from error


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
                    yield (
                        number,
                        [one.decode(errors="replace") if isinstance(one, bytes) else one for one in values],
                        None,
                    )
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> BadInput:
    return BadInput(f"{file.name} cannot be read as Parquet: {str(error).splitlines()[0].rstrip('.')}.")
