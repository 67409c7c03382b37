"""Texts: each line is a row of one cell."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from store.transfer.formats.csv import Dialect
from store.transfer.formats.encodings import SAMPLE_BYTES, certain_encoding
from store.transfer.formats.lines import text_lines
from store.transfer.formats.source import Doubt, Guess, RejectedRows, opened
from store.transfer.formats.table import Table, TableRow


def text_table(file: Path, given: Dialect, taken: Collection[Guess] = ()) -> Table:
    """The table of the lines that are not blank, without blanks at their ends. Raises Doubt for a guessed encoding that
    is not `taken`.
    """
    dialect = _of_console(file, given, taken) or given.encoded(file, taken)

    def rows() -> Iterator[TableRow]:
        for number, line, problem in text_lines(file, dialect.encoding or "utf-8", indented=True):
            yield number, [line], problem.reason if problem else None, line, ""

    return Table(
        file.name, [""], rows, rejected_by=lambda _: _rejected(dialect), guesses=dialect.sentences(given), is_text=True
    )


def _of_console(file: Path, given: Dialect, taken: Collection[Guess]) -> Dialect | None:
    """The dialect of a tree that Windows has drawn in a code page of its console, of which no guess by words can know.

    Raises Doubt where it is not `taken`, since the pages differ in letters beyond ASCII.
    """
    with opened(file) as source:
        start = source.read(SAMPLE_BYTES)
    if given.encoding or certain_encoding(start) or not re.search(rb"[\xc0\xc3]\xc4{3}", start):
        return None
    seen = f"{file.name} is a tree that Windows has drawn, in the code page of its console"
    if Guess.ENCODING not in taken:
        raise Doubt(Guess.ENCODING, seen, *(("--encoding", page) for page in ("cp850", "cp437", "cp852", "cp866")))
    return replace(given, encoding="cp850", doubt=seen)


def _rejected(dialect: Dialect) -> RejectedRows:
    """Rejected rows of a text, whose comments begin with #, in its encoding, with its byte order mark."""
    encoding = dialect.text_encoding

    def line(text: str, reason: str) -> bytes:
        comment = f"# {' '.join(reason.split())}\n".encode(encoding, "replace")
        return comment + (text.rstrip("\r\n") + "\n").encode(encoding, dialect.errors)

    head = dialect.mark.encode(encoding)
    return RejectedRows(".txt", head, head + "# row ".encode(encoding), line)
