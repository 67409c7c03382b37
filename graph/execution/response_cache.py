"""Response cache: JSON responses, served again while it is proven that the store has not changed.

SQLite has a version of the whole store, which proves it. On DynamoDB the proof are the versions of all trees and
hierarchies that the response was read from, in one strong read. Indexes lag behind the table, so a response is cached
only if each version, read again after the response, was first seen by this server at least the settle time before the
response was begun: then no change was on its way into an index meanwhile. So a query is cached at its second request at
the earliest, and its first request costs nothing more.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from hashlib import blake2b

from resolvers.access.grants import Grants
from resolvers.session.outcomes import raise_first_error
from resolvers.session.request import Request
from store.bounded_cache import BoundedCache

MAX_AGE_SECONDS = 60.0
ENTRY_BYTES = 1_000  # of memory for an entry besides its body
MAX_SIGHTINGS = 100_000  # remembered tree versions, and remembered requests
SIGHTING_BYTES = 300  # of memory for each of them


@dataclass(frozen=True)
class Entry:
    """A response as JSON, its proof, and the start of its reads in seconds of a monotonic clock.

    The proof is the store's `version`, or `tree_versions` where the store has none.
    """

    body: bytes
    version: object
    tree_versions: dict[str, int]
    read_at: float
    etag: str = field(default="")

    @classmethod
    def of(
        cls, body: bytes, version: object, tree_versions: dict[str, int], read_at: float, grants: Grants | None
    ) -> "Entry":
        return cls(body, version, tree_versions, read_at, etag_of(body, grants))


class ResponseCache:
    """The most recently used responses, up to `max_bytes`; 0 disables the cache."""

    def __init__(self, max_bytes: int, *, settle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._settle = settle_seconds
        self._clock = clock
        self._entries: BoundedCache[Hashable, Entry] = BoundedCache("responses", max_bytes, weigh=_size)
        self._requests: BoundedCache[Hashable, float] = BoundedCache(
            "requests", MAX_SIGHTINGS, bytes_each=SIGHTING_BYTES
        )
        self._sightings: BoundedCache[str, tuple[int, float]] = BoundedCache(
            "tree_versions", MAX_SIGHTINGS, bytes_each=SIGHTING_BYTES
        )

    def __bool__(self) -> bool:
        return self._max_bytes > 0

    def proven(self, key: Hashable, version: object) -> Entry | None:
        """The entry if the store's version proves that it is current; without any read."""
        entry = self._entries.get(key)
        return None if entry is None or version is None or entry.version != version else entry

    async def get(self, key: Hashable, request: Request) -> Entry | None:
        """The entry if it is current; on DynamoDB this is one read of its tree versions."""
        entry = self._entries.get(key)
        if entry is None or await self._is_current(entry, request):
            return entry
        if self._entries.get(key) is entry:  # otherwise another request replaced it meanwhile
            self._entries.drop(key)
        return None

    async def put(self, key: Hashable, body: bytes, request: Request, started: float) -> None:
        """Cache a response without errors, which `request` has read since `started`, if it can be proven."""
        if len(body) + ENTRY_BYTES > self._max_bytes or not request.state.is_cacheable:
            return
        version = request.state.store_version
        tree_versions: dict[str, int] = {}
        if version is None:
            if not self._is_repeated(key, started) or len(request.state.partitions_read) >= request.reads.units:
                return
            tree_versions = await request.state.current_version_numbers()
            if not self._is_settled(tree_versions, started):
                return
        self._entries.put(key, Entry.of(body, version, tree_versions, started, request.grants))

    async def _is_current(self, entry: Entry, request: Request) -> bool:
        if entry.version is not None:
            return entry.version == request.state.store_version
        if self._clock() - entry.read_at > MAX_AGE_SECONDS:
            return False
        versions = await request.state.versions_of(entry.tree_versions)
        raise_first_error(versions.values())
        return all(request.state.tree_versions[tree].number == n for tree, n in entry.tree_versions.items())

    def _is_repeated(self, key: Hashable, now: float) -> bool:
        """Whether the same request came a short time ago; remembers this one."""
        before = self._requests.get(key)
        self._requests.put(key, now)
        return before is not None and now - before < MAX_AGE_SECONDS

    def _is_settled(self, tree_versions: dict[str, int], started: float) -> bool:
        """Whether all versions were seen a settle time before `started`; remembers them as seen now."""
        settled = True
        for tree, n in tree_versions.items():
            seen, since = self._sightings.get(tree) or (-1, 0.0)
            if seen != n:
                self._sightings.put(tree, (n, self._clock()))
            settled = settled and seen == n and started - since >= self._settle
        return settled


def _size(key: Hashable, entry: Entry) -> int:
    return len(entry.body) + ENTRY_BYTES


def etag_of(body: bytes, grants: Grants | None = None) -> str:
    """The entity tag of a response; it differs for callers who may see other nodes."""
    return '"' + blake2b(body, digest_size=16, key=visibility_key(grants)).hexdigest() + '"'


def visibility_key(grants: Grants | None) -> bytes:
    """Bytes that differ for callers who may see other nodes; empty for all nodes."""
    return b"" if grants is None else grants.digest
