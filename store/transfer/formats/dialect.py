"""Dialect of a CSV file: its encoding and the delimiter of its columns, given or guessed from its bytes."""

import codecs
import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from store.errors import BadInput
from store.text import shorten
from store.transfer.formats.source import BLOCK_BYTES, content_name, opened

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {"\t": "tab", "comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t"}
SAMPLE_BYTES = 64_000
SAMPLE_ROWS = 50
MAX_CHARACTER_BYTES = 4
ENOUGH_CHARACTERS = 1_000  # beyond ASCII, after which the encoding is clear
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")


@dataclass(frozen=True)
class Dialect:
    """Encoding and delimiter; None where they are to be guessed."""

    encoding: str | None = None
    delimiter: str | None = None

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

    @property
    def errors(self) -> str:
        """The error handler that keeps bytes of another encoding, as surrogates."""
        return "surrogatepass" if self.encoding and _is_wide(self.encoding) else "surrogateescape"

    @property
    def text_encoding(self) -> str:
        """The encoding of a part of the file, without a byte order mark."""
        encoding = self.encoding or "utf-8"
        return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, encoding)

    def resolved(self, file: Path) -> "Dialect":
        """This dialect for a file, with what is None guessed."""
        dialect = self
        if dialect.encoding is None:
            dialect = replace(dialect, encoding=guess_encoding(file))
        if dialect.delimiter is None:
            dialect = replace(dialect, delimiter=_guess_delimiter(file, dialect))
        return dialect

    def sentence(self, given: "Dialect") -> str:
        """What was guessed, if it is not what most files have; else nothing."""
        encoding = self.encoding if given.encoding is None and self.encoding not in ("utf-8", "utf-8-sig") else None
        delimiter = self.delimiter if given.delimiter is None and self.delimiter != "," else None
        parts = [f"encoding {encoding}"] if encoding else []
        if delimiter:
            parts.append(f"delimiter {DELIMITER_NAMES.get(delimiter, delimiter)}")
        return f"{' and '.join(parts)}, guessed; --encoding and --delimiter set them." if parts else ""


def delimiter_named(text: str | None) -> str | None:
    """The delimiter of an option, which may be a name such as tab."""
    return text if text is None else DELIMITER_NAMES.get(text, text) if len(text) > 1 else text


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
    """The delimiter by which most of the first rows have as many columns as the header; a comma where none has."""
    with opened(file) as source:
        text = source.read(SAMPLE_BYTES).decode(dialect.encoding or "utf-8", "replace")
    if declared := re.match(r"sep=(.)\r?\n", text.removeprefix("\ufeff")):  # which Excel writes and reads
        return declared[1]
    lines = text.splitlines(keepends=True)
    is_tsv = content_name(file).lower().endswith(".tsv")
    best, best_score = "\t" if is_tsv else ",", (0.0, 0)
    for delimiter in dict.fromkeys((best, *DELIMITERS)):
        score = _score(lines[:-1] or lines, delimiter)  # the last line may be cut
        if score > best_score:
            best, best_score = delimiter, score
    return best


def looks_like_table(file: Path) -> bool:
    """Whether the first lines of a text file are rows of one width, and none is a path with ` > ` in it."""
    with opened(file) as source:
        text = source.read(SAMPLE_BYTES).decode(guess_encoding(file), "replace")
    lines = [line for line in text.splitlines(keepends=True)[:SAMPLE_ROWS] if not line.startswith("#")]
    if any(" > " in line for line in lines):
        return False
    return any(_score(lines, delimiter)[0] == 1 for delimiter in (DELIMITERS if len(lines) > 1 else "\t"))


def _score(lines: Iterable[str], delimiter: str) -> tuple[float, int]:
    """The share of rows that have as many columns as the header, and this number; nothing for one column."""
    widths: list[int] = []
    try:
        for cells in csv.reader(lines, delimiter=delimiter):
            if cells:
                widths.append(len(cells))
            if len(widths) >= SAMPLE_ROWS:
                break
    except csv.Error:
        pass
    if not widths or widths[0] < 2:
        return 0.0, 0
    return round(widths.count(widths[0]) / len(widths), 1), widths[0]


def _is_wide(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
