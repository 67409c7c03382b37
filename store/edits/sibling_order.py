"""Siblings of one level in order: the index that lists them, corrected by the changes that it may not show yet.

An index may be some seconds behind the table, and has no changes that are not committed yet. The change log of these
seconds has every node that may be elsewhere than the index shows. Of nodes that were only created it has the rank as
well; the others are read strongly.
"""

import asyncio
from dataclasses import replace

from store.edits.read_set import ReadSet, WriteContext
from store.edits.reader import Reader
from store.model.keys import Key, parent_partition, parent_sort_key
from store.model.ranges import KeyRange, just_after, siblings
from store.model.records import Record

CLOCK_SECONDS = 2.0  # by so much the clocks of writers may differ, or a commit be later than its time


class SiblingOrder:
    """The siblings of a node, without itself and without the `hidden` tops of running moves."""

    def __init__(self, reader: Reader, read_set: ReadSet, record: Record, hidden: frozenset[Key]) -> None:
        self.key_range = siblings(record.siblings, record.level)
        self._reader = reader
        self._read_set = read_set
        self._record = record
        self._excluded = hidden | {record.key}
        self._ranks: dict[Key, str | None] = {}  # that the index may not show; None where a node is gone

    async def next(
        self, context: WriteContext, settle_seconds: float, key_range: KeyRange, *, reverse: bool = False
    ) -> str | None:
        """The rank of the first sibling in a part of the range, or one between that and its beginning, where a sibling
        was before; the index is behind by at most so many seconds.
        """
        listed, _ = await asyncio.gather(
            self._reader.index(key_range, limit=1 + len(self._excluded), reverse=reverse),
            self._read_recent(context, settle_seconds),
        )
        ranks = {record.key: record.rank for record in listed}.items() | self._ranks.items()
        found = [
            rank
            for key, rank in ranks
            if rank and key not in self._excluded and key_range.lo <= rank < key_range.hi
        ]  # fmt: skip
        return (max if reverse else min)(found, default=None)

    async def beside(self, lower: str | None, upper: str | None, count: int) -> tuple[list[Record], list[Record]]:
        """At least the `count` nearest siblings, or all, before and after the place between two ranks, in order, read
        strongly; the ranks are those of neighbours, None at either end.
        """
        limit = count + len(self._excluded) + len(self._ranks)
        listed: list[list[Record]] = [[], []]
        if lower is not None:
            listed[0] = await self._reader.index(self.key_range.before(just_after(lower)), limit=limit, reverse=True)
        if upper is not None:
            listed[1] = await self._reader.index(replace(self.key_range, lo=upper), limit=limit)
        keys = ({record.key for some in listed for record in some} | self._ranks.keys()) - self._excluded
        await self._reader.read_into(self._read_set, {key.pk for key in keys}, keys)
        own = self._record
        found = [record for key in keys if (record := self._read_set.record(key))]
        found = sorted([one for one in found if (one.siblings, one.level) == (own.siblings, own.level)], key=_rank)
        # Behind the last that a full list has may be others.
        ends = [some[-1].rank if len(some) == limit else None for some in listed]
        before = [one for one in found if lower and (ends[0] or "") <= one.rank <= lower]
        after = [one for one in found if upper and upper <= one.rank and (ends[1] is None or one.rank <= ends[1])]
        return before, after

    async def _read_recent(self, context: WriteContext, settle_seconds: float) -> None:
        """Read the ranks that the index may not show yet."""
        if settle_seconds:
            await self._read_log(context.now - settle_seconds - CLOCK_SECONDS)
        self._ranks |= self._reader.pending_ranks(self._record.siblings)

    async def _read_log(self, since: float) -> None:
        own = self._record
        unknown: set[Key] = set()
        for change in await self._reader.recent(own.hierarchy if own.is_root else own.pk, since):
            if any(top.holds(own.key) and top != own.key for top in change.subtrees):
                return await self._read_all()
            for key, rank in change.places:
                if parent_partition(*key) != own.siblings:
                    continue
                self._ranks[key] = rank
                (unknown.add if rank is None else unknown.discard)(key)
        await self._reader.read_into(self._read_set, [], unknown)
        for key in unknown:
            found = self._read_set.record(key)
            self._ranks[key] = found.rank if found else None

    async def _read_all(self) -> None:
        """Read all siblings strongly, and all below them: they came here by the move of an ancestor."""
        parent = Key(self._record.pk, parent_sort_key(self._record.sk))
        self._ranks = {child.key: child.rank for child in await self._reader.children(parent)}


def _rank(record: Record) -> str:
    return record.rank
