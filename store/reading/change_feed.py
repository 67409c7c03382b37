"""Change feed: the transactions on a tree in order, for consumers that keep a copy of it; and its end, cached, with the
places where an index may still show a node.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, cast

from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CursorExpired
from store.metadata.change_log import Event, LogEntry, log_content
from store.model.items import Item
from store.model.keys import Index, Key, first_rank, hierarchy_of, last_segment, log_key, node_key
from store.model.paths import parse_path
from store.model.ranges import KeyRange
from store.reading.active_moves import tree_version
from store.reading.pages import PAGE_ITEMS, Pages

MAX_CACHED_LOGS = 100
FIRST_PAGE_ITEMS = 25  # which is all of it in a tree that is written to now and then
_END = "!:"  # after all items of a log
LAST_NUMBER = 10**12 - 1


@dataclass(frozen=True)
class Transaction:
    """One transaction: the number of the tree version after it, its time (RFC 3339, UTC) and what it changed."""

    number: int
    at: str
    entries: Sequence[LogEntry]


async def transactions(store: Store, tree: str, since: int | None, limit: int, reads: ReadUsage) -> list[Transaction]:
    """The first `limit` transactions after a number, or of all that are stored; one range read.

    Their numbers have no gap: without `since` the list begins after the last gap that expiry has left. Raises
    CursorExpired where transactions after `since` have expired.
    """
    # The read begins with the log item of `since` itself: as long as that exists, so do all after it.
    start = max(1, since or 1)
    key_range = KeyRange(Index.TABLE, tree, log_key(tree, start).sk, log_key(tree, LAST_NUMBER).sk)
    items = await store.range(key_range, reads, limit=limit + 1, strong=True)
    found: list[Transaction] = []
    async for some in in_chunks(items, 4):  # log items may be large
        found += map(_transaction, some)
    if since is None:
        return _without_gap(found)[:limit]
    if found and found[0].number == start:
        if len(_without_gap(found)) < len(found):
            raise expired()
    elif (await tree_version(store, tree, reads)).number != since:
        raise expired()
    return [transaction for transaction in found if transaction.number > since][:limit]


def _without_gap(found: list[Transaction]) -> list[Transaction]:
    """The transactions after the last gap in the numbers."""
    gaps = [index for index, (one, following) in enumerate(pairwise(found), 1) if following.number != one.number + 1]
    return found[gaps[-1] :] if gaps else found


def expired() -> CursorExpired:
    """The error for a cursor after which transactions may be missing."""
    return CursorExpired("The changes after this cursor have expired; read the tree again, then its changes.")


def _transaction(item: Item) -> Transaction:
    content = log_content(item)
    return Transaction(content.number, content.at, content.entries)


class ChangedPlace(NamedTuple):
    """The key of a node that a transaction put there or removed; with its rank where the log has it."""

    key: Key
    rank: str | None


@dataclass(frozen=True, slots=True)
class RecentChange:
    """The places that one transaction changed. `subtrees` are tops that moved or were deleted with all below them.

    `number` is that of the tree version after the transaction, `at` its time in seconds since 1970.
    """

    number: int
    at: float
    places: list[ChangedPlace] = field(default_factory=list)
    subtrees: list[Key] = field(default_factory=list)

    @classmethod
    def of(cls, item: Item) -> "RecentChange":
        """The changes in a log item."""
        partition = cast(str, item["pk"])
        content = log_content(item)
        change = cls(content.number, content.seconds)
        for entry in content.entries:
            if entry.event is Event.UPDATED:
                continue
            keys = list(_keys(partition, entry))
            is_new = entry.event is Event.CREATED
            change.places.extend(
                [ChangedPlace(key, first_rank(entry.level, last_segment(*key)) if is_new else None) for key in keys]
            )
            if entry.event is Event.DELETED or entry.source != entry.target:
                change.subtrees.extend(keys)
        ranks = content.ranks.items()
        change.places.extend([ChangedPlace(_key(partition, name), rank) for name, rank in ranks])
        return change


class RecentChanges:
    """The ends of change logs as they were last read; one for a process and a store.

    Log items never change, so the next read continues after the end that was read.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logs: dict[str, list[RecentChange]] = {}

    async def since(self, partition: str, time: float, reads: ReadUsage) -> list[RecentChange]:
        """The changes of a log from a time on, in seconds since 1970, in their order; strongly read."""
        cached = self._logs.pop(partition, [])
        last = cached[-1].number if cached else 0
        found = await self._read(partition, last, time, reads)
        if found and found[0].number != last + 1:
            cached = []
        changes = [change for change in (*cached, *found) if change.at >= time]
        self._logs[partition] = changes
        while len(self._logs) > MAX_CACHED_LOGS:
            del self._logs[next(iter(self._logs))]
        return changes

    async def _read(self, partition: str, last: int, time: float, reads: ReadUsage) -> list[RecentChange]:
        """The log after the number `last`, or as much of its end as is not older than `time`."""
        key_range = KeyRange(Index.TABLE, partition, log_key(partition, last + 1).sk, _END)
        pages = Pages(self._store, key_range, reads, limit=FIRST_PAGE_ITEMS, reverse=True)
        found: list[RecentChange] = []
        async for page in pages:
            found += map(RecentChange.of, page)
            if found[-1].at < time:
                break
            pages.limit = PAGE_ITEMS
        return found[::-1]


def _keys(partition: str, entry: LogEntry) -> Iterable[Key]:
    """Where the node of an entry is, and of a move where it was."""
    if entry.source is None or entry.target is None:
        return [_key(partition, entry.sk)]
    hierarchy = hierarchy_of(f"{partition}#")
    return dict.fromkeys([node_key(hierarchy, parse_path(text)) for text in (entry.source, entry.target)])


def _key(partition: str, name: str) -> Key:
    """The key of a node as the log of its tree names it, or, of a root, the log of its hierarchy."""
    return Key(partition, name) if "#" in partition else Key(f"{partition}{name[:-1]}", "#")
