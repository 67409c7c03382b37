"""CSV and TSV files: their rows, and their dialect, given or guessed from their bytes.

A row has a column for each level, from the root down, so that it has a whole path, or a path and a level.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import PLAIN, CellFormat, LevelColumns, RowReader, check_columns
from store.transfer.formats.lines import MAX_LINE_BYTES, SHOWN_BYTES, TOO_LONG
from store.transfer.formats.source import BLOCK_BYTES, REASON, RejectedRows, content_name, csv_line, free_name, opened
from store.transfer.formats.tables import PathRowReader, checked_header
from store.transfer.rows import Rejection, TextRows

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {"\t": "tab", "comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t"}
SAMPLE_BYTES = 64_000
SAMPLE_ROWS = 50
MAX_CELL_CHARACTERS = 1 << 20  # more than any item holds; csv's own limit is less than some
MAX_CHARACTER_BYTES = 4
ENOUGH_CHARACTERS = 1_000  # beyond ASCII, after which the encoding is clear
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_SURROGATE = re.compile("[\ud800-\udfff]")  # of a byte that is not of the encoding
_SEPARATOR_LINE = re.compile("\ufeff?sep=(.)\r?\n")  # which Excel writes and reads
_END = "\r\n"  # the characters at the end of a line

Record = tuple[int, str, list[str] | Rejection]  # the number of its first line, its text, its cells


@dataclass(frozen=True)
class Dialect:
    """The encoding of a file, the delimiter of its columns and their quote, `"` or none; None where to be guessed."""

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, UnicodeError):
                raise BadInput(
                    f'"{shorten(self.encoding)}" is not an encoding; use utf-8, utf-8-sig, utf-16, cp1252 or latin-1.'
                ) from None
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise BadInput(f"A delimiter is one character, such as ; or tab, not {shorten(repr(self.delimiter))}.")
        if self.quote not in (None, '"', "none"):
            raise BadInput(f"--quote is '\"' or none, not {shorten(self.quote)}.")

    @property
    def errors(self) -> str:
        """The error handler that keeps bytes of another encoding, as surrogates."""
        is_wide = self.encoding and codecs.lookup(self.encoding).name.startswith(("utf-16", "utf-32"))
        return "surrogatepass" if is_wide else "surrogateescape"

    @property
    def text_encoding(self) -> str:
        """The encoding of a part of the file, without a byte order mark."""
        encoding = self.encoding or "utf-8"
        return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, encoding)

    def resolved(self, file: Path) -> "Dialect":
        """This dialect for a file, with what is None guessed."""
        dialect = replace(self, encoding=self.encoding or guess_encoding(file))
        return replace(dialect, delimiter=dialect.delimiter or _guess_delimiter(file, dialect))

    def sentence(self, given: "Dialect") -> str:
        """What was guessed, if it is not what most files have; else nothing."""
        parts: list[str] = []
        if given.encoding is None and self.encoding not in ("utf-8", "utf-8-sig"):
            parts.append(f"encoding {self.encoding}")
        if given.delimiter is None and self.delimiter not in (",", None):
            parts.append(f"delimiter {DELIMITER_NAMES.get(self.delimiter, self.delimiter)}")
        return f"{' and '.join(parts)}, guessed; --encoding and --delimiter set them." if parts else ""


def read_csv(
    levels: Sequence[LevelColumns], file: Path, dialect: Dialect | None = None, cell_format: CellFormat = PLAIN
) -> TextRows:
    """The records of a CSV or TSV file, each with its row; without a resolved dialect, that is guessed.

    An empty cell skips its level, and an empty cell of an attribute means no value. The text may have surrogates for
    bytes of another encoding. Raises BadInput where the file has no header, or not exactly one column of each name, and
    where a quote is never closed.
    """
    dialect = dialect or Dialect().resolved(file)
    _, header, records = _parts(file, dialect)
    check_columns(header, levels)
    yield from _rows(records, RowReader(levels, header, cell_format), dialect)


def read_path_csv(hierarchy: Hierarchy, file: Path, dialect: Dialect) -> TextRows:
    """The records of a CSV file with the columns `path` and `level`, as `clade export` writes it."""
    _, header, records = _parts(file, dialect)
    yield from _rows(records, PathRowReader(hierarchy, header), dialect)


def _rows(records: Iterator[Record], reader: RowReader | PathRowReader, dialect: Dialect) -> TextRows:
    for number, text, cells in records:
        if isinstance(cells, Rejection):
            yield text, cells
        elif cells:  # a blank line has none
            row = reader.row(number, cells)
            if not text.isascii() and _SURROGATE.search(text):
                encoding = "UTF-8" if dialect.text_encoding == "utf-8" else dialect.encoding
                row = Rejection(number, f"The row is not valid {encoding}.")
            yield text, row


def csv_header(file: Path, dialect: Dialect) -> list[str]:
    """The names of the columns. Raises BadInput without a header."""
    return _parts(file, dialect)[1]


def cell_rows(file: Path, dialect: Dialect) -> Iterator[list[str]]:
    """The cells of the rows below the header, without those that cannot be read."""
    for _, _, cells in _parts(file, dialect)[2]:
        if isinstance(cells, list) and cells:
            yield cells


def rejected_csv(file: Path, dialect: Dialect, reason_column: str = REASON) -> RejectedRows:
    """Rejected rows of a CSV file: its own header and bytes, with one more column for the reason."""
    delimiter, encoding = dialect.delimiter or ",", dialect.text_encoding
    text, header, _ = _parts(file, dialect)
    end = text[len(text.rstrip(_END)) :] or "\n"

    def line(content: str, reason: str) -> bytes:
        written = content.rstrip(_END).encode(encoding, dialect.errors)
        return written + f"{delimiter}{csv_line([reason], always_quoted=True)}{end}".encode(encoding, "replace")

    bom = "\ufeff" if dialect.encoding in ("utf-8-sig", "utf-16", "utf-32") else ""
    head = f"{bom}{text.rstrip(_END)}{delimiter}{free_name(reason_column, header)}"
    mark = head.encode(encoding, dialect.errors)
    return RejectedRows(".csv", mark + end.encode(encoding), mark, line)


def delimiter_named(text: str | None) -> str | None:
    """The delimiter of an option, which may be a name such as tab."""
    return text if text is None else DELIMITER_NAMES.get(text, text) if len(text) > 1 else text


def looks_like_table(file: Path) -> bool:
    """Whether the first lines of a text file are rows of one width, and none is a path with ` > ` in it."""
    with opened(file) as source:
        text = source.read(SAMPLE_BYTES).decode(guess_encoding(file), "replace")
    lines = [line for line in text.splitlines(keepends=True)[:SAMPLE_ROWS] if not line.startswith("#")]
    if any(" > " in line for line in lines):
        return False
    return any(_score(lines, delimiter)[0] == 1 for delimiter in (DELIMITERS if len(lines) > 1 else "\t"))


def _parts(file: Path, dialect: Dialect) -> tuple[str, list[str], Iterator[Record]]:
    """The first record that is not empty, the names of the columns in it, and the other records.

    Raises BadInput without a header.
    """
    records = _records(file, dialect)
    for _, text, cells in records:
        if isinstance(cells, Rejection):
            break
        if any(cell.strip("\ufeff \t") for cell in cells):
            names = [cell.removeprefix("\ufeff").strip() for cell in checked_header(file, cells)]
            return text.removeprefix("\ufeff"), names, records
    raise BadInput(f'"{file.name}" has no header: its first line must name the columns.')


class _TooLong(Exception):
    """The lines of one row are too long."""


class _RecordedLines:
    """The lines of a file, with the text of those since the last `take_text`, since csv has only the cells."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._bytes_left = MAX_LINE_BYTES
        self.lines: list[str] = []
        self.number = 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Raises _TooLong at the end of a line where the lines of a row are too long; keeps their beginning alone."""
        line = self._source.readline(self._bytes_left + 1)
        if not line:
            raise StopIteration
        self.lines.append(line)
        self._bytes_left -= len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass"))
        if self._bytes_left < 0:
            while line and not line.endswith("\n"):
                line = self._source.readline(MAX_LINE_BYTES)
            self.lines = ["".join(self.lines)[:SHOWN_BYTES], *[""] * (len(self.lines) - 1)]
            raise _TooLong
        return line

    def take_text(self) -> tuple[int, str]:
        """The number of the first line since the last call, and the text of all of them."""
        number, lines = self.number, self.lines
        self.number += len(lines)
        self.lines, self._bytes_left = [], MAX_LINE_BYTES
        return number, "".join(lines)


def _records(file: Path, dialect: Dialect) -> Iterator[Record]:
    """The records of a file; a quoted cell may have several lines, and the number is that of the first.

    Raises BadInput for a quote that is never closed, since it would swallow all rows after it.
    """
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    delimiter = dialect.delimiter or ","
    with opened(file) as source:
        recorded = _RecordedLines(io.TextIOWrapper(source, encoding, dialect.errors, newline=""))
        csv.field_size_limit(MAX_CELL_CHARACTERS)
        reader = csv.reader(recorded, delimiter=delimiter, strict=True)
        while True:
            try:
                cells: list[str] | Rejection = next(reader)
            except StopIteration:
                return
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{file.name} is no {dialect.encoding} from line {recorded.number} on: {error.reason}; "
                    "--encoding names another encoding."
                ) from error
            except _TooLong:
                if len(recorded.lines) > 1:
                    raise _unclosed(file, recorded.number) from None
                cells = Rejection(recorded.number, TOO_LONG)
                reader = csv.reader(recorded, delimiter=delimiter, strict=True)  # the old one is in the middle of a row
            except csv.Error as error:
                if len(recorded.lines) > 1 or "unexpected end" in str(error):
                    raise _unclosed(file, recorded.number) from None
                cells = Rejection(recorded.number, f"The row is not valid CSV: {error}.")
            number, text = recorded.take_text()
            if number > 1 or not _SEPARATOR_LINE.fullmatch(text):
                yield number, text, cells


def _unclosed(file: Path, number: int) -> BadInput:
    return BadInput(
        f"{file.name}, line {number}: a quote in this row is not closed; close it, or double it if it is part of the "
        "text. Nothing was imported."
    )


def guess_encoding(file: Path) -> str:
    """The encoding by its byte order mark or zero bytes; else UTF-8 where most characters beyond ASCII are so, else
    Windows-1252.
    """
    valid = invalid = 0
    with opened(file) as source:
        block = source.read(BLOCK_BYTES)
        for mark, encoding in _BOMS:
            if block.startswith(mark):
                return encoding
        start = block[:SAMPLE_BYTES]
        if wide := _wide_encoding(start):
            return wide
        while block and valid + invalid < ENOUGH_CHARACTERS:
            more = source.read(BLOCK_BYTES)
            cut = len(block)
            while more and cut > len(block) - MAX_CHARACTER_BYTES and block[cut - 1] >= 0x80:
                cut -= 1  # a character may go on in the next block
            if not block.isascii():
                for run in _HIGH_BYTES.findall(block[:cut]):
                    characters = _UTF8_CHARACTER.findall(run)
                    valid += len(characters)
                    invalid += len(run) - sum(map(len, characters))
            block = block[cut:] + more
    return "utf-8" if valid >= invalid else "cp1252"


def _wide_encoding(start: bytes) -> str | None:
    """UTF-16 without a byte order mark: its zero bytes lie beside ends of lines, or are a quarter of all."""
    even, odd = start[0::2].count(0), start[1::2].count(0)
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    text = start.decode(encoding, "replace") if even or odd else ""
    return encoding if "\n" in text or "\r" in text or 4 * (even + odd) > len(start) else None


def _guess_delimiter(file: Path, dialect: Dialect) -> str:
    """The delimiter by which most of the first rows have as many columns as the header.

    Where none has, it is that of the file's extension: a tab, or a comma.
    """
    with opened(file) as source:
        text = source.read(SAMPLE_BYTES).decode(dialect.encoding or "utf-8", "replace")
    if declared := _SEPARATOR_LINE.match(text):
        return declared[1]
    lines = text.splitlines(keepends=True)
    whole = lines[:-1] or lines  # the last line may be cut
    first = "\t" if content_name(file).lower().endswith(".tsv") else ","
    return max(dict.fromkeys((first, *DELIMITERS)), key=lambda delimiter: _score(whole, delimiter))


def _score(lines: Iterable[str], delimiter: str) -> tuple[float, int]:
    """The share of rows that have as many columns as the header, and this number; nothing for one column."""
    widths: list[int] = []
    with suppress(csv.Error):
        for cells in csv.reader(lines, delimiter=delimiter):
            if cells:
                widths.append(len(cells))
            if len(widths) >= SAMPLE_ROWS:
                break
    if not widths or widths[0] < 2:
        return 0.0, 0
    return round(widths.count(widths[0]) / len(widths), 1), widths[0]
