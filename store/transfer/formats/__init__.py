"""File formats of imports: each is a function from a file to the text and the row of each record, in file order."""

from collections.abc import Callable, Iterator
from pathlib import Path

from store.transfer.rows import Rejection, Row

Format = Callable[[Path], Iterator[tuple[str, Row | Rejection]]]

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "taxonomy",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(ENDINGS.values()))


def name_of(file: Path) -> str | None:
    """The format for the ending of a file's name, None where unknown."""
    return ENDINGS.get(file.suffix.lower())
