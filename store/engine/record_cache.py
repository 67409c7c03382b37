"""Record cache: decoded records by the bytes that they were decoded from.

Equal bytes are an equal record, so an entry is never stale, and a write to one node leaves all others cached. A hit
saves decoding, and serializing the record again (`Record.fragments`). A cached record is the same object for all
requests, so its lists and dictionaries must not be changed.
"""

from collections.abc import Callable, Iterable

from store.bounded_cache import BoundedCache
from store.model.records import Record

# Memory of an entry: its content twice, as read and as values, and so much beside it. Measured were 2,600 bytes for a
# record whose content has 455 and that was serialized once, 2,930 where it was serialized in three ways.
RECORD_BYTES = 1_900
CONTENT_TIMES = 2


class RecordCache:
    """The records that were read last, up to so many bytes; none where that is 0."""

    def __init__(self, max_bytes: int) -> None:
        self._records: BoundedCache[bytes, Record] = BoundedCache("records", max_bytes, weigh=_size)

    def records(self, contents: Iterable[bytes], decode: Callable[[bytes], Record]) -> list[Record]:
        """The records of these contents, decoded where they are not cached; raises what `decode` raises."""
        if not self._records.max_weight:
            return [decode(content) for content in contents]
        return self._records.get_all(contents, lambda content: decode(content).with_fragments())


def _size(content: bytes, record: Record) -> int:
    return CONTENT_TIMES * len(content) + RECORD_BYTES
