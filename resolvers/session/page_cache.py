"""Page cache: nodes and pages that earlier requests have read and decoded, as long as they are proven to be current.

Each entry has the proof under which it was read, and is used by requests that have an equal one. On SQLite the proof is
the version of the whole store, which differs after any write by anyone. On DynamoDB it stands for the version of the
entry's tree (`tree_version_cache.py`), which a request reads anyway.
"""

from collections.abc import Hashable
from typing import Any

from resolvers.session.coalesced_reads import CoalescedReads
from resolvers.session.tree_version_cache import TreeVersionCache
from store.cache import BoundedCache

# Memory of a record with its serialized fragments: measured were 1,350 bytes after one query, 2,150 after three.
RECORD_BYTES = 2_000

Page = tuple[Any, int, object]  # what was read, its weight in records, and its proof


class PageCache(BoundedCache[Hashable, Page]):
    """Pages by their requests, up to so many bytes as `RECORD_BYTES` makes of their records.

    `tree_versions` are those that the process has seen, `coalesced` its reads that requests share.
    """

    def __init__(self, max_bytes: int, tree_versions: TreeVersionCache | None = None) -> None:
        super().__init__("pages", max_bytes // RECORD_BYTES, weigh=_records_in, bytes_each=RECORD_BYTES)
        self.tree_versions = TreeVersionCache() if tree_versions is None else tree_versions
        self.coalesced = CoalescedReads()

    def page(self, key: Hashable, proof: object) -> Any:
        """The page that was cached for this request under this proof, or None."""
        found = self._entries.get(key)  # `get`, but without its call, since this is done for each node
        if found is None or found[2] != proof:
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return found[0]

    def peek(self, key: Hashable) -> tuple[Any, object] | None:
        """What was cached last for this request, and its proof, which may not hold any more; None without an entry."""
        found = self._entries.get(key)
        return None if found is None else (found[0], found[2])

    def put_page(self, key: Hashable, proof: object, page: Any, records: int) -> None:
        """Cache a page of so many records, which was read under this proof."""
        found = self._entries.get(key)
        if found is None or found[2] != proof:
            self.put(key, (page, records + 1, proof))


def _records_in(key: Hashable, page: Page) -> int:
    return page[1]
