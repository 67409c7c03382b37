"""Records that were decoded before, kept by the bytes that they were decoded from.

Equal bytes are an equal record, so what was just read is its own proof: nothing stale can be told, whoever writes, and
a write to one node leaves all others kept. What a hit saves is decoding, and telling what was told of the record before
(`Record.fragments`). A record that is found here is the same object for everybody, so nobody may change its lists and
dictionaries.
"""

from collections.abc import Callable

from store.model.records import Record

# What an entry takes in memory: its content twice, as it was read and as values, and so much beside it. Measured were
# 2,600 bytes for a record whose content has 455 and that was told once, 2,930 where it was told in three ways.
RECORD_BYTES = 1_900
CONTENT_TIMES = 2


class RecordCache:
    """The records that were read last, up to so many bytes; none where that is 0.

    They are in two generations. What is read comes into the young one, or back into it; when that is full, it becomes
    the old one, and what is left of the old one is forgotten. So a hit costs a search, and no order has to be kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._most = max_bytes // 2  # of one generation
        self._young: dict[bytes, Record] = {}
        self._old: dict[bytes, Record] = {}
        self._bytes = 0

    def of(self, content: bytes, decode: Callable[[bytes], Record]) -> Record:
        """The record of this content, decoded only where it is not kept; raises what `decode` raises."""
        if not self._most:
            return decode(content)
        record = self._young.get(content)
        if record is None:
            record = self._old.pop(content, None) or decode(content)
            self._keep(content, record)
        return record

    def _keep(self, content: bytes, record: Record) -> None:
        size = CONTENT_TIMES * len(content) + RECORD_BYTES
        if size > self._most:
            return
        if self._bytes + size > self._most:
            self._old, self._young, self._bytes = self._young, {}, 0
        self._young[content] = record.kept()
        self._bytes += size
