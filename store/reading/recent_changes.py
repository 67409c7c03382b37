"""Recent changes: the end of a tree's change log, with the nodes that an index may still show at an old place.

Log items never change, so the end that was read is cached, and the next read continues after it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.change_log import Event, LogEntry, log_entries
from store.model.items import Item
from store.model.keys import Index, Key, first_rank, hierarchy_of, last_segment, log_key, node_key
from store.model.paths import parse_path
from store.model.ranges import KeyRange
from store.reading.pages import PAGE_ITEMS, Pages

MAX_CACHED_LOGS = 100
FIRST_PAGE_ITEMS = 25  # which is all of it in a tree that is written to now and then
_END = "!:"  # after all items of a log


@dataclass(frozen=True, slots=True)
class RecentChange:
    """What one transaction changed: `places` are the keys at which it put or removed nodes, with their ranks where the
    log has them, `subtrees` the tops that moved or were deleted with all below them.

    `number` is that of the tree version after the transaction, `at` its time in seconds since 1970.
    """

    number: int
    at: float
    places: list[tuple[Key, str | None]] = field(default_factory=list)
    subtrees: list[Key] = field(default_factory=list)

    @classmethod
    def of(cls, item: Item) -> "RecentChange":
        """The changes in a log item."""
        partition = cast(str, item["pk"])
        at = datetime.fromisoformat(cast(str, item["at"])).timestamp()
        change = cls(int(cast(str, item["sk"])[1:]), at)
        for entry in log_entries(item):
            if entry.event is Event.UPDATED:
                continue
            keys = list(_keys(partition, entry))
            is_new = entry.event is Event.CREATED
            change.places.extend(
                [(key, first_rank(entry.level, last_segment(*key)) if is_new else None) for key in keys]
            )
            if entry.event is Event.DELETED or entry.source != entry.target:
                change.subtrees.extend(keys)
        ranks = cast(dict[str, str], item.get("ranks", {}))
        change.places.extend([(_key(partition, name), rank) for name, rank in ranks.items()])
        return change


class RecentChanges:
    """The ends of change logs as they were last read; one for a process and a store."""

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
