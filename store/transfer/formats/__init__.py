"""The formats that files of nodes have: each tells a file's rows, and again the content of its rows by number."""

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
        """What each row says, in the order of the file."""
        ...

    def contents(self, file: Path) -> Iterator[tuple[int, str]]:
        """The number and the text of each row, in the order of the file, for those who must look at it."""
        ...


def name_of(file: Path) -> str | None:
    """The format that a file's ending promises."""
    return ENDINGS.get(file.suffix.lower())
