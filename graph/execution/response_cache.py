"""Whole answers, served again as long as it is proven that nothing they were made of has changed.

A store that knows its version (SQLite) proves it by that. On DynamoDB the proof are the stamps of all trees and
hierarchies that an answer was read from, asked for in one strong read. Since index reads trail behind the table, an
answer is kept only if every such stamp still has, after the reads, the number that this server had first seen a settle
time before they began: then nothing was on its way into an index while they ran. So a new query is kept at its second
asking at the earliest, and costs nothing more at its first.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from hashlib import blake2b

from resolvers.access.grants import Grants
from resolvers.session.outcomes import raise_first_error
from resolvers.session.request import Request

MAX_AGE_SECONDS = 60.0
ENTRY_BYTES = 1_000  # what an entry takes beside its data
MAX_SIGHTINGS = 100_000  # numbers of stamps that are remembered, and questions


@dataclass(frozen=True)
class Entry:
    """A response as JSON, what proves it, and when it was read, in seconds of a steady clock."""

    told: bytes
    version: object
    stamps: dict[str, int]
    read_at: float
    etag: str = field(default="")

    @classmethod
    def of(cls, told: bytes, version: object, stamps: dict[str, int], read_at: float, grants: Grants | None) -> "Entry":
        return cls(told, version, stamps, read_at, etag_of(told, grants))


class ResponseCache:
    """The answers used last, up to so many bytes; none where that is 0."""

    def __init__(self, max_bytes: int, *, settle_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_bytes = max_bytes
        self._settle = settle_seconds
        self._clock = clock
        self._entries: OrderedDict[Hashable, Entry] = OrderedDict()
        self._bytes = 0
        self._asked: OrderedDict[Hashable, float] = OrderedDict()
        self._sightings: OrderedDict[str, tuple[int, float]] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """What is kept by now."""
        return self._bytes

    def __bool__(self) -> bool:
        return self._max_bytes > 0

    def proven(self, question: Hashable, version: object) -> Entry | None:
        """The kept answer, if the store's version proves it to be current, which takes no read."""
        entry = self._entries.get(question)
        if entry is None or version is None or entry.version != version:
            return None
        self._entries.move_to_end(question)
        return entry

    async def get(self, question: Hashable, request: Request) -> Entry | None:
        """The kept answer, if it is proven to be current; on DynamoDB that takes one read of its stamps."""
        entry = self._entries.get(question)
        if entry is None:
            return None
        is_current = await self._is_current(entry, request)
        if self._entries.get(question) is entry:  # another request may have dropped it while this one read the proof
            if is_current:
                self._entries.move_to_end(question)
            else:
                self._drop(question)
        return entry if is_current else None

    async def put(self, question: Hashable, told: bytes, request: Request, began: float) -> None:
        """Keep an answer that `request` has read since `began`, if it can be proven; an answer with errors never is."""
        if len(told) + ENTRY_BYTES > self._max_bytes or not request.state.is_cacheable:
            return
        version = request.state.store_version
        stamps: dict[str, int] = {}
        if version is None:
            if not self._is_asked_again(question, began) or len(request.state.partitions_read) >= request.reads.units:
                return
            stamps = await request.state.current_version_numbers()
            if not self._is_settled(stamps, began):
                return
        self._drop(question)
        self._entries[question] = Entry.of(told, version, stamps, began, request.grants)
        self._bytes += len(told) + ENTRY_BYTES
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    async def _is_current(self, entry: Entry, request: Request) -> bool:
        if entry.version is not None:
            return entry.version == request.state.store_version
        if self._clock() - entry.read_at > MAX_AGE_SECONDS:
            return False
        versions = await request.state.versions_of(entry.stamps)
        raise_first_error(versions.values())
        return all(request.state.tree_versions[tree].n == n for tree, n in entry.stamps.items())

    def _is_asked_again(self, question: Hashable, now: float) -> bool:
        """Whether this was asked a short time ago already; remembers that it is asked now."""
        before = self._asked.pop(question, None)
        self._asked[question] = now
        if len(self._asked) > MAX_SIGHTINGS:
            self._asked.popitem(last=False)
        return before is not None and now - before < MAX_AGE_SECONDS

    def _is_settled(self, stamps: dict[str, int], began: float) -> bool:
        """Whether all these numbers were seen long enough before; remembers them as seen now."""
        settled = True
        for tree, n in stamps.items():
            seen, since = self._sightings.get(tree, (-1, 0.0))
            if seen != n:
                self._sightings[tree] = n, self._clock()
                if len(self._sightings) > MAX_SIGHTINGS:
                    self._sightings.popitem(last=False)
            settled = settled and seen == n and began - since >= self._settle
        return settled

    def _drop(self, question: Hashable) -> None:
        entry = self._entries.pop(question, None)
        if entry is not None:
            self._bytes -= len(entry.told) + ENTRY_BYTES


def etag_of(told: bytes, grants: Grants | None = None) -> str:
    """An entity tag for a response, as somebody who may see this gets it."""
    return '"' + blake2b(told, digest_size=16, key=sight_of(grants)).hexdigest() + '"'


def sight_of(grants: Grants | None) -> bytes:
    """What differs where callers may see other things."""
    return b"" if grants is None else grants.digest
