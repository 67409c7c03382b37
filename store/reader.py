"""What a writer reads before it drafts a transaction: strongly, and the stamps before all else.

Several items that are read in one go are not read at one moment. With its stamps read first, a transaction that
requires them is made only if nothing that was read after them has changed.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import cast

from store.batches import MAX_BATCH_BYTES
from store.draft import Seen
from store.items import Item
from store.journal import running
from store.keys import Key, Span, below, stamp_key, subtree
from store.reads import Reads
from store.records import Record
from store.relocation import Relocation
from store.stores import Store
from store.wire import size_of

CHANGES_A_NODE = 3  # of one that is moved or removed: its old item, its new one or last state, its id's record
OTHER_CHANGES = 8  # beside those of the nodes above: three stamps, two log items, two aliases, an idempotency key
PAGE_ITEMS = 1000


class Reader:
    """The reads for one edit, in all attempts at its transaction."""

    def __init__(self, store: Store, reads: Reads) -> None:
        self._store = store
        self._reads = reads
        self._surveyed: list[Relocation] = []

    async def seen(self, partitions: Iterable[str], keys: Iterable[Key]) -> Seen:
        """The stamps of these trees and hierarchies, and then the items at these keys."""
        seen = Seen({})
        await self.add(seen, partitions, keys)
        return seen

    async def add(self, seen: Seen, partitions: Iterable[str], keys: Iterable[Key]) -> None:
        """Read what is not among the seen yet."""
        for wanted in (map(stamp_key, partitions), keys):
            missing = [key for key in dict.fromkeys(wanted) if key not in seen]
            if missing:
                items = await self._store.get(missing, self._reads, strong=True)
                seen.add(dict(zip(missing, items, strict=True)))

    async def subtree(self, record: Record, above: int) -> list[Record] | None:
        """A node and all below it, None where they cannot all change in one transaction with so many above them.

        Where it was moved or removed since it was read, it comes alone, and the commit will fail.
        """
        most, nodes = self._store.most_changes, 1 + sum(record.below.values())
        if most is not None and CHANGES_A_NODE * nodes + above + OTHER_CHANGES > most:
            return None
        records, size = [record], size_of(record.item())
        async for page in self._pages(below(record.pk, record.sk)):
            records += map(Record.of, page)
            size += 0 if most is None else sum(map(size_of, page))
        return records if most is None or size <= MAX_BATCH_BYTES else None

    async def survey(self, way: Relocation) -> None:
        """Look through a large subtree, page by page and once in all attempts; raises BadPath where it does not fit."""
        if way in self._surveyed:
            return
        async for page in self._pages(subtree(*way.source)):
            for item in page:
                way.moved(Record.of(item))
        self._surveyed.append(way)

    async def _pages(self, span: Span) -> AsyncIterator[list[Item]]:
        """All items of a span of the table; between two pages others have their turn."""
        while True:
            page = await self._store.range(span, self._reads, limit=PAGE_ITEMS, strong=True)
            yield page
            if len(page) < PAGE_ITEMS:
                return
            await asyncio.sleep(0)
            span = span.after(cast(str, page[-1]["sk"]))

    async def hidden(self, seen: Seen, partition: str) -> frozenset[Key]:
        """The tops of what moves under way hide in a tree, or among the roots of a hierarchy, whose stamp was seen."""
        moves = await running(self._store, seen.stamp(partition).moves, self._reads)
        return frozenset(move.hidden for move in moves if move.hidden is not None)

    async def range(self, span: Span, *, limit: int | None = None, reverse: bool = False) -> list[Record]:
        """The nodes of a span of an index, which may trail behind what is told strongly."""
        return await self._store.nodes(span, self._reads, limit=limit, reverse=reverse)
