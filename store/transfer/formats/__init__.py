"""File formats of imports: each has a function from a file to the text and the row of each record, in file order."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from store.transfer.formats.rejected import RejectedRows
from store.transfer.formats.source import content_name
from store.transfer.rows import Rejection, Row

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "taxonomy", ".xlsx": "excel",
    ".parquet": "parquet", ".json": "json", ".geojson": "geojson", ".geojsonl": "geojson", ".geojsons": "geojson",
    ".ndgeojson": "geojson",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(ENDINGS.values()))


class Format(NamedTuple):
    """A format: the rows of a file, each with its text, and the form of its rejected rows."""

    read: Callable[[Path], Iterator[tuple[str, Row | Rejection]]]
    rejected: Callable[[Path], RejectedRows]


def name_of(file: Path) -> str | None:
    """The format for the extension of a file's name, of a compressed one for what is in it; None where unknown."""
    return ENDINGS.get(Path(content_name(file)).suffix.lower())
