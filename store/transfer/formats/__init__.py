"""File formats of imports: each has a function from a file to the text and the row of each record, in file order."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from store.transfer.formats.rejected import RejectedRows
from store.transfer.rows import Rejection, Row


class Format(NamedTuple):
    """A format: the rows of a file, each with its text, and the form of its rejected rows."""

    read: Callable[[Path], Iterator[tuple[str, Row | Rejection]]]
    rejected: Callable[[Path], RejectedRows]
