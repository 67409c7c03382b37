"""Response cache: JSON responses, served again while the data that they were read from is proven to be unchanged.

The proofs are those of the page cache (`resolvers/session/cache.py`): the version of the whole store on
SQLite, on DynamoDB the versions of all trees and hierarchies that the response was read from, in one strong read.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b

from resolvers.access.grants import Grants
from resolvers.session.cache import Proofs
from resolvers.session.reads import ReadState
from store.cache import BoundedCache

ENTRY_BYTES = 1_000  # of memory for an entry besides its body
PARTITION_BYTES = 200  # of memory for each partition, with its proof


@dataclass(frozen=True)
class Entry:
    """A response as JSON, the proofs of all that it was read from, and the trees and hierarchies that it depends on."""

    body: bytes
    proofs: Proofs
    etag: str
    partitions: frozenset[str]


class ResponseCache:
    """The most recently used responses, up to `max_bytes`; 0 disables the cache."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: BoundedCache[Hashable, Entry] = BoundedCache("responses", max_bytes, weigh=_size)

    def __bool__(self) -> bool:
        return self._entries.max_weight > 0

    def proven(self, key: Hashable, state: ReadState) -> Entry | None:
        """The entry if it is proven to be current without any read."""
        entry = self._entries.get(key)
        return None if entry is None or not state.holds(entry.proofs) else entry

    async def get(self, key: Hashable, state: ReadState) -> Entry | None:
        """The entry if it is current; on DynamoDB this is one read of its tree versions."""
        entry = self._entries.get(key)
        if entry is None or await state.prove(entry.proofs):
            return entry
        if self._entries.get(key) is entry:  # otherwise another request replaced it meanwhile
            self._entries.drop(key)
        return None

    def put(self, key: Hashable, body: bytes, state: ReadState) -> None:
        """Cache a response without errors, which was made of what `state` has read, if that can be proven."""
        if state.is_cacheable and (proofs := state.proofs()) is not None:
            self._entries.put(key, Entry(body, proofs, etag_of(body), frozenset(state.partitions_read)))


def _size(key: Hashable, entry: Entry) -> int:
    return len(entry.body) + ENTRY_BYTES + PARTITION_BYTES * len(entry.partitions)


def etag_of(body: bytes, grants: Grants | None = None) -> str:
    """The entity tag of a response; it differs for callers who may see other nodes."""
    return '"' + blake2b(body, digest_size=16, key=b"" if grants is None else grants.digest).hexdigest() + '"'
