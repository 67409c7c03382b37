"""CSV and TSV files: their rows, and their dialect, given or guessed from their bytes.

A row has a column for each level, from the root down, so that it has a whole path, or a path and a level.
"""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal, TextIO

from store.errors import BadInput, quantity, shorten
from store.transfer.formats.encodings import SAMPLE_BYTES, certain_encoding, guess_encoding
from store.transfer.formats.lines import MAX_LINE_BYTES, SHOWN_BYTES, TOO_LONG
from store.transfer.formats.source import Doubt, Guess, RejectedRows, content_name, csv_line, free_name, opened
from store.transfer.formats.table import COMMENT, MAX_TITLES, Table, TableRow
from store.transfer.rows import Rejection

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {"\t": "tab", "comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t"}
SAMPLE_ROWS = 50
ENOUGH_LINES = 3  # of a table below a title
MAX_CELL_CHARACTERS = 1 << 20  # more than any item holds; csv's own limit is less than some
_SURROGATE = re.compile("[\ud800-\udfff]")  # of a byte that is not of the encoding
_SEPARATOR_LINE = re.compile("\ufeff?sep=(.)\r?\n")  # which Excel writes and reads
_RULE = re.compile(r"(?=.*[|+])[\s|+:=-]*---[\s|+:=-]*")  # below a header in Markdown, or of a terminal's table
_AS_TEXT = re.compile('="([^"]*)"')  # as some programs write a text of digits for Excel
_END = "\r\n"  # the characters at the end of a line

Quoting = Literal[0, 3]  # of csv: QUOTE_MINIMAL or QUOTE_NONE
Record = tuple[int, str, list[str] | Rejection]  # the number of its first line, its text, its cells


@dataclass(frozen=True)
class Dialect:
    """The encoding of a file, the delimiter of its columns and their quote, `"` or none; None where to be guessed.

    The line `header_row`, counted from 1, has the names of the columns, or `columns` are those of a file without a
    header. `doubt` is the sentence of an encoding that is guessed.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    header_row: int | None = None
    columns: Sequence[str] = ()
    doubt: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, UnicodeError):
                known = "utf-8, utf-8-sig, utf-16, cp1252 or latin-1"
                raise BadInput(f'"{shorten(self.encoding)}" is not an encoding; use {known}.') from None
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise BadInput(f"A delimiter is one character, such as ; or tab, not {shorten(repr(self.delimiter))}.")
        if self.quote not in (None, '"', "'", "none"):
            raise BadInput(f"--quote is '\"', \"'\" or none, not {shorten(self.quote)}.")

    @property
    def text_encoding(self) -> str:
        """The encoding of a part of the file, without a byte order mark, by its name in Python."""
        name = codecs.lookup(self.encoding or "utf-8").name
        return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(name, name)

    @property
    def errors(self) -> str:
        """The error handler that keeps bytes of another encoding, as surrogates."""
        return "surrogatepass" if self.text_encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"

    @property
    def mark(self) -> str:
        """The byte order mark, as a character, where the file begins with one."""
        return "\ufeff" if "".encode(self.encoding or "utf-8") else ""

    @property
    def quoting(self) -> Quoting:
        """How csv takes quotes."""
        return csv.QUOTE_NONE if self.quote == "none" else csv.QUOTE_MINIMAL

    def encoded(self, file: Path, taken: Collection[Guess] = ()) -> "Dialect":
        """This dialect with the encoding of a file. Raises Doubt for a guess that is not `taken`."""
        if self.encoding is not None:
            return self
        encoding, doubt = guess_encoding(file)
        if doubt and Guess.ENCODING not in taken:
            raise Doubt(Guess.ENCODING, doubt, ("--encoding", encoding))
        return replace(self, encoding=encoding, doubt=doubt)

    def resolved(self, file: Path, taken: Collection[Guess] = ()) -> "Dialect":
        """This dialect for a file, with what is None guessed. Raises Doubt for a guess that is not `taken`.

        Quotes stay None, since a doubt about them is raised where a row has it, unless that is taken.
        """
        dialect = self.encoded(file, taken)
        if Guess.QUOTES in taken:
            dialect = replace(dialect, quote=dialect.quote or '"')
        return replace(dialect, delimiter=dialect.delimiter or _guess_delimiter(file, dialect))

    def sentences(self, given: "Dialect") -> list[str]:
        """What was guessed, if it is not what most files have."""
        parts: list[str] = []
        if given.encoding is None and self.encoding not in ("utf-8", "utf-8-sig"):
            parts.append(f"encoding {self.encoding}")
        if given.delimiter is None and self.delimiter not in (",", None):
            parts.append(f"delimiter {DELIMITER_NAMES.get(self.delimiter, self.delimiter)}")
        options = "--encoding and --delimiter set them" if self.delimiter else "--encoding sets it"
        said = [f"{' and '.join(parts)}, guessed; {options}."] if parts else []
        return [*said, f"{self.doubt}."] if self.doubt else said


def csv_table(file: Path, given: Dialect | None = None, taken: Collection[Guess] = ()) -> Table:
    """The table of a CSV or TSV file, in its dialect, of which is guessed what is not given.

    The texts of rows may have surrogates for bytes of another encoding. Raises BadInput where the file has no header,
    and Doubt for a guess that is not `taken`; while rows are read, BadInput for a quote that is never closed, and Doubt
    for values in quotes that look like rows.
    """
    given = given or Dialect()
    dialect = given.resolved(file, taken)
    delimiter = dialect.delimiter or ","
    number, head, header, _ = _parts(file, dialect)

    def rows() -> Iterator[TableRow]:
        is_ragged = False
        for number, text, cells in _parts(file, dialect)[-1]:
            if isinstance(cells, Rejection):
                yield number, (), cells.reason, text, ""
            elif cells:  # a blank line has none
                reason = None
                if len(cells) < len(header):
                    if not is_ragged and not text.endswith(("\r", "\n")):
                        reason = f"The file ends in this row, after {quantity(len(cells), 'column')}."
                    is_ragged = True
                if not text.isascii() and _SURROGATE.search(text):
                    encoding = "UTF-8" if dialect.text_encoding == "utf-8" else dialect.encoding
                    reason = f"The row is not valid {encoding}."
                if '="' in text:
                    cells = [found[1] if (found := _AS_TEXT.fullmatch(cell)) else cell for cell in cells]
                yield number, cells, reason, text, ""

    return Table(
        file.name,
        header,
        rows,
        line=lambda cells: csv_line(cells, delimiter=delimiter) + "\n",
        rejected_by=lambda reason_column: _rejected(dialect, head, header, reason_column),
        guesses=dialect.sentences(given),
        header_row=None if dialect.columns else number,
        doubt=dialect.doubt,
    )


def _rejected(dialect: Dialect, head: str, header: Sequence[str], reason_column: str) -> RejectedRows:
    """Rejected rows of a CSV file: its own header and bytes, with one more column for the reason."""
    delimiter, encoding = dialect.delimiter or ",", dialect.text_encoding
    end = head[len(head.rstrip(_END)) :] or "\n"

    def line(content: str, reason: str) -> bytes:
        written = content.rstrip(_END)
        with suppress(csv.Error):  # of a row that is rejected for this
            cells = next(csv.reader(io.StringIO(written, newline=""), delimiter=delimiter, quoting=dialect.quoting), [])
            written += delimiter * (len(header) - len(cells))
            while len(cells) > len(header) and not cells.pop() and written.endswith(delimiter):
                written = written.removesuffix(delimiter)
        said = csv_line([reason], always_quoted=True)
        if dialect.quote == "none":
            said = re.sub(f"[{re.escape(delimiter + _END)}]", " ", reason)
        return written.encode(encoding, dialect.errors) + f"{delimiter}{said}{end}".encode(encoding, "replace")

    named = f"{dialect.mark}{head.rstrip(_END)}{delimiter}{free_name(reason_column, header)}"
    mark = named.encode(encoding, "replace" if dialect.columns else dialect.errors)
    return RejectedRows(".csv", mark + end.encode(encoding), mark, line)


def delimiter_named(text: str | None) -> str | None:
    """The delimiter of an option, which may be a name such as tab."""
    return text if text is None else DELIMITER_NAMES.get(text, text) if len(text) > 1 else text


def looks_like_table(file: Path) -> bool:
    """Whether the first lines of a text file are rows of one width, and none is a path with ` > ` in it.

    With any delimiter but a comma, titles may stand above them.
    """
    with opened(file) as source:
        start = source.read(SAMPLE_BYTES)
    text = start.decode(certain_encoding(start) or "latin-1", "replace")
    lines = [line for line in text.splitlines(keepends=True)[:SAMPLE_ROWS] if not COMMENT.match(line)]
    if any(" > " in line for line in lines):
        return False
    delimiters = DELIMITERS if len(lines) > 1 else "\t"
    if any(_score(lines, delimiter)[0] == 1 for delimiter in delimiters):
        return True
    starts = range(min(MAX_TITLES, len(lines) // 2)) if len(lines) > ENOUGH_LINES else ()
    return any(_score(lines[start:], one, csv.QUOTE_NONE)[0] == 1 for one in "\t|;" for start in starts)


def _parts(file: Path, dialect: Dialect) -> tuple[int, str, list[str], Iterator[Record]]:
    """The number of the header, its text with the lines above it that are skipped, the names of its columns, the other
    records.

    A file with given names has no header, unless it is one of rejected rows, which has a column of reasons beside them.
    Raises BadInput without a header, and where that is not valid.
    """
    given, above, text = [*dialect.columns], "", ""
    records = _records(file, dialect)
    for number, text, cells in records:
        if isinstance(cells, Rejection) and not given:
            raise BadInput(f"{file.name}, line {number}, is no header: {cells.reason}")
        names = [] if isinstance(cells, Rejection) else [cell.strip() for cell in cells]
        if dialect.quote is None and names and all(len(one) > 1 and one[0] == one[-1] == "'" for one in names):
            seen = f"The names of the columns of {file.name} are in ' signs"
            raise Doubt(Guess.QUOTES, seen, ("--quote", "'"))
        if any(names) and names[: len(given)] == given:
            return number, above + text, names, records
        if given and cells:
            records = chain([(number, text, cells)], records)
            break
        above += text if dialect.header_row else ""
    if given:
        end = text[len(text.rstrip(_END)) :] or "\n"
        return 1, (dialect.delimiter or ",").join(csv_line([name]) for name in given) + end, given, records
    where = "its first line" if dialect.header_row is None else f"line {dialect.header_row}"
    raise BadInput(f'"{file.name}" has no header: {where} must name the columns.')


def _records(file: Path, dialect: Dialect) -> Iterator[Record]:
    """The records of a file; a quoted cell may have several lines, and the number is that of the first.

    Lines above a given header are a record without cells. Raises BadInput for a quote that is never closed, since it
    would swallow all rows after it, and Doubt for one that is closed late, so that its value looks like rows or cells.
    """
    delimiter, width = dialect.delimiter or ",", len(dialect.columns)
    number, lines = 1, list[str]()
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    try:
        with opened(file) as source:
            content = io.TextIOWrapper(source, dialect.encoding or "utf-8", dialect.errors, newline="")
            if content.read(1) != "\ufeff":
                content.seek(0)
            if dialect.header_row is not None:
                lines += islice(iter(lambda: content.readline(MAX_LINE_BYTES), ""), dialect.header_row - 1)
                yield number, "".join(lines), []
            reader = None
            while True:
                number += len(lines)
                lines.clear()
                reader = reader or csv.reader(
                    _lines(content, lines), delimiter=delimiter, strict=True, quoting=dialect.quoting,
                    quotechar="'" if dialect.quote == "'" else '"',
                )  # fmt: skip
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    cells: list[str] | Rejection = _invalid(file, number, lines, delimiter, str(error))
                    reader = None  # its lines have ended with the error
                else:
                    cells, width = row, width or len(row)
                    is_other = len(lines) > 1 or len(row) < width
                    if is_other and dialect.quote is None and _swallows(lines, row, delimiter, width):
                        seen = f"{file.name}, line {number}: a value in quotes looks like several cells or rows"
                        other = "--quote none takes quotes as text, --quote '\"' the value as it is"
                        raise Doubt(Guess.QUOTES, seen, ("--quote", "none"), ("--quote", '"'), other=other)
                text = "".join(lines)
                if not (_RULE.fullmatch(text) or (number == 1 and _SEPARATOR_LINE.fullmatch(text))):
                    yield number, text, cells
    except UnicodeError as error:
        reason = getattr(error, "reason", error)  # a missing byte order mark has none
        raise BadInput(
            f"{file.name} is no {dialect.encoding} from line {number} on: {reason}; --encoding names another encoding."
        ) from error


def _lines(content: TextIO, taken: list[str]) -> Iterator[str]:
    """The lines of a file, each added to those `taken` for a row, since csv has only the cells.

    Raises csv.Error at the end of a line with which these are too long, and keeps their beginning alone.
    """
    size = 0
    while line := content.readline(MAX_LINE_BYTES + 1):
        size = (size if taken else 0) + (len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass")))
        taken.append(line)
        if size > MAX_LINE_BYTES:
            while line and not line.endswith("\n"):
                line = content.readline(MAX_LINE_BYTES)
            taken[:] = ["".join(taken)[:SHOWN_BYTES], *[""] * (len(taken) - 1)]
            raise csv.Error(TOO_LONG)
        yield line


def _swallows(lines: Sequence[str], cells: Sequence[str], delimiter: str, width: int) -> bool:
    """Whether a value in quotes of one record looks like rows, or like cells that the record has less than `width`.

    It does where the first and the last line, or one between them, has all columns. The commas of a text have a blank
    after them. A text has no tabs, so that one in a cell of several lines is enough.
    """
    is_short = len(cells) < width and any(delimiter in cell for cell in cells)
    if delimiter == "\t":
        return is_short or any("\t" in cell and ("\n" in cell or "\r" in cell) for cell in cells)
    counts = [line.count(delimiter) - line.count(f"{delimiter} ") for line in lines]
    whole = [1 < count + 1 == width for count in counts]
    are_rows = len(lines) > 1 and ((whole[0] and whole[-1]) or any(whole[1:-1]))
    return are_rows or (is_short and sum(counts) >= len(cells))


def _invalid(file: Path, number: int, lines: Sequence[str], delimiter: str, error: str) -> Rejection:
    """The rejection of a row that is no CSV, with its first cell that begins with a quote and does not end with one.

    Raises BadInput for a quote that is never closed.
    """
    place = ""
    for at, cell in enumerate(lines[0].rstrip(_END).split(delimiter), start=1):
        if cell.startswith('"') and (len(cell) == 1 or not cell.endswith('"') or '"' in cell[1:-1].replace('""', "")):
            place = f" (column {at}, {shorten(cell)})"
            break
    if len(lines) > 1 or "unexpected end" in error:
        raise BadInput(
            f"{file.name}, line {number}: a quote in this row is not closed{place}; close it, double it if it is part "
            "of the text, or add --quote none, which takes quotes as text. Nothing was imported."
        )
    invalid = f"The row is not valid CSV: {error}{place}; --quote none takes quotes as text."
    return Rejection(number, error if error == TOO_LONG else invalid)


def _guess_delimiter(file: Path, dialect: Dialect) -> str:
    """The delimiter by which most of the first rows have as many columns as the header, else as most rows.

    Where none has, it is that of the file's extension: a tab, or a comma.
    """
    with opened(file) as source:
        text = source.read(SAMPLE_BYTES).decode(dialect.encoding or "utf-8", "replace")
    if declared := _SEPARATOR_LINE.match(text):
        return declared[1]
    lines = [line for line in text.splitlines(keepends=True) if not _RULE.fullmatch(line)]
    whole = (lines[:-1] or lines)[(dialect.header_row or 1) - 1 :]  # the last line may be cut
    first = "\t" if content_name(file).lower().endswith(".tsv") else ","
    scores = {one: _score(whole, one, dialect.quoting) for one in dict.fromkeys((first, *DELIMITERS))}
    if not max(scores.values())[0] > 0.5:  # perhaps since a title stands above the header
        quotings: tuple[Quoting, ...] = (dialect.quoting, csv.QUOTE_NONE)
        scores = {one: max(_score(whole, one, quoting, of_most=True) for quoting in quotings) for one in scores}
    return max(scores, key=lambda one: scores[one])


def _score(
    lines: Iterable[str], delimiter: str, quoting: Quoting = csv.QUOTE_MINIMAL, *, of_most: bool = False
) -> tuple[float, int]:
    """The share of rows that have as many columns as the header or as most rows, and this number; nothing for one."""
    widths: list[int] = []
    with suppress(csv.Error):
        for cells in islice(filter(None, csv.reader(lines, delimiter=delimiter, quoting=quoting)), SAMPLE_ROWS):
            widths.append(len(cells))
    width = max(widths, key=lambda one: (widths.count(one), one), default=0) if of_most else widths[0] if widths else 0
    return (round(widths.count(width) / len(widths), 1), width) if width > 1 else (0.0, 0)
