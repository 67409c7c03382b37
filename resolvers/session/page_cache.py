"""Page cache: what earlier requests have read and decoded, as long as the store proves that nothing has changed since.

The proof is the store's version, a value that differs after any write by anyone; a store that cannot tell it without a
read (DynamoDB) caches nothing here. A request that began at another version neither takes from here nor adds to it.
"""

from collections.abc import Hashable
from typing import Any

from store.bounded_cache import BoundedCache

# Memory of a record with its serialized fragments: measured were 1,350 bytes after one query, 2,150 after three.
RECORD_BYTES = 2_000

Page = tuple[Any, int]  # what was read, and its weight in records


class PageCache(BoundedCache[Hashable, Page]):
    """Pages by their requests, up to so many bytes as `RECORD_BYTES` makes of their records."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__("pages", max_bytes // RECORD_BYTES, weigh=_records_in, bytes_each=RECORD_BYTES)
        self._version: object = None

    def use_version(self, version: object) -> None:
        """Remove everything unless the store is still at this version."""
        if version != self._version:
            self._version = version
            self.clear()

    def page(self, version: object, key: Hashable) -> Any:
        """The page that was cached for this request at this version, or None."""
        if version != self._version:
            return None
        found = self._entries.get(key)  # `get`, but without its call, since this is done for each node
        if found is None:
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return found[0]

    def put_page(self, version: object, key: Hashable, page: Any, records: int) -> None:
        """Cache a page of so many records, which was read at this version or later."""
        if version == self._version and key not in self._entries:
            self.put(key, (page, records + 1))


def _records_in(key: Hashable, page: Page) -> int:
    return page[1]
