"""Lines of a file as bytes, so that a line that is not valid UTF-8 does not affect others."""

from collections.abc import Iterator
from pathlib import Path

from store.transfer.rows import Rejection

MAX_LINE_BYTES = 10_000_000  # far more than the largest item
SHOWN_BYTES = 1_000  # of a longer one
TOO_LONG = f"The line is longer than {MAX_LINE_BYTES:,} bytes."
_BOM = b"\xef\xbb\xbf"


def lines(file: Path) -> Iterator[tuple[int, bytes | Rejection]]:
    """Number and content of each line that is not blank."""
    for number, line, is_long in _bounded(file):
        if is_long:
            yield number, Rejection(number, TOO_LONG)
        elif line:
            yield number, line


def _bounded(file: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Number and content of each line, and whether it is too long; of a long one the beginning alone."""
    with file.open("rb") as source:
        number = 0
        while line := source.readline(MAX_LINE_BYTES + 1):
            number += 1
            is_long = len(line) > MAX_LINE_BYTES
            if is_long:
                rest = line
                while rest and not rest.endswith(b"\n"):
                    rest = source.readline(MAX_LINE_BYTES)
                line = line[:SHOWN_BYTES]
            if number == 1:
                line = line.removeprefix(_BOM)
            yield number, line.strip(), is_long


class Lines:
    """Base of the formats in which each line is a row."""

    def contents(self, file: Path) -> Iterator[tuple[int, str]]:
        for number, line, _ in _bounded(file):
            if line:
                yield number, line.decode(errors="replace")
