"""File formats of imports: each has a function from a file to the text and the row of each record, in file order."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from store.transfer.formats.files import RejectedRows, content_name
from store.transfer.rows import Rejection, Row

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "taxonomy", ".xlsx": "excel",
    ".parquet": "parquet", ".json": "json", ".geojson": "geojson", ".geojsonl": "geojson", ".geojsons": "geojson",
    ".ndgeojson": "geojson",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(ENDINGS.values()))


class Format(NamedTuple):
    """A format: the rows of a file, each with its text, and the form of its rejected rows.

    Rows `by_parent` have the ids of their parents, and no paths yet. With `has_keys` they have a column of keys.
    """

    read: Callable[[Path], Iterator[tuple[str, Row | Rejection]]]
    rejected: Callable[[Path], RejectedRows]
    by_parent: bool = False
    has_keys: bool = False


def name_of(file: Path) -> str | None:
    """The format for the extension of a file's name, of a compressed one for what is in it; None where unknown."""
    return ENDINGS.get(Path(content_name(file)).suffix.lower())
