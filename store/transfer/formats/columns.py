"""CSV and TSV: a column for each level, from the root down, so that a row has a whole path."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.transfer.formats.dialect import Dialect
from store.transfer.formats.lines import MAX_LINE_BYTES, SHOWN_BYTES, TOO_LONG
from store.transfer.formats.path_table import PathRowReader
from store.transfer.formats.rejected import REASON, RejectedRows, csv_line, free_name
from store.transfer.formats.row_reader import PLAIN, CellFormat, LevelColumns, RowReader, check_columns
from store.transfer.formats.source import opened
from store.transfer.formats.table import checked_header
from store.transfer.rows import Rejection, Row

MAX_CELL_CHARACTERS = 1 << 20  # more than any item holds; csv's own limit is less than some
END = "\r\n"  # the characters at the end of a line
_SEPARATOR_LINE = re.compile("\ufeff?sep=.\r?\n")

Record = tuple[int, str, list[str] | Rejection]  # the number of its first line, its text, its cells


def read_csv(
    levels: Sequence[LevelColumns], file: Path, dialect: Dialect | None = None, cell_format: CellFormat = PLAIN
) -> Iterator[tuple[str, Row | Rejection]]:
    """The records of a CSV or TSV file, each with its row; without a resolved dialect, that is guessed.

    An empty cell skips its level, and an empty cell of an attribute means no value. The text may have surrogates for
    bytes of another encoding. Raises BadInput where the file has no header, or not exactly one column of each name, and
    where a quote is never closed.
    """
    dialect = dialect or Dialect().resolved(file)
    records = _records(file, dialect)
    _, header = _header(file, records)
    check_columns(header, levels)
    yield from _rows(records, RowReader(levels, header, cell_format), dialect)


def read_path_csv(hierarchy: Hierarchy, file: Path, dialect: Dialect) -> Iterator[tuple[str, Row | Rejection]]:
    """The records of a CSV file with the columns `path` and `level`, as `clade export` writes it."""
    records = _records(file, dialect)
    _, header = _header(file, records)
    yield from _rows(records, PathRowReader(hierarchy, header), dialect)


def _rows(
    records: Iterator[Record], reader: RowReader | PathRowReader, dialect: Dialect
) -> Iterator[tuple[str, Row | Rejection]]:
    for number, text, cells in records:
        if isinstance(cells, Rejection):
            yield text, cells
        elif cells:  # a blank line has none
            row = reader.row(number, cells)
            yield text, row if _is_valid(text) else Rejection(number, _invalid(dialect))


def csv_header(file: Path, dialect: Dialect) -> list[str]:
    """The names of the columns. Raises BadInput without a header."""
    return _header(file, _records(file, dialect))[1]


def cell_rows(file: Path, dialect: Dialect) -> Iterator[list[str]]:
    """The cells of the rows below the header, without those that cannot be read."""
    records = _records(file, dialect)
    _header(file, records)
    for _, _, cells in records:
        if isinstance(cells, list) and cells:
            yield cells


def rejected_csv(file: Path, dialect: Dialect, reason_column: str = REASON) -> RejectedRows:
    """Rejected rows of a CSV file: its own header and bytes, with one more column for the reason."""
    delimiter, encoding = dialect.delimiter or ",", dialect.text_encoding
    text, header = _header(file, _records(file, dialect))
    end = text[len(text.rstrip(END)) :] or "\n"

    def line(content: str, reason: str) -> bytes:
        written = content.rstrip(END).encode(encoding, dialect.errors)
        return written + f"{delimiter}{csv_line([reason], always_quoted=True)}{end}".encode(encoding, "replace")

    bom = "\ufeff" if dialect.encoding in ("utf-8-sig", "utf-16", "utf-32") else ""
    head = f"{bom}{text.rstrip(END)}{delimiter}{free_name(reason_column, header)}"
    mark = head.encode(encoding, dialect.errors)
    return RejectedRows(".csv", mark + end.encode(encoding), mark, line)


def _is_valid(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _invalid(dialect: Dialect) -> str:
    return f"The row is not valid {'UTF-8' if dialect.text_encoding == 'utf-8' else dialect.encoding}."


# -- the lines below the columns ---------------------------------------------------------------------------------------


class _TooLong(Exception):
    """The lines of one row are too long."""


class _RecordedLines:
    """The lines of a file, with the text of those since the last `take_text`, since csv has only the cells."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._lines: list[str] = []
        self._bytes_left = MAX_LINE_BYTES
        self.number = 1

    def __iter__(self) -> Iterator[str]:
        return self

    @property
    def count(self) -> int:
        """The number of lines since the last `take_text`."""
        return len(self._lines)

    def __next__(self) -> str:
        """Raises _TooLong at the end of a line where the lines of a row are too long; keeps their beginning alone."""
        line = self._source.readline(self._bytes_left + 1)
        if not line:
            raise StopIteration
        self._lines.append(line)
        self._bytes_left -= len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass"))
        if self._bytes_left < 0:
            while line and not line.endswith("\n"):
                line = self._source.readline(MAX_LINE_BYTES)
            self._lines = ["".join(self._lines)[:SHOWN_BYTES], *[""] * (len(self._lines) - 1)]
            raise _TooLong
        return line

    def take_text(self) -> tuple[int, str]:
        """The number of the first line since the last call, and the text of all of them."""
        number, lines = self.number, self._lines
        self.number += len(lines)
        self._lines, self._bytes_left = [], MAX_LINE_BYTES
        return number, "".join(lines)


def _records(file: Path, dialect: Dialect) -> Iterator[Record]:
    """The records of a file; a quoted cell may have several lines, and the number is that of the first.

    Raises BadInput for a quote that is never closed, since it would swallow all rows after it.
    """
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    delimiter = dialect.delimiter or ","
    with opened(file) as source:
        lines = _RecordedLines(io.TextIOWrapper(source, encoding, dialect.errors, newline=""))
        csv.field_size_limit(MAX_CELL_CHARACTERS)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while True:
            try:
                cells: list[str] | Rejection = next(reader)
            except StopIteration:
                return
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{file.name} is no {dialect.encoding} from line {lines.number} on: {error.reason}; "
                    "--encoding names another encoding."
                ) from error
            except _TooLong:
                if lines.count > 1:
                    raise _unclosed(file, lines.number) from None
                cells = Rejection(lines.number, TOO_LONG)
                reader = csv.reader(lines, delimiter=delimiter, strict=True)  # the old one is in the middle of a row
            except csv.Error as error:
                if lines.count > 1 or "unexpected end" in str(error):
                    raise _unclosed(file, lines.number) from None
                cells = Rejection(lines.number, f"The row is not valid CSV: {error}.")
            number, text = lines.take_text()
            if number > 1 or not _SEPARATOR_LINE.fullmatch(text):
                yield number, text, cells


def _unclosed(file: Path, number: int) -> BadInput:
    return BadInput(
        f"{file.name}, line {number}: a quote in this row is not closed; close it, or double it if it is part of the "
        "text. Nothing was imported."
    )


def _has_cells(record: Record) -> bool:
    return isinstance(record[2], Rejection) or any(cell.strip("\ufeff \t") for cell in record[2])


def _header(file: Path, records: Iterator[Record]) -> tuple[str, list[str]]:
    """The first row that is not empty, and the names of the columns in it."""
    _, text, cells = next((record for record in records if _has_cells(record)), (1, "", []))
    if isinstance(cells, Rejection) or not any(cells):
        raise BadInput(f'"{file.name}" has no header: its first line must name the columns.')
    names = [cell.removeprefix("\ufeff").strip() for cell in checked_header(file, cells)]
    return text.removeprefix("\ufeff"), names
