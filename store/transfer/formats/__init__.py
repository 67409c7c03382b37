"""File formats of imports: each has a function to the text and the row of each record, in file order."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from store.transfer.formats.rejected import RejectedRows
from store.transfer.rows import Rejection, Row


class Format(NamedTuple):
    """The format of a file: a function to its rows, each with its text, and the form of its rejected rows."""

    read: Callable[[], Iterator[tuple[str, Row | Rejection]]]
    rejected: RejectedRows
