"""Rejected rows: files that can be corrected and imported again, with unchanged rows and their reasons. CSV gets one
more column. In files of one row per line, the reason is on a separate line before the row, which imports skip.
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import orjson

REASON = "reason"
JSON_REASON = "$reason"  # no attribute can have this name


class RejectedRows(NamedTuple):
    """How a file of rejected rows is written: its extension, its head, and each row of its text and reason.

    Whatever its head, an earlier one begins with the `mark`.
    """

    ending: str
    head: bytes
    mark: bytes
    line: Callable[[str, str], bytes]


def rejected_table(header: Sequence[str], reason_column: str = REASON) -> RejectedRows:
    """Rejected rows of a table that is no text: CSV with its columns; the text of a row is a line of CSV."""
    head = csv_line([*header, free_name(reason_column, header)]).encode()
    return RejectedRows(
        ".csv", head + b"\n", head, lambda text, reason: f"{text},{csv_line([reason])}\n".encode("utf-8", "replace")
    )


def rejected_json() -> RejectedRows:
    """Rejected rows of lines of JSON."""

    def line(text: str, reason: str) -> bytes:
        return b"%b\n%b\n" % (orjson.dumps({JSON_REASON: reason}), _bytes(text))

    return RejectedRows(".jsonl", b"", b'{"' + JSON_REASON.encode(), line)


def rejected_taxonomy() -> RejectedRows:
    """Rejected rows of a taxonomy, whose comments begin with #."""

    def line(text: str, reason: str) -> bytes:
        return b"# %b\n%b\n" % (" ".join(reason.split()).encode(errors="replace"), _bytes(text))

    return RejectedRows(".txt", b"", b"# row ", line)


def _bytes(text: str) -> bytes:
    return text.rstrip("\r\n").encode("utf-8", "surrogateescape")


def csv_line(cells: Iterable[str], *, always_quoted: bool = False) -> str:
    """A line of CSV without its end."""
    output = io.StringIO()
    csv.writer(output, quoting=csv.QUOTE_ALL if always_quoted else csv.QUOTE_MINIMAL).writerow(cells)
    return output.getvalue().removesuffix("\r\n")


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, with a number where a column has it already."""
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
