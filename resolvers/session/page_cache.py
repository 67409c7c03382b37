"""Page cache: pages, nodes and items that earlier requests read and decoded, valid for one version of the store.

The store's version is a value that differs after any write by anyone. A store that cannot read its version without a
request (DynamoDB) is not cached here. A request that began at another version neither reads the cache nor adds to it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

# Memory of a record with the JSON cached on it. Measured: 1,350 bytes after one query, 2,150 after three.
RECORD_BYTES = 2_000


class PageCache:
    """Least recently used cache, bounded by `max_bytes` as estimated from the number of records of each entry."""

    def __init__(self, max_bytes: int) -> None:
        self._max_records = max_bytes // RECORD_BYTES
        self._store_version: object = None
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._records = 0

    def use_version(self, store_version: object) -> None:
        """Drop all entries unless they were read at this version of the store."""
        if store_version != self._store_version:
            self._store_version = store_version
            self._entries.clear()
            self._records = 0

    def get(self, store_version: object, key: Hashable) -> Any:
        """The entry that was read at this version of the store, or None."""
        if store_version != self._store_version:
            return None
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def put(self, store_version: object, key: Hashable, entry: Any, records: int) -> None:
        """Add an entry of so many records, unless it was read at another version or is larger than the cache."""
        if store_version != self._store_version or records > self._max_records or key in self._entries:
            return
        self._entries[key] = entry, records + 1
        self._records += records + 1
        while self._records > self._max_records:
            _, (_, evicted) = self._entries.popitem(last=False)
            self._records -= evicted
