"""Siblings of one level in their order: the index that lists them, and over it what it may not show yet.

An index may trail behind the table for some seconds, and knows nothing of changes that are not committed yet. The log
of these seconds names every node that may stand elsewhere than the index shows. Of those that were only created it
tells the rank as well; the others are read strongly.
"""

import asyncio

from store.edits.reader import Reader
from store.edits.transaction import ReadSet, WriteContext
from store.model.keys import Key, parent_partition, parent_sort_key
from store.model.ranges import KeyRange, siblings
from store.model.records import Record

CLOCK_SECONDS = 2.0  # by so much the clocks of writers may differ, or a commit be later than the time that it has


class SiblingOrder:
    """The siblings of a node, without itself and without what a move under way hides."""

    def __init__(self, reader: Reader, seen: ReadSet, record: Record, hidden: frozenset[Key]) -> None:
        self.span = siblings(record.siblings, record.level)
        self._reader = reader
        self._seen = seen
        self._record = record
        self._out = hidden | {record.key}
        self._ranks: dict[Key, str | None] = {}  # what the index may not show; None where a node is gone

    async def next(
        self, moment: WriteContext, settle_seconds: float, span: KeyRange, *, reverse: bool = False
    ) -> str | None:
        """The rank of the first sibling in a part of the span, or one between that and its beginning, where no sibling
        stands any more; the index trails for at most so many seconds.
        """
        listed, _ = await asyncio.gather(
            self._reader.index(span, limit=1 + len(self._out), reverse=reverse), self._catch_up(moment, settle_seconds)
        )
        ranks = {one.key: one.rank for one in listed}.items() | self._ranks.items()
        found = [rank for key, rank in ranks if rank and key not in self._out and span.lo <= rank < span.hi]
        return (max if reverse else min)(found, default=None)

    async def all(self) -> list[Record]:
        """All siblings, strongly read."""
        listed = await self._reader.index(self.span)
        keys = ({one.key for one in listed} | self._ranks.keys()) - self._out
        await self._reader.add(self._seen, {key.pk for key in keys}, keys)
        found = [one for key in keys if (one := self._seen.record(key)) and one.level == self._record.level]
        return sorted(found, key=lambda one: one.rank)

    async def _catch_up(self, moment: WriteContext, settle_seconds: float) -> None:
        """Learn what the index may not show yet."""
        if settle_seconds:
            await self._read_log(moment.now - settle_seconds - CLOCK_SECONDS)
        self._ranks |= self._reader.pending_ranks(self._record.siblings)

    async def _read_log(self, since: float) -> None:
        own = self._record
        unknown: set[Key] = set()
        for change in await self._reader.recent(own.hierarchy if own.is_root else own.pk, since):
            if any(key.holds(own.key) and key != own.key for key in change.uprooted):
                return await self._read_all()
            for key, rank in change.named:
                if parent_partition(*key) != own.siblings:
                    continue
                self._ranks[key] = rank
                (unknown.add if rank is None else unknown.discard)(key)
        await self._reader.add(self._seen, [], unknown)
        for key in unknown:
            found = self._seen.record(key)
            self._ranks[key] = found.rank if found else None

    async def _read_all(self) -> None:
        """Read all siblings strongly, which reads all below them as well: they came here with what is above them."""
        parent = Key(self._record.pk, parent_sort_key(self._record.sk))
        self._ranks = {one.key: one.rank for one in await self._reader.children(parent)}
