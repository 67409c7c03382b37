"""Record cache: decoded records by the rows that they were decoded from.

An equal row is an equal record, so an entry is never stale, and a write to one node leaves all others cached. A hit
saves decoding, and serializing the record again (`Record.fragments`). A cached record is the same object for all
requests, so its lists and dictionaries must not be changed.
"""

from collections.abc import Callable, Iterable
from typing import Any

from store.bounded_cache import BoundedCache
from store.model.records import Record

# Memory of an entry: its body twice, as read and as values, and so much beside it. Measured were 2,600 bytes for a
# record whose body had 455 and that was serialized once, 2,930 where it was serialized in three ways.
RECORD_BYTES = 1_900
CONTENT_TIMES = 2

Row = tuple[Any, ...]
"""The columns of a node, its body the last; they must be hashable."""


class RecordCache:
    """The records that were read last, up to so many bytes; none where that is 0."""

    def __init__(self, max_bytes: int) -> None:
        self._records: BoundedCache[Row, Record] = BoundedCache("records", max_bytes, weigh=_size)

    def records(self, rows: Iterable[Row], decode: Callable[[Row], Record]) -> list[Record]:
        """The records of these rows, decoded where they are not cached; raises what `decode` raises."""
        if not self._records.max_weight:
            return list(map(decode, rows))
        return self._records.get_all(rows, lambda row: decode(row).with_fragments())


def _size(row: Row, record: Record) -> int:
    return CONTENT_TIMES * len(row[-1]) + RECORD_BYTES
