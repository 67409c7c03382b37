"""The end of a log: which nodes may stand elsewhere than an index shows, since it trails behind the table.

Items of a log never change, so the end that was read is kept, and read on from there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, cast

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.change_log import Event, LogEntry, log_entries
from store.model.items import Item
from store.model.keys import (
    Index,
    Key,
    first_rank,
    hierarchy_of,
    last_segment,
    log_key,
    node_key,
)
from store.model.paths import parse_path
from store.model.ranges import KeyRange

MOST_LOGS = 100  # whose ends are kept
FIRST_PAGE_ITEMS = 25  # which is all of it in a tree that is written to now and then
PAGE_ITEMS = 1000
_END = "!:"  # behind all items of a log


class Named(NamedTuple):
    """A node that a transaction has put somewhere, or taken from there; with its rank where the log tells that."""

    key: Key
    rank: str | None


@dataclass(frozen=True, slots=True)
class RecentChange:
    """What a transaction of a log changed of where nodes stand; of the `uprooted` everything below came along."""

    number: int
    at: float
    named: list[Named] = field(default_factory=list)
    uprooted: list[Key] = field(default_factory=list)

    @classmethod
    def of(cls, item: Item) -> "RecentChange":
        """What an item of a log tells."""
        partition = cast(str, item["pk"])
        at = datetime.fromisoformat(cast(str, item["at"])).timestamp()
        change = cls(int(cast(str, item["sk"])[1:]), at)
        for entry in log_entries(item):
            if entry.event is Event.UPDATED:
                continue
            places = list(_places(partition, entry))
            is_new = entry.event is Event.CREATED
            change.named.extend(
                [Named(key, first_rank(entry.level, last_segment(*key)) if is_new else None) for key in places]
            )
            if entry.event is Event.DELETED or entry.source != entry.target:
                change.uprooted.extend(places)
        ranks = cast(dict[str, str], item.get("ranks", {}))
        change.named.extend([Named(_key(partition, name), rank) for name, rank in ranks.items()])
        return change


class RecentChanges:
    """The ends of the logs of a store, as far as they were asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ends: dict[str, list[RecentChange]] = {}

    async def since(self, partition: str, time: float, reads: ReadUsage) -> list[RecentChange]:
        """What a log tells from a time on, in seconds since 1970, in its order; strongly read."""
        known = self._ends.pop(partition, [])
        last = known[-1].number if known else 0
        found = await self._read(partition, last, time, reads)
        if found and found[0].number != last + 1:
            known = []
        end = [one for one in (*known, *found) if one.at >= time]
        self._ends[partition] = end
        while len(self._ends) > MOST_LOGS:
            del self._ends[next(iter(self._ends))]
        return end

    async def _read(self, partition: str, last: int, time: float, reads: ReadUsage) -> list[RecentChange]:
        """What follows on a number of a log, or as much of its end as is not older than a time."""
        found: list[RecentChange] = []
        span, limit = KeyRange(Index.TABLE, partition, log_key(partition, last + 1).sk, _END), FIRST_PAGE_ITEMS
        while items := await self._store.range(span, reads, limit=limit, reverse=True, strong=True):
            found += map(RecentChange.of, items)
            if len(items) < limit or found[-1].at < time:
                break
            span, limit = span.before(cast(str, items[-1]["sk"])), PAGE_ITEMS
        return found[::-1]


def _places(partition: str, entry: LogEntry) -> Iterable[Key]:
    """Where the node of an entry lies, and of a move where it lay."""
    if entry.source is None or entry.target is None:
        return [_key(partition, entry.sk)]
    hierarchy = hierarchy_of(f"{partition}#")
    return dict.fromkeys([node_key(hierarchy, parse_path(text)) for text in (entry.source, entry.target)])


def _key(partition: str, name: str) -> Key:
    """The key of a node that the log of its tree names, or that of its hierarchy, where it is a root."""
    return Key(partition, name) if "#" in partition else Key(f"{partition}{name[:-1]}", "#")
