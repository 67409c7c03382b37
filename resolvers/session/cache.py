"""Cache of read data: the nodes and pages that earlier requests have read and decoded, and what validates them.

An entry is cached with the *token* of its partition, and is used while the partition has this token. A token stands for
one state of a partition. SQLite's file has one for all partitions, which is known at once and differs after any write
by anyone. On DynamoDB a tree has the token of its version, which a request reads anyway, strongly consistent, and which
every transaction on the tree increments. DynamoDB's indexes lag behind its table, so only a *settled* version has a
token: one that was first seen at least the settle time before the reads of a request began, without a move running in
the tree. Then no change was still on its way into an index. Data that was read while the version changed is cached
under the old token, which no later request has.

What has no token is a `Hint`: it decides only what is read, never what is returned.
"""

import time
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from resolvers.session.reads import CoalescedReads
from store.bounded_cache import BoundedCache
from store.engine.usage import ReadUsage
from store.metadata.tree_version import TreeVersion
from store.model.keys import Key
from store.model.records import Record

RECORD_BYTES = 2_000
"""Memory of a record with its serialized fragments: measured were 1,350 bytes after one query, 2,150 after three."""

MAX_TREES = 20_000
TREE_BYTES = 1_000
"""Memory of the version of a tree."""

TOKEN_SECONDS = 60.0
"""Time after which a token is renewed, in case an index has lagged for longer than the settle time."""

Partition: TypeAlias = str | None
"""A tree (`location#US`) or the roots of a hierarchy (`location`); None for the whole store."""
Tokens: TypeAlias = dict[Partition, object]
"""The validator of cached data: its partitions with the tokens that they had."""
Entry: TypeAlias = tuple[Any, int, object]
"""What was read, its weight in records, and the token of its partition."""


class Hint(NamedTuple):
    """What was read once, perhaps long ago, at a time by the clock of the cache. Nothing proves that it still holds."""

    value: Any
    read_at: float


class PageCache(BoundedCache[Hashable, Entry]):
    """The data that all requests of a process share: pages by their requests, up to so many bytes as `RECORD_BYTES`
    makes of their records.

    `tree_versions` are those that the process has seen, `coalesced` its reads that requests share.
    """

    def __init__(self, max_bytes: int, tree_versions: "TreeVersionCache | None" = None) -> None:
        super().__init__("pages", max_bytes // RECORD_BYTES, weigh=_records_in, bytes_each=RECORD_BYTES)
        self.tree_versions = TreeVersionCache() if tree_versions is None else tree_versions
        self.coalesced = CoalescedReads()

    def page(self, key: Hashable, token: object) -> Any:
        """The page that was cached at a key under this token, or None."""
        found = self._entries.get(key)  # `get`, but without its call, since this is done for each node
        if found is None or found[2] != token:
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return found[0]

    def last(self, key: Hashable) -> Entry | None:
        """What was cached last at a key, whether or not its token is still that of its partition."""
        return self._entries.get(key)

    def put_page(self, key: Hashable, token: object, page: Any, records: int) -> None:
        """Cache a page of so many records, which was read under this token."""
        found = self._entries.get(key)
        if found is None or found[2] != token:
            self.put(key, (page, records + 1, token))


def _records_in(key: Hashable, entry: Entry) -> int:
    return entry[1]


class CachedPages:
    """The cached pages that one attempt at a response may use and adds to.

    `whole` is the token of the whole store, None where only single trees have one. `has_lookups` is whether results of
    lookups are among the pages: not where running moves or grants hide nodes.
    """

    def __init__(self, cache: PageCache, whole: object | None, usage: ReadUsage) -> None:
        self.has_lookups = True
        self.whole = whole
        self._usage = usage
        self._cache, self._versions = cache, cache.tree_versions
        self._began = self._versions.clock()
        self._tokens: Tokens = {}

    def token(self, partition: Partition) -> object | None:
        """The token of a partition; None if nothing of it may be cached, as long as its version was not read."""
        return self._tokens.get(partition) if self.whole is None else self.whole

    def get(self, partition: Partition, key: Hashable) -> Any:
        """The page at a key, if nothing was written to its partition since it was read; else None."""
        token = self._tokens.get(partition) if self.whole is None else self.whole
        return None if token is None else self._cache.page(key, token)

    def put(self, partition: Partition, key: Hashable, page: Any, records: int = 1) -> None:
        """Cache a page of so many records, if its partition has a token."""
        if (token := self.token(partition)) is not None:
            self._cache.put_page(key, token, page, records)

    def lookups(self, keys: Iterable[tuple[Partition, Hashable]]) -> list[Any] | None:
        """The results of lookups at all of these partitions and keys; None if one has to be read."""
        if not self.has_lookups:
            return None
        found = []
        for partition, key in keys:
            one = self.get(partition, key)
            if one is None:
                return None
            found.append(one)
        if self._usage.trace is not None:
            self._usage.trace.records += sum(len(one) if isinstance(one, list) else 1 for one in found)
        return found

    def put_lookup(self, partition: Partition, key: Hashable, found: object) -> None:
        """Cache the result of a lookup. Its records have pages of their own."""
        if self.has_lookups:
            self.put(partition, key, found, records=0)

    # -- validators ----------------------------------------------------------------------------------------------------

    def tokens(self, partitions: Collection[str]) -> Tokens | None:
        """The validator of what was read of these partitions; None if one has no token."""
        if self.whole is not None:
            return {None: self.whole}
        found: Tokens = {partition: self._tokens.get(partition) for partition in partitions}
        return found if found and None not in found.values() else None

    def hold(self, tokens: Tokens) -> bool:
        """Whether these are the tokens of their partitions, as far as these are known by now."""
        return all(self.token(partition) == token for partition, token in tokens.items())

    def may_hold(self, tokens: Tokens) -> bool:
        """Whether these are the tokens of their partitions if nothing was written since their versions were read."""
        last = self._versions.last_token
        if self.whole is not None:
            return self.hold(tokens)
        return all(last(one) == token for one, token in tokens.items())

    def use_version(self, version: TreeVersion) -> None:
        """Use the token of a tree version that the request has read, or may take for current."""
        if (token := self._versions.token(version, self._began)) is not None:
            self._tokens[version.partition] = token
        else:
            self._tokens.pop(version.partition, None)

    def drop(self, partitions: Collection[str]) -> None:
        """Use nothing of these partitions any more."""
        for partition in partitions:
            self._tokens.pop(partition, None)

    # -- hints ---------------------------------------------------------------------------------------------------------
    # A store whose token is known at once has none: what is not proven there is soon read.

    def hint(self, key: Hashable) -> Hint | None:
        """The hint at a key."""
        entry = self._cache.last(key) if self.whole is None else None
        return None if entry is None else entry[0]

    def put_hint(self, key: Hashable, value: Any) -> None:
        """Remember what has no token."""
        if self.whole is None:
            self._cache.put_page(key, object(), Hint(value, self._began), 0)

    def last_node(self, key: Key) -> Record | None:
        """The node at a key as it was cached last, perhaps long ago."""
        entry = self._cache.last(key)
        return None if entry is None else entry[0]

    def last_version(self, tree: str) -> TreeVersion | None:
        """The version of a tree that this process has read last, perhaps long ago."""
        return self._versions.latest(tree)

    def last_lookups(self, keys: Iterable[Hashable]) -> list[Entry] | None:
        """What was cached last at these keys, to be confirmed; None if one of them has nothing."""
        found: list[Entry] = []
        for key in keys:
            entry = self._cache.last(key)
            if entry is None:
                return None
            found.append(entry)
        return found

    def may_have(self, partition: Partition, key: Hashable) -> bool:
        """Whether a page is cached, if nothing was written to its partition since that was read last."""
        entry = self._cache.last(key)
        return entry is not None and self.may_hold({partition: entry[2]})


@dataclass(slots=True)
class _Seen:
    """A version, when its number was first seen, when its latest read began, and its token with the time of it."""

    version: TreeVersion
    first_seen: float
    read_at: float
    token: object
    token_since: float


class TreeVersionCache:
    """The last version of each tree, and of the roots of each hierarchy, that this process has seen, with its token.

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
            # Of two concurrent reads the older one may end last; after a restore of the table numbers are lower.
            if seen is None or version.number > seen.version.number or read_at > seen.first_seen:
                now = self.clock()
                self._seen.put(version.partition, _Seen(version, now, read_at, object(), now))
        elif read_at > seen.read_at:
            seen.version, seen.read_at = version, read_at

    def latest(self, partition: str) -> TreeVersion | None:
        """The version that was seen last; it may be outdated."""
        seen = self._seen.get(partition)
        return None if seen is None else seen.version

    def fresh(self, partition: str) -> TreeVersion | None:
        """The version that was seen last, if it is so new that a query may take it for current."""
        if not self.max_stale_seconds:
            return None
        seen = self._seen.get(partition)
        return None if seen is None or self.clock() - seen.read_at > self.max_stale_seconds else seen.version

    def token(self, version: TreeVersion, began: float) -> object | None:
        """The token of a tree at this version for what is read since `began`; None unless the version is settled."""
        seen = self._seen.get(version.partition)
        if seen is None or seen.version.number != version.number or version.moves:
            return None
        if began - seen.first_seen < self._settle_seconds:
            return None
        if began - seen.token_since >= TOKEN_SECONDS:
            seen.token, seen.token_since = object(), began
        return seen.token

    def last_token(self, partition: Partition) -> object | None:
        """The token of the version that was seen last, if it still is that of the tree."""
        seen = None if partition is None else self._seen.get(partition)
        return None if seen is None else seen.token
