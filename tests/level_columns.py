"""Rows of tables with a column for each level, read as `clade import` reads them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from store.transfer.formats.csv_file import Dialect, read_records
from store.transfer.formats.table_rows import (
    PLAIN,
    CellFormat,
    LevelColumns,
    RowReader,
    Table,
    check_columns,
    read_rows,
)
from store.transfer.rows import Rejection, Row

Rows = Iterator[tuple[str, Row | Rejection]]


def read_csv(
    levels: Sequence[LevelColumns], file: Path, dialect: Dialect | None = None, cell_format: CellFormat = PLAIN
) -> Rows:
    """The records of a CSV or TSV file, each with its row."""

    def reader(header: Sequence[str]) -> RowReader:
        check_columns(header, levels)
        return RowReader(levels, header, cell_format)

    return read_records(reader, file, dialect)


def read_table(levels: Sequence[LevelColumns], table: Table, cell_format: CellFormat = PLAIN) -> Rows:
    """The rows of a table, each with its line of CSV."""
    check_columns(table.header, levels)
    return read_rows(RowReader(levels, table.header, cell_format), table)
