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
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, cast

from resolvers.session.scheduler import CoalescedReads
from store.cache import BoundedCache
from store.engine import ReadUsage
from store.metadata.tree_version import TreeVersion

VALIDATOR_SECONDS = 60.0  # after which a validator is renewed, if an index has lagged for longer than the settle time
MAX_TREES = 20_000
TREE_BYTES = 1_000  # memory of one version
# Memory of a record with its serialized fragments: measured were 1,350 bytes after one query, 2,150 after three.
RECORD_BYTES = 2_000

Page = tuple[Any, int, object]  # what was read, its weight in records, and its validator
Partition = str | frozenset[str] | None
"""A partition that validates a page, or several together; None for all: only the version of the whole store does."""
Validators = dict[str | None, object]
"""Validators by partition: a tree or the roots of a hierarchy; that of the whole store by None."""


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

    def validator(self, version: TreeVersion, began: float) -> object | None:
        """The validator of what is read of a tree at this version since `began`; None unless it is settled."""
        seen = self._seen.get(version.partition)
        if seen is None or seen.version.number != version.number or version.moves:
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

    def page(self, key: Hashable, validator: object) -> Any:
        """The page that was cached for this request under this validator, or None."""
        found = self._entries.get(key)  # `get`, but without its call, since this is done for each node
        if found is None or found[2] != validator:
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return found[0]

    def pages(self, keys: Iterable[Hashable], validators: Iterable[object]) -> list[Any]:
        """The same for many requests, each with its validator; None for one without a validator."""
        entries, found = self._entries, list[Any]()
        for key, validator in zip(keys, validators, strict=False):
            entry = entries.get(key)
            if entry is None or validator is None or entry[2] != validator:
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

    def put_page(self, key: Hashable, validator: object, page: Any, records: int) -> None:
        """Cache a page of so many records, which was read under this validator."""
        found = self._entries.get(key)
        if found is None or found[2] != validator:
            self.put(key, (page, records + 1, validator))

    def put_hint(self, key: Hashable, hint: Any) -> None:
        """Cache what has no validator; only `peek` returns it."""
        self.put(key, (hint, 1, object()))


class CachedPages:
    """The part of the page cache that one attempt at a response may use, and the validators under which it does.

    With a `store_version` that is the validator of everything. Without one each tree whose version the attempt has read
    has a validator of its own, once that version is settled; without it nothing of the tree is taken from the cache or
    added. `cache` is all of it, for hints, and `versions` are those that the process has seen. `has_lookups` is whether
    results of lookups are in this part: not where running moves or grants hide nodes.
    """

    def __init__(self, page_cache: PageCache, store_version: object, usage: ReadUsage) -> None:
        self.versions = page_cache.tree_versions
        self.has_lookups = True
        self.cache, self._usage = page_cache, usage
        self._store_version = store_version
        self._began = self.versions.clock()
        self._validators: Validators = {}

    def _validator(self, partition: Partition) -> object | None:
        """The validator of what is read of a partition; None if nothing may be cached of it."""
        if self._store_version is not None:
            return self._store_version
        if isinstance(partition, frozenset):
            found = frozenset(map(self._validators.get, partition))
            return None if None in found else found
        return self._validators.get(partition)

    def get(self, partition: Partition, key: Hashable) -> Any:
        """The page at a key, if nothing was written to its partition since it was read; else None."""
        validator = self._validator(partition)
        return None if validator is None else self.cache.page(key, validator)

    def of_lists(self, keys: Sequence[tuple[str, str, Hashable]]) -> list[Any]:
        """The pages at keys that begin with their partitions, as `get`."""
        if self._store_version is not None:
            return self.cache.pages(keys, repeat(self._store_version))
        return self.cache.pages(keys, [self._validators.get(key[0]) for key in keys])

    def put(self, partition: Partition, key: Hashable, page: Any, records: int = 1) -> None:
        """Cache a page of so many records, if it has a validator."""
        if (validator := self._validator(partition)) is not None:
            self.cache.put_page(key, validator, page, records)

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

    def validator(self, version: TreeVersion | None) -> object | None:
        """The validator of what is read of a tree, of which this version was read; None if nothing may be cached."""
        if self._store_version is not None or version is None:
            return self._store_version
        return self.versions.validator(version, self._began)

    def use_version(self, version: TreeVersion) -> None:
        """Use what a tree version validates that this request has read, or may take for current."""
        if (validator := self.validator(version)) is not None:
            self._validators[version.partition] = validator
        else:
            self._validators.pop(version.partition, None)

    def drop(self, partitions: Collection[str]) -> None:
        """Use nothing of these partitions any more."""
        for partition in partitions:
            self._validators.pop(partition, None)

    def validators(self, partitions: Collection[str]) -> Validators | None:
        """The validators of all that was read of these partitions; None if one has none."""
        if self._store_version is not None:
            return {None: self._store_version}
        found: Validators = {partition: self._validators.get(partition) for partition in partitions}
        return found if found and None not in found.values() else None

    def holds(self, validators: Validators) -> bool:
        """Whether all of these validators are those of this request."""
        return all(self._validator(partition) == validator for partition, validator in validators.items())

    def may_hold(self, validators: Validators) -> bool:
        """Whether these validators are current if nothing was written since their versions were read last."""
        if self._store_version is not None:
            return self.holds(validators)
        last = self.versions.last_validator
        return all(last(cast(str, partition)) == validator for partition, validator in validators.items())
