"""Parquet files: read in batches, with the fields of structures as columns such as address.city."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from store.errors import BadInput
from store.transfer.formats.table import Table, TableRow, flat

BATCH_ROWS = 1_000
_EXTRA = "Parquet files need pyarrow; install it with: pip install 'clade-graphql[files]'"


def parquet_table(file: Path) -> Table:
    """The table of a file. Raises BadInput where it cannot be read."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise BadInput(_EXTRA) from None
    try:
        with parquet.ParquetFile(file) as opened:
            header = [name for field in opened.schema_arrow for name in _names(field, pyarrow.types.is_struct)]
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error
    return Table(header, lambda: _rows(file, header, parquet.ParquetFile, pyarrow.ArrowException))


def _names(field: Any, is_struct: Any, prefix: str = "") -> Iterator[str]:
    if is_struct(field.type):
        for inner in field.type:
            yield from _names(inner, is_struct, f"{prefix}{field.name}.")
    else:
        yield f"{prefix}{field.name}"


def _rows(file: Path, header: list[str], reader: Any, error_type: type[Exception]) -> Iterator[TableRow]:
    number = 0
    try:
        with reader(file) as opened:
            for batch in opened.iter_batches(batch_size=BATCH_ROWS):
                for fields in batch.to_pylist():
                    number += 1
                    values = flat(fields)
                    yield number, [_cell(values.get(name)) for name in header], None
    except (error_type, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _cell(value: object) -> object:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _unreadable(file: Path, error: Exception) -> BadInput:
    return BadInput(f"{file.name} cannot be read as Parquet: {str(error).splitlines()[0].rstrip('.')}.")
