"""File formats of imports: each reads the rows of a file, and the text of its rows by number."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from store.transfer.rows import Rejection, Row

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "taxonomy",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(ENDINGS.values()))


class Format(Protocol):
    def rows(self, file: Path) -> Iterator[Row | Rejection]:
        """The rows in the order of the file; Rejection for one that is not valid."""
        ...

    def contents(self, file: Path) -> Iterator[tuple[int, str]]:
        """The number and the text of each row in the order of the file, for the file of rejected rows."""
        ...


def name_of(file: Path) -> str | None:
    """The format for the ending of a file's name, None where unknown."""
    return ENDINGS.get(file.suffix.lower())
