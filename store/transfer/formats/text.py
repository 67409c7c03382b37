"""Texts: each line is a row of one cell."""

from collections.abc import Collection, Iterator
from pathlib import Path

from store.transfer.formats.csv import Dialect
from store.transfer.formats.lines import text_lines
from store.transfer.formats.source import Guess, RejectedRows
from store.transfer.formats.table import Table, TableRow


def text_table(file: Path, given: Dialect, taken: Collection[Guess] = ()) -> Table:
    """The table of the lines that are not blank, without blanks at their ends. Raises Doubt for a guessed encoding that
    is not `taken`.
    """
    dialect = given.encoded(file, taken)

    def rows() -> Iterator[TableRow]:
        for number, line, problem in text_lines(file, dialect.encoding or "utf-8", indented=True):
            yield number, [line], problem.reason if problem else None, line, ""

    return Table(
        file.name, [""], rows, rejected_by=lambda _: _rejected(dialect), guesses=dialect.sentences(given), is_text=True
    )


def _rejected(dialect: Dialect) -> RejectedRows:
    """Rejected rows of a text, whose comments begin with #, in its encoding, with its byte order mark."""
    encoding = dialect.text_encoding

    def line(text: str, reason: str) -> bytes:
        comment = f"# {' '.join(reason.split())}\n".encode(encoding, "replace")
        return comment + (text.rstrip("\r\n") + "\n").encode(encoding, dialect.errors)

    head = dialect.mark.encode(encoding)
    return RejectedRows(".txt", head, head + "# row ".encode(encoding), line)
