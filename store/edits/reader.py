"""What a writer reads before it drafts a transaction: strongly, and the stamps before all else.

Several items that are read in one go are not read at one moment. With its stamps read first, a transaction that
requires them is made only if nothing that was read after them has changed.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import cast

from msgspec.structs import replace

from store.edits.overlay import NotCombinable, WriteOverlay
from store.edits.transaction import ReadSet
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.history import current_key, with_revision
from store.model.items import MAX_BATCH_BYTES, Item, size_of
from store.model.key_rewrite import SubtreeRewrite
from store.model.keys import (
    Key,
    depth_of,
    id_key,
    revision_key,
    tree_version_key,
)
from store.model.ranges import KeyRange, below, subtree
from store.model.records import Record
from store.reading.active_moves import active_moves
from store.reading.recent_changes import RecentChange, RecentChanges

CHANGES_A_NODE = 3  # of one that is moved or removed: its old item, its new one or last state, its id's record
OTHER_CHANGES = 8  # beside those of the nodes above: three stamps, two log items, two aliases, an idempotency key
PAGE_ITEMS = 1000

# Of what moves or goes in one transaction where the store has no bound (SQLite): half a second of work, and its memory.
MOST_NODES = 10_000
MOST_UNITS = 5_000  # read, of 4 KB each


class Reader:
    """The reads for one edit, in all attempts at its transaction; what is in the `view` already is not read again."""

    def __init__(
        self, store: Store, reads: ReadUsage, view: WriteOverlay | None = None, recent: RecentChanges | None = None
    ) -> None:
        self._store = store
        self._reads = reads
        self._view = view or WriteOverlay(store)
        self._recent = recent or RecentChanges(store)
        self._surveyed: list[SubtreeRewrite] = []

    async def seen(self, partitions: Iterable[str], keys: Iterable[Key]) -> ReadSet:
        """The stamps of these trees and hierarchies, and then the items at these keys."""
        seen = ReadSet({})
        await self.add(seen, partitions, keys)
        return seen

    async def add(self, seen: ReadSet, partitions: Iterable[str], keys: Iterable[Key]) -> None:
        """Read what is not among the seen yet."""
        for wanted in (map(tree_version_key, partitions), keys):
            missing = [key for key in wanted if key not in seen]
            await self._view.read(missing, self._reads)
            seen.add({key: self._view.item(key) for key in missing})

    def stand_first(self) -> None:
        """Raise Later where changes are pending, of which no range tells: called before any is read."""
        if self._view.is_pending:
            raise NotCombinable

    async def subtree(self, seen: ReadSet, record: Record, above: Sequence[Key]) -> list[Record] | None:
        """A node and all below it, None where they are not all to change in one transaction with what was seen `above`.

        Where it was moved or removed since it was read, it comes alone, and the commit will fail.
        """
        most, nodes = self._store.most_changes, 1 + sum(record.below.values())
        if nodes > MOST_NODES or (most is not None and CHANGES_A_NODE * nodes + len(above) + OTHER_CHANGES > most):
            return None
        if not record.below:
            return [record]
        records, size, units = [record], size_of(record.item()), self._reads.units
        async for page in self._pages(below(record.pk, record.sk)):
            records += map(Record.of, page)
            if self._reads.units - units > MOST_UNITS:
                return None
            if most is not None:
                self._view.learn(page)
                size += sum(map(size_of, page))
        if most is None:
            return records
        # DynamoDB weighs what a transaction removes as well, and each node is removed and written.
        weight = 2 * size + sum(size_of(item) for key in above if (item := seen.item(key)) is not None)
        return records if weight <= MAX_BATCH_BYTES else None

    async def survey(self, way: SubtreeRewrite) -> None:
        """Look through a large subtree, page by page and once in all attempts; raises BadPath where it does not fit."""
        if way in self._surveyed:
            return
        async for page in self._pages(subtree(*way.source)):
            for item in page:
                way.moved(Record.of(item))
        self._surveyed.append(way)

    async def _pages(self, span: KeyRange) -> AsyncIterator[list[Item]]:
        """All items of a span of the table; between two pages others have their turn."""
        self.stand_first()
        while True:
            page = await self._store.range(span, self._reads, limit=PAGE_ITEMS, strong=True)
            yield page
            if len(page) < PAGE_ITEMS:
                return
            await asyncio.sleep(0)
            span = span.after(cast(str, page[-1]["sk"]))

    async def hidden(self, seen: ReadSet, partition: str) -> frozenset[Key]:
        """The tops of what moves under way hide in a tree, or among the roots of a hierarchy, whose stamp was seen."""
        moves = await active_moves(self._store, seen.stamp(partition).moves, self._reads)
        return frozenset(move.hidden for move in moves if move.hidden is not None)

    async def index(self, span: KeyRange, *, limit: int | None = None, reverse: bool = False) -> list[Record]:
        """The nodes of a span of an index, which may trail behind the table and shows nothing that is pending."""
        return await self._store.nodes(span, self._reads, limit=limit, reverse=reverse)

    def pending_ranks(self, parent: str) -> dict[Key, str | None]:
        """The ranks of siblings that are pending, None of those that are removed."""
        return self._view.pending_ranks(parent)

    async def children(self, parent: Key) -> list[Record]:
        """The children of a node as they lie in the table, for which all below it is read."""
        pages = [page async for page in self._pages(below(*parent))]
        return [
            Record.of(item)
            for page in pages
            for item in page
            if depth_of(cast(str, item["sk"])) == depth_of(parent.sk) + 1
        ]

    async def content_of(self, record: Record) -> Record:
        """A node with the name and the attributes of its revision, from its history or from where it lies now."""
        keys = [revision_key(record.id, record.revision), id_key(record.id)]
        seen = await self.seen([], keys)
        if (version := seen.item(keys[0])) is not None:
            return with_revision(record, version)
        place = current_key(seen.item(keys[1]))
        await self.add(seen, [], [] if place is None else [place])
        found = None if place is None else seen.record(place)
        if found is None or found.revision != record.revision:
            raise Conflict("This change was made, but its node is being changed right now; look, or ask again.")
        return replace(record, name=found.name, attributes=found.attributes)

    async def recent(self, partition: str, since: float) -> list[RecentChange]:
        """What a log tells from a time on, in seconds since 1970."""
        return await self._recent.since(partition, since, self._reads)
