"""Positions among the siblings of one level: the index that lists them, corrected by the changes that it may not show
yet, and the rank of a node that gets a position among them.

An index may be some seconds behind the table, and has no changes that are not committed yet. The change log of these
seconds has every node that may be elsewhere than the index shows. Of nodes that were only created it has the rank as
well; the others are read strongly.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from store.edits.reader import Reader, ReadSet, WriteContext
from store.model.keys import Key, Path, parent_partition, parent_sort_key
from store.model.ranges import KeyRange, siblings
from store.model.ranks import evenly_spaced_ranks, rank_between
from store.model.records import Record

CLOCK_SECONDS = 2.0  # by so much the clocks of writers may differ, or a commit be later than its time


class Side(Enum):
    """A position among siblings of a level: first, last, or next to one of them."""

    FIRST = "first"
    LAST = "last"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Position:
    """The position that a node gets among its siblings of its level; `beside` is the path of one of them.

    Siblings are read from an index, which may be `settle_seconds` behind the table.
    """

    side: Side
    beside: Path | None = None
    settle_seconds: float = 0.0


class Ranks(NamedTuple):
    """The rank of a node at its new position, None where it is there already, and new ones of its siblings."""

    own: str | None
    others: Sequence[tuple[Record, str]] = ()


class SiblingOrder:
    """The siblings of a node, without itself and without the `hidden` tops of running moves.

    `record` is the node at its new place, whose rank counts only if it was there before.
    """

    def __init__(self, reader: Reader, read_set: ReadSet, record: Record, hidden: frozenset[Key]) -> None:
        self.key_range = siblings(record.siblings, record.level)
        self._reader = reader
        self._read_set = read_set
        self._record = record
        self._excluded = hidden | {record.key}
        self._ranks: dict[Key, str | None] = {}  # that the index may not show; None where a node is gone

    async def ranks(self, context: WriteContext, position: Position, beside: Record | None, *, stays: bool) -> Ranks:
        """The ranks for a position; `beside` is the sibling that it names. Of a node that `stays` among its siblings
        the rank that it has is kept where that is in the position.

        Where no rank fits between two neighbours, all siblings of the level get new ones.
        """
        lower, upper = await self._neighbours(context, position, beside)
        own = self._record
        if stays and (lower is None or lower < own.rank) and (upper is None or own.rank < upper):
            return Ranks(None)
        rank = rank_between(own.level, lower, upper)
        if rank is not None:
            return Ranks(rank)
        others = await self.all()
        index = next((index for index, other in enumerate(others) if upper and other.rank >= upper), len(others))
        ranks = list(evenly_spaced_ranks(own.level, len(others) + 1))
        rank = ranks.pop(index)
        return Ranks(rank, list(zip(others, ranks, strict=True)))

    async def _neighbours(
        self, context: WriteContext, position: Position, beside: Record | None
    ) -> tuple[str | None, str | None]:
        """The ranks before and after the new position, None at an end."""

        async def nearest(key_range: KeyRange, *, reverse: bool = False) -> str | None:
            return await self.next(context, position.settle_seconds, key_range, reverse=reverse)

        match position.side, beside:
            case Side.BEFORE, Record(rank=rank):
                return await nearest(self.key_range.before(rank), reverse=True), rank
            case Side.AFTER, Record(rank=rank):
                return rank, await nearest(self.key_range.after(rank))
            case Side.LAST, _:
                return await nearest(self.key_range, reverse=True), None
            case _:
                return None, await nearest(self.key_range)

    async def next(
        self, context: WriteContext, settle_seconds: float, key_range: KeyRange, *, reverse: bool = False
    ) -> str | None:
        """The rank of the first sibling in a part of the range, or one between that and its beginning, where a sibling
        was before; the index is behind by at most so many seconds.
        """
        pending = self._reader.pending_ranks(self._record.siblings)  # of these the index has former ranks at most
        listed, _ = await asyncio.gather(
            self._reader.index(key_range, limit=1 + len(self._excluded) + len(pending), reverse=reverse),
            self._read_recent(context, settle_seconds),
        )
        ranks = {(record.key, record.rank) for record in listed if record.key not in pending} | self._ranks.items()
        found = [
            rank
            for key, rank in ranks
            if rank and key not in self._excluded and key_range.lo <= rank < key_range.hi
        ]  # fmt: skip
        return (max if reverse else min)(found, default=None)

    async def all(self) -> list[Record]:
        """All siblings in order, read strongly."""
        listed = await self._reader.index(self.key_range)
        keys = ({record.key for record in listed} | self._ranks.keys()) - self._excluded
        await self._reader.read_into(self._read_set, {key.pk for key in keys}, keys)
        records = [record for key in keys if (record := self._read_set.record(key))]
        return sorted([one for one in records if one.level == self._record.level], key=lambda one: one.rank)

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
