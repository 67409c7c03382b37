"""Tables of binary files: Excel workbooks (.xlsx) and Parquet.

A Parquet file of 100 KB can have gigabytes of values: a long text that many rows refer to, a list of a million equal
numbers. So it is read in batches, texts as references to a dictionary, and rows become Python values a few megabytes
at a time.
"""

import re
import zipfile
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

from store.errors import BadInput
from store.transfer.formats.columns import named, text_of
from store.transfer.formats.lines import MAX_LINE_BYTES
from store.transfer.formats.source import DAMAGED
from store.transfer.formats.tables import Table, TableRow, checked_header, flat

MAX_CELLS = 20_000_000  # of the rectangle around the cells of a sheet, which is in memory as a whole
_SHEETS = "xl/worksheets/"
_HEAD_BYTES = 4_000  # of a sheet: its dimension stands before its rows
_DIMENSION = re.compile(rb"""<(?:\w+:)?dimension\s[^>]*ref\s*=\s*["'](?:\w+:)?([A-Z]{1,3})([0-9]{1,7})["']""")
_OTHER_FORMATS = {"content.xml", "xl/workbook.bin"}  # of OpenDocument and .xlsb, which say no dimension
BATCH_ROWS = 1_000
MAX_BATCH_BYTES = 256_000_000  # of a batch as Arrow has it
MAX_VALUES = 20_000_000  # of a column of lists in one row group, which may have few bytes
MAX_CHUNK_BYTES, MAX_RATIO = 256_000_000, 100  # of a column in one row group that is compressed by more than this
NUMBER_BYTES = 16  # of the widest number, date or decimal, nearly
MAX_VALUE_BYTES = 4_000_000  # as many as a cell of CSV can have
_TOO_LONG = f"The row has more than {MAX_LINE_BYTES:,} bytes, or a value of more than {MAX_VALUE_BYTES:,}."
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
            _check_groups(file, opened.metadata)
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


def _check_groups(file: Path, metadata: Any) -> None:
    """Raise BadInput for a row group of which a batch would take too much memory, by what the file says of it."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for index in range(group.num_columns):
            chunk = group.column(index)
            size, packed = chunk.total_uncompressed_size, chunk.total_compressed_size
            is_list = metadata.schema.column(index).max_repetition_level > 0
            if (is_list and chunk.num_values > MAX_VALUES) or size > max(MAX_CHUNK_BYTES, MAX_RATIO * packed):
                raise BadInput(
                    f'Column "{chunk.path_in_schema}" of {file.name} has {chunk.num_values:,} values and {size:,} '
                    "bytes in one row group, which is too much to be read at once; write smaller row groups."
                )


def _batch_rows(metadata: Any) -> int:
    """The rows of a batch: fewer where values that cannot be read as a dictionary may be long."""
    fixed = [metadata.schema.column(index).length or 0 for index in range(metadata.num_columns)]
    worst = sum(fixed)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = map(group.column, range(group.num_columns))
        prefixed = [one.total_uncompressed_size for one in chunks if "DELTA_BYTE_ARRAY" in one.encodings]
        worst = max(worst, sum(fixed) + sum(prefixed))
    return max(1, min(BATCH_ROWS, MAX_BATCH_BYTES // max(1, worst)))


def _parquet_rows(file: Path, header: list[str]) -> Iterator[TableRow]:
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(file) as plain:
            columns = [plain.metadata.schema.column(index) for index in range(plain.metadata.num_columns)]
            texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
            size, schema = _batch_rows(plain.metadata), plain.schema_arrow
        with parquet.ParquetFile(file, read_dictionary=texts, pre_buffer=False) as opened:
            for batch in opened.iter_batches(batch_size=size, use_threads=False):
                for fields in _values(batch, schema):
                    number += 1
                    if fields is None:
                        yield number, [None] * len(header), _TOO_LONG
                        continue
                    values = map(flat(fields).get, header)
                    cells = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in values]
                    yield number, cells, None
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _values(batch: Any, schema: Any) -> Iterator[dict[str, Any] | None]:
    """The rows of a batch as Python values, a few megabytes of them at a time; None for one that is too large."""
    import pyarrow

    if sum(_size(column, is_exact=False) for column in batch.columns) <= MAX_LINE_BYTES:
        # Nearly all batches: without dictionaries, from which Arrow makes Python values slowly.
        yield from pyarrow.Table.from_batches([batch]).cast(schema).to_pylist()
        return
    rows = zip(*map(_sizes, batch.columns), strict=True)
    sizes = [MAX_LINE_BYTES + 1 if max(row) > MAX_VALUE_BYTES else sum(row) for row in rows]
    start = 0
    while start < len(sizes):
        end, total = start, 0
        while end < len(sizes) and total + sizes[end] <= MAX_LINE_BYTES:
            total += sizes[end]
            end += 1
        if end == start:
            yield None
            start += 1
        else:
            yield from batch.slice(start, end - start).to_pylist()
            start = end


def _size(column: Any, *, is_exact: bool) -> int:
    """The bytes of a column: the sum of its values, or the most that it may have by its longest text."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_nested(column.type):
        return 8 * len(column) + sum(_size(part, is_exact=is_exact) for part in _parts(column))
    if is_exact:
        return compute.sum(_lengths(column)).as_py() or 0
    texts = column.dictionary if pyarrow.types.is_dictionary(column.type) else column
    return len(column) * (compute.max(_lengths(texts)).as_py() or 8)


def _parts(column: Any) -> list[Any]:
    """The columns in a column of structures, maps or lists."""
    import pyarrow

    if pyarrow.types.is_struct(column.type):
        return list(column.flatten())
    if not pyarrow.types.is_map(column.type):
        return [column.flatten()]
    start, end = (column.offsets[index].as_py() for index in (0, -1))
    return [column.keys.slice(start, end - start), column.items.slice(start, end - start)]


def _sizes(column: Any) -> list[int]:
    """The bytes of each row of a column: of its texts, or some for each number."""
    import pyarrow

    if not pyarrow.types.is_nested(column.type):
        return [size or 0 for size in _lengths(column).to_pylist()]
    return [_size(column.slice(row, 1), is_exact=True) for row in range(len(column))]


def _lengths(column: Any) -> Any:
    """The bytes of each value of a column without structures and lists."""
    import pyarrow
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        return _lengths(column.dictionary).take(column.indices)
    texts = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    if any(is_text(column.type) for is_text in texts):
        return compute.binary_length(column)
    width = column.type.byte_width if types.is_fixed_size_binary(column.type) else NUMBER_BYTES
    return pyarrow.array([width] * len(column), "int64")


def _unreadable(file: Path, error: Exception) -> BadInput:
    return BadInput(f"{file.name} cannot be read as Parquet: {str(error).splitlines()[0].rstrip('.')}.")
