"""Files of which each line is a row: bytes to lines, so that one that is no valid UTF-8 spoils no other."""

from collections.abc import Iterator
from pathlib import Path

_BOM = b"\xef\xbb\xbf"


def lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Number and content of each line that is not blank."""
    with file.open("rb") as source:
        for number, line in enumerate(source, start=1):
            if number == 1:
                line = line.removeprefix(_BOM)
            if line := line.strip():
                yield number, line


class Lines:
    """A format of lines."""

    def contents(self, file: Path) -> Iterator[tuple[int, str]]:
        for number, line in lines(file):
            yield number, line.decode(errors="replace")
