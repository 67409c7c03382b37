"""Reads that several packages share: versions of trees, pages of a key range, the change log of a tree in order, large
moves that are running with what they hide, the end of a log for indexes that are behind it, and markers of search.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Self, cast

from store.concurrency import RetryPolicy, in_chunks
from store.engine import ReadUsage, Store
from store.errors import Conflict, CursorExpired, DamagedItem
from store.kinds.marker import Marker, marker_key
from store.metadata.history import gone_ranges
from store.metadata.moves import PARTITION, Move, move_key
from store.metadata.tree_version import ActiveMoveRef, Event, LogEntry, Transaction, TreeVersion, decode_moves
from store.model.decoding import decoded
from store.model.keys import (
    Index,
    Key,
    KeyRange,
    first_rank,
    hierarchy_of,
    just_after,
    last_segment,
    log_key,
    node_key,
    prefix_end,
    tree_version_key,
)
from store.model.paths import parse_path
from store.model.records import Item, key_of

PAGE_ITEMS = 1000
LOG_PAGE_ITEMS = 50  # a log item may have 300 KB
MOVE_SECONDS = 120.0  # how long to wait for the large moves of a tree
MOVE_POLLS = RetryPolicy(1.0, 2.0, deadline_seconds=MOVE_SECONDS)
LAST_NUMBER = 10**12 - 1
MAX_CACHED_LOGS = 100
FIRST_PAGE_ITEMS = 25  # which is all of it in a tree that is written to now and then
_END = "!:"  # after all items of a log


async def tree_versions(store: Store, partitions: Sequence[str], reads: ReadUsage) -> list[TreeVersion]:
    """The versions of trees (`location#US`), or of the roots of a hierarchy (`location`), in the order given."""
    items = await store.get([tree_version_key(partition) for partition in partitions], reads, strong=True)
    return [TreeVersion.of(partition, item) for partition, item in zip(partitions, items, strict=True)]


async def tree_version(store: Store, partition: str, reads: ReadUsage) -> TreeVersion:
    """The version of one tree, or of the roots of a hierarchy."""
    (version,) = await tree_versions(store, [partition], reads)
    return version


class Pages:
    """Async iterator over the items of a key range, `limit` items at a time (default `PAGE_ITEMS`); each page starts
    after the last key of the page before.

    Yields to the event loop after each page, since SQLite never waits: other requests and Ctrl-C are served there.
    A caller that has to do something before each read uses `has_next` and `next`. `limit` may be changed between pages.
    """

    def __init__(
        self,
        store: Store,
        key_range: KeyRange,
        reads: ReadUsage,
        *,
        limit: int | None = None,
        reverse: bool = False,
        strong: bool = True,
    ) -> None:
        self.limit = limit or PAGE_ITEMS
        self.has_next = True
        self._store = store
        self._rest = key_range
        self._reads = reads
        self._reverse = reverse
        self._strong = strong

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Item]:
        if self.has_next and (page := await self.next()):
            return page
        raise StopAsyncIteration

    async def next(self) -> list[Item]:
        """The next page; one with fewer than `limit` items, perhaps none, is the last."""
        page = await self._store.range(
            self._rest, self._reads, limit=self.limit, reverse=self._reverse, strong=self._strong
        )
        self.has_next = len(page) == self.limit
        if self.has_next:
            last = cast(str, page[-1][self._rest.index.sort])
            self._rest = self._rest.before(last) if self._reverse else self._rest.after(last)
        await asyncio.sleep(0)
        return page


async def gone_items(
    store: Store, parent: str, key: str, reads: ReadUsage, *, after: str | None = None
) -> AsyncIterator[Item]:
    """The tombstones of a deletion at and below a key, or behind a later one of these, in key order, as the index has
    them; `parent` is that of one of them.
    """
    lo = key if after is None else just_after(after)
    streams = [_items(store, one, reads) for one in gone_ranges(parent, lo, prefix_end(key))]
    heads = await asyncio.gather(*[anext(stream, None) for stream in streams])
    while ahead := [(cast(str, head["rank"]), part) for part, head in enumerate(heads) if head is not None]:
        part = min(ahead)[1]
        yield cast(Item, heads[part])
        heads[part] = await anext(streams[part], None)


async def _items(store: Store, key_range: KeyRange, reads: ReadUsage) -> AsyncIterator[Item]:
    async for page in Pages(store, key_range, reads, strong=False):
        for item in page:
            yield item


async def stored_items(store: Store, keys: Collection[Key], reads: ReadUsage) -> AsyncIterator[tuple[Key, Item | None]]:
    """The items at many keys, strongly read a page at a time; None where there is none."""
    async for page in in_chunks([*keys], PAGE_ITEMS):
        for found in zip(page, await store.get(page, reads, strong=True), strict=True):
            yield found


@dataclass(frozen=True)
class ActiveMoves:
    """The running moves with an end in one tree, or at one root of a hierarchy, and what they hide from readers."""

    moves: Sequence[Move] = ()

    @cached_property
    def hidden(self) -> frozenset[Key]:
        """The tops of hidden subtrees: the copy until the move commits, from then on what is left at the old place."""
        return frozenset(move.hidden for move in self.moves if move.hidden is not None)

    @property
    def refs(self) -> list[ActiveMoveRef]:
        return [move.running for move in self.moves]

    def hide(self, key: Key) -> bool:
        """Whether the node at a key is hidden."""
        return any(top.holds(key) for top in self.hidden)

    def visible(self, items: Sequence[Item]) -> Sequence[Item]:
        """The node items among these that are not hidden."""
        return [item for item in items if not self.hide(key_of(item))] if self.hidden else items

    def current(self, key: Key) -> Key | None:
        """Where the node is whose id record still points to `key`; None where a cascade has deleted it."""
        return next((moved for move in self.moves if (moved := move.led(key)) != key), key)


async def recent_moves(
    store: Store,
    reads: ReadUsage,
    hierarchy: str | None = None,
    since: str = "0",
    on_damaged: Callable[[DamagedItem], None] | None = None,
) -> list[Move]:
    """The moves of one hierarchy, or of all, that are running or ended within a day; the newest first.

    `since` is the least id, and ids are in the order in which moves began. Raises DamagedItem, unless `on_damaged`
    takes the errors of damaged records, which are then left out.
    """
    moves: list[Move] = []
    for item in await store.range(KeyRange(Index.TABLE, PARTITION, since, "g"), reads, reverse=True, strong=True):
        try:
            moves.append(Move.of(item))
        except DamagedItem as error:
            if on_damaged is None:
                raise
            on_damaged(error)
    return [move for move in moves if hierarchy in (None, move.hierarchy)]


async def registered_moves(store: Store, partition: str, version: Item | None, reads: ReadUsage) -> ActiveMoves:
    """The running moves of a tree, by its version, or by their own records where that is damaged."""
    try:
        refs: Iterable[ActiveMoveRef] = decode_moves(version)
    except DamagedItem:
        refs = [move.running for move in await recent_moves(store, reads, on_damaged=lambda _: None)]
        refs = [ref for ref in refs if partition in ref.partitions]
    return await active_moves(store, refs, reads)


async def active_moves(store: Store, refs: Iterable[ActiveMoveRef], reads: ReadUsage) -> ActiveMoves:
    """The moves that a tree version refers to, as they are now, without those that have ended or have no record."""
    keys = [move_key(ref.id) for ref in refs]
    items = await store.get(keys, reads, strong=True) if keys else []
    moves = [Move.of(item) for item in items if item is not None]
    return ActiveMoves([move for move in moves if move.ended_at is None])


async def wait_for_moves(store: Store, partition: str, reads: ReadUsage) -> TreeVersion:
    """The version of a tree once no move has an end in it; raises Conflict where one is still running after a while."""
    version = TreeVersion(partition)
    for delay in MOVE_POLLS.delays():
        await asyncio.sleep(delay)
        version = await tree_version(store, partition, reads)
        if not version.moves:
            return version
    refusal = version.moves[0].refusal(Key(partition, "#"))
    raise Conflict(f"{refusal} clade repair finishes an abandoned move.")


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
        found += [decoded(item, Transaction) for item in some]
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
        """The changes in a log item; raises DamagedItem."""
        partition, log = cast(str, item["pk"]), decoded(item, Transaction)
        change = cls(log.number, log.seconds)
        for entry in log.entries:
            if entry.event is Event.UPDATED:
                continue
            keys = list(_keys(partition, entry))
            is_new = entry.event is Event.CREATED
            change.places.extend(
                [(key, first_rank(entry.level, last_segment(*key)) if is_new else None) for key in keys]
            )
            if entry.event in (Event.DELETED, Event.RESTORED) or entry.source != entry.target:
                change.subtrees.extend(keys)
        change.places.extend([(logged_key(partition, name), rank) for name, rank in log.ranks.items()])
        return change


class RecentChanges:
    """The ends of change logs as they were last read; one for a process and a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._logs: dict[str, list[RecentChange]] = {}

    async def since(self, partition: str, time: float, reads: ReadUsage) -> list[RecentChange]:
        """The changes of a log from a time on, in seconds since 1970, in their order; strongly read.

        Read is the log after what is cached, or as much of its end as is not older than `time`.
        """
        cached = self._logs.pop(partition, [])
        last = cached[-1].number if cached else 0
        key_range = KeyRange(Index.TABLE, partition, log_key(partition, last + 1).sk, _END)
        pages = Pages(self._store, key_range, reads, limit=FIRST_PAGE_ITEMS, reverse=True)
        found: list[RecentChange] = []
        async for page in pages:
            found += map(RecentChange.of, page)
            if found[-1].at < time:
                break
            pages.limit = PAGE_ITEMS
        found.reverse()
        if found and found[0].number != last + 1:
            cached = []
        changes = [change for change in (*cached, *found) if change.at >= time]
        self._logs[partition] = changes
        while len(self._logs) > MAX_CACHED_LOGS:
            del self._logs[next(iter(self._logs))]
        return changes


def _keys(partition: str, entry: LogEntry) -> Iterable[Key]:
    """Where the node of an entry is, and of a move where it was."""
    if entry.source is None or entry.target is None:
        return [logged_key(partition, entry.sk)]
    hierarchy = hierarchy_of(f"{partition}#")
    return dict.fromkeys([node_key(hierarchy, parse_path(text)) for text in (entry.source, entry.target)])


def logged_key(partition: str, name: str) -> Key:
    """The key of a node as the log of its tree names it, or, of a root, the log of its hierarchy."""
    return Key(partition, name) if "#" in partition else Key(f"{partition}{name[:-1]}", "#")


async def read_marker(store: Store, hierarchy: str) -> Marker | None:
    """The present marker of the search items of a hierarchy, None without one. Raises DamagedItem."""
    (item,) = await store.get([marker_key(hierarchy)], ReadUsage(), strong=True)
    return Marker.of(hierarchy, item)
