"""Caches of what earlier requests have read: the last version of each tree, and nodes and pages as long as they are
current.

Everything that is cached of a tree is cached with a *validator*: a value that stands for one number of the tree's
version. A request that reads this number again, strongly consistent, as it does anyway, may use it without another
read, since every transaction on a tree increments the number. DynamoDB's indexes lag behind its table, so only a
*settled* number has a validator: one that was first seen at least the settle time before the reads of a request began,
without a move running in the tree. Then no change was still on its way into an index. Data that was read while the
number changed is cached under the old number, which no later read returns. On SQLite the validator of everything is the
version of the whole store, which differs after any write by anyone.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from resolvers.session.scheduler import CoalescedReads
from store.cache import BoundedCache
from store.engine import ReadUsage
from store.metadata.tree_version import TreeVersion
from store.model.keys import Key

VALIDATOR_SECONDS = 60.0  # after which a validator is renewed, if an index has lagged for longer than the settle time
MAX_TREES = 20_000
TREE_BYTES = 1_000  # memory of one version
# Memory of a record with its serialized fragments: measured were 1,350 bytes after one query, 2,150 after three.
RECORD_BYTES = 2_000

Page = tuple[Any, int, object]  # what was read, its weight in records, and its validator
ListKey = tuple[str, str, Hashable]  # the key of the owner, and what identifies the list among those of any owner
Partition = str | frozenset[str] | None
"""A partition that validates a page, or several together; None for all: only the version of the whole store does."""


@dataclass(slots=True)
class _Seen:
    """A version, when its number was first seen, when its latest read began, and its validator with the time of it."""

    version: TreeVersion
    first_seen: float
    read_at: float
    validator: object
    validator_since: float


class TreeVersionCache:
    """The versions that this process has seen last, by partition: of trees (`location#US`), and of the roots of
    hierarchies (`location`).

    `settle_seconds` is how long indexes may lag behind the table. A version that was read at most `max_stale_seconds`
    ago may be taken for current by queries. `clock` gives seconds.
    """

    def __init__(
        self,
        settle_seconds: float = 2.0,
        max_stale_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_stale_seconds = max_stale_seconds
        self.clock = clock
        self._settle_seconds = settle_seconds
        self._seen: BoundedCache[str, _Seen] = BoundedCache("tree_versions", MAX_TREES, bytes_each=TREE_BYTES)

    def see(self, version: TreeVersion, read_at: float) -> None:
        """Remember a version that was read, strongly consistent, by a read that began at `read_at`."""
        seen = self._seen.get(version.partition)
        if seen is None or version.number != seen.version.number:
            # Of two reads side by side the older one may end last; after a restore of the table numbers are lower.
            if seen is None or version.number > seen.version.number or read_at > seen.first_seen:
                now = self.clock()
                self._seen.put(version.partition, _Seen(version, now, read_at, object(), now))
        elif read_at > seen.read_at:
            seen.version, seen.read_at = version, read_at

    def latest(self, partition: str) -> TreeVersion | None:
        """The version that was seen last, perhaps long ago."""
        seen = self._seen.get(partition)
        return None if seen is None else seen.version

    def fresh(self, partition: str) -> TreeVersion | None:
        """The version that was seen last, if it is so new that a query may take it for current."""
        if not self.max_stale_seconds:
            return None
        seen = self._seen.get(partition)
        return None if seen is None or self.clock() - seen.read_at > self.max_stale_seconds else seen.version

    def validator(self, version: TreeVersion, began: float, top: Key | None = None) -> object | None:
        """The validator of what is read of a tree at this version since `began`; None unless it is settled.

        Of a subtree at a `top`, it is settled though a move is running elsewhere in the tree, which the subtree's
        readers may not see, and so must not notice by their reads.
        """
        seen = self._seen.get(version.partition)
        if seen is None or seen.version.number != version.number:
            return None
        if any(top is None or end.holds(top) or top.holds(end) for move in version.moves for end in move.ends):
            return None
        if began - seen.first_seen < self._settle_seconds:
            return None
        if began - seen.validator_since >= VALIDATOR_SECONDS:
            seen.validator, seen.validator_since = object(), began
        return seen.validator

    def last_validator(self, partition: str) -> object | None:
        """The validator of the version that was seen last, if it still is that of the tree."""
        seen = self._seen.get(partition)
        return None if seen is None else seen.validator


class PageCache(BoundedCache[Hashable, Page]):
    """Nodes and pages that earlier requests have read and decoded, by their requests, up to so many bytes as
    `RECORD_BYTES` makes of their records.

    Each entry has the validator under which it was read, and is used by requests that have an equal one.
    `tree_versions` are those that the process has seen, `coalesced` its reads that requests share.
    """

    def __init__(self, max_bytes: int, tree_versions: TreeVersionCache | None = None) -> None:
        super().__init__("pages", max_bytes // RECORD_BYTES, weigh=lambda _, page: page[1], bytes_each=RECORD_BYTES)
        self.tree_versions = TreeVersionCache() if tree_versions is None else tree_versions
        self.coalesced = CoalescedReads()

    def page(self, key: Hashable, validator: object | None) -> Any:
        """The page that was cached for this request under this validator, or None; nothing is under None."""
        found = self._entries.get(key)  # `get`, but without its call, since this is done for each node
        if found is None or found[2] != validator:
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return found[0]

    def pages(self, keys: Iterable[Hashable], validators: Iterable[object]) -> list[Any]:
        """The same for many requests, each with its validator."""
        entries, found = self._entries, list[Any]()
        for key, validator in zip(keys, validators, strict=False):
            entry = entries.get(key)
            if entry is None or entry[2] != validator:
                found.append(None)
            else:
                entries.move_to_end(key)
                self.hits += 1
                found.append(entry[0])
        return found

    def peek(self, key: Hashable) -> tuple[Any, object] | None:
        """What was cached last for this request, and its validator, which may be outdated; None without an entry."""
        found = self._entries.get(key)
        return None if found is None else (found[0], found[2])

    def put_page(self, key: Hashable, validator: object | None, page: Any, records: int) -> None:
        """Cache a page of so many records, which was read under this validator, if there is one."""
        found = self._entries.get(key)
        if validator is not None and (found is None or found[2] != validator):
            self.put(key, (page, records + 1, validator))

    def put_hint(self, key: Hashable, hint: Any) -> None:
        """Cache what has no validator; only `peek` returns it."""
        self.put(key, (hint, 1, object()))


class StoreValidators:
    """The validator of everything that an attempt at a response reads, where the store has a version; each member is as
    in `TreeValidators`.
    """

    __slots__ = ("_store_version",)
    need_versions = False
    has_lag = False

    def __init__(self, store_version: object) -> None:
        self._store_version = store_version

    def of(self, partition: Partition) -> object:
        return self._store_version

    def of_lists(self, keys: Iterable[ListKey]) -> Iterable[object]:
        return repeat(self._store_version)

    def of_version(self, version: TreeVersion | None, top: Key | None = None) -> object:
        return self._store_version

    def is_latest(self, partition: str | frozenset[str], validator: object) -> bool:
        return validator == self._store_version

    def use(self, version: TreeVersion) -> None:
        pass

    def drop(self, partitions: Iterable[str]) -> None:
        pass


class TreeValidators:
    """The validators of what an attempt at a response reads, where each tree has a version of its own: those of the
    trees whose versions it has read and may use, once these are settled.
    """

    need_versions = True
    """Whether versions have to be read before anything has a validator."""
    has_lag = True
    """Whether a read may miss what was written before it, unless it is strongly consistent."""

    def __init__(self, versions: TreeVersionCache) -> None:
        self._versions = versions
        self._began = versions.clock()
        self._used: dict[Partition, object] = {}

    def of(self, partition: Partition) -> object | None:
        """The validator of what is read of a partition, or of several together; None if nothing may be cached of it."""
        if isinstance(partition, frozenset):
            found = frozenset(map(self._used.get, partition))
            return found if found and None not in found else None
        return self._used.get(partition)

    def of_lists(self, keys: Iterable[ListKey]) -> Iterable[object]:
        """The validator of each of these lists."""
        return [self._used.get(key[0]) for key in keys]

    def of_version(self, version: TreeVersion | None, top: Key | None = None) -> object | None:
        """The validator of what is read of a tree of which this version was read, whether or not that is used; or only
        of the subtree at `top`, as `TreeVersionCache.validator`.
        """
        return None if version is None else self._versions.validator(version, self._began, top)

    def is_latest(self, partition: str | frozenset[str], validator: object) -> bool:
        """Whether a partition has this validator, or several have, if nothing was written since the process last read
        their versions.
        """
        last = self._versions.last_validator
        return validator == (frozenset(map(last, partition)) if isinstance(partition, frozenset) else last(partition))

    def use(self, version: TreeVersion) -> None:
        """Use what a tree version validates that this attempt has read, or may take for current."""
        self._used[version.partition] = self.of_version(version)

    def drop(self, partitions: Iterable[str]) -> None:
        """Use nothing of these partitions any more."""
        for partition in partitions:
            self._used.pop(partition, None)


class CachedPages:
    """The part of the page cache that one attempt at a response may use: what its `validators` validate.

    `cache` is all of it, for hints, and `versions` are those that the process has seen. `has_lookups` is whether
    results of lookups are in this part: not where running moves or grants hide nodes. With a `scope` its pages are
    apart from all others: what others have read may depend on what a caller may not see, and would show in her reads.
    """

    def __init__(self, page_cache: PageCache, validators: StoreValidators | TreeValidators, usage: ReadUsage) -> None:
        self.versions = page_cache.tree_versions
        self.has_lookups, self.scope = True, b""
        self.cache, self._validators, self._usage = page_cache, validators, usage

    def get(self, partition: Partition, key: Hashable) -> Any:
        """The page at a key, if nothing was written to its partition since it was read; else None."""
        return self.cache.page(self.scoped(key), self._validators.of(partition))

    def of_lists(self, keys: Sequence[ListKey]) -> list[Any]:
        """The pages at these keys, as `get`."""
        return self.cache.pages(list(map(self.scoped, keys)) if self.scope else keys, self._validators.of_lists(keys))

    def put(self, partition: Partition, key: Hashable, page: Any, records: int = 1) -> None:
        """Cache a page of so many records, if it has a validator."""
        self.cache.put_page(self.scoped(key), self._validators.of(partition), page, records)

    def scoped(self, key: Hashable) -> Hashable:
        """A key of this part of the cache."""
        return (self.scope, key) if self.scope else key

    def lookups(self, keys: Iterable[tuple[str | None, Hashable]]) -> list[Any] | None:
        """The results of lookups at all of these partitions and keys; None if one has to be read."""
        if not self.has_lookups or None in (found := [self.get(partition, key) for partition, key in keys]):
            return None
        if self._usage.trace is not None:
            self._usage.trace.records += sum(len(one) if isinstance(one, list) else 1 for one in found)
        return found

    def put_lookup(self, partition: str | None, key: Hashable, found: object) -> None:
        """Cache the result of a lookup. Its records have pages of their own."""
        if self.has_lookups:
            self.put(partition, key, found, records=0)
