"""Positions among the siblings of one level: the ranks between which a node comes to its position.

Siblings are listed by an index, which may be some seconds behind the table, and has no changes that are not committed
yet. The change log of these seconds has every node that may be elsewhere than the index shows. Of nodes that were only
created it has the rank as well; the others are read strongly.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import NamedTuple, cast

from store.errors import TooLarge, shorten
from store.model.keys import (
    MAX_SORT_KEY_BYTES,
    Key,
    KeyRange,
    Path,
    below,
    depth_of,
    just_after,
    parent_partition,
    parent_sort_key,
    siblings,
)
from store.model.paths import format_path
from store.model.ranks import rank_between, ranks_between
from store.model.records import MAX_BATCH_BYTES, Record, size_of
from store.reading import active_moves
from store.writing.reads import Reader, ReadSet, WriteContext

CLOCK_SECONDS = 2.0  # by so much the clocks of writers may differ, or a commit be later than its time
# How many siblings on each side are ranked anew where no rank fits. A transaction of DynamoDB has 100 changes, and a
# root is three of them, with the version and the log of its tree; SQLite has no such limit.
COUNTS, COUNTS_OF_ROOTS, COUNTS_WITHOUT_LIMIT = (4, 16, 40), (4, 14), (4, 16, 40, 10_000)
SHORT = MAX_SORT_KEY_BYTES // 2


class Side(Enum):
    """The new position of a node among its siblings of its level: first, last, or next to one of them."""

    FIRST = "first"
    LAST = "last"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Position:
    """The position that a node gets among its siblings of its level; `beside` is the path of one of them."""

    side: Side
    beside: Path | None = None


class Ranks(NamedTuple):
    """The rank of a node at its position, and other ones of siblings, so that there is room for it."""

    own: str
    others: Sequence[tuple[Record, str]] = ()


async def ranks_at(
    position: Position, reader: Reader, read_set: ReadSet, context: WriteContext, record: Record, beside: Record | None,
    *, source: Key,
) -> Ranks | None:  # fmt: skip
    """The ranks for a position; None for a node that stays at its key and has the position already.

    `record` is the node at its new key, `source` its key before, `beside` the sibling of the position. Raises Conflict
    beside a running move, and TooLarge where there is no room.
    """
    read_set.check_not_moving(record.key, (beside or record).key)
    refs = read_set.version(record.hierarchy if record.is_root else record.pk).moves
    hidden = (await active_moves(reader.store, refs, reader.reads)).hidden
    since = context.now - context.settle_seconds - CLOCK_SECONDS if context.settle_seconds else None
    siblings = SiblingOrder(reader, read_set, record, hidden | {source}, since)
    lower, upper = await siblings.neighbours(position.side, beside)
    stays = record.key == source
    if stays and (lower is None or lower < record.rank) and (upper is None or record.rank < upper):
        return None
    rank = rank_between(record.level, lower, upper)
    return await _make_room(reader, siblings, record, lower, upper) if rank is None else Ranks(rank)


class SiblingOrder:
    """The siblings of a node at its new key, without itself and without the `hidden` tops of running moves.

    The index may lack changes from the time `since` on, in seconds since 1970; None: it is never behind.
    """

    def __init__(
        self, reader: Reader, read_set: ReadSet, record: Record, hidden: frozenset[Key], since: float | None
    ) -> None:
        self._reader = reader
        self._read_set = read_set
        self._record = record
        self._excluded = hidden | {record.key}
        self._since = since
        self._range = siblings(record.siblings, record.level)
        self._ranks: dict[Key, str | None] = {}  # that the index may not show; None where a node is gone
        self._are_all = False  # whether these are of all siblings, and what else the index shows is gone

    async def neighbours(self, side: Side, beside: Record | None) -> tuple[str | None, str | None]:
        """The ranks before and after a position, None at an end."""
        match side, beside:
            case Side.BEFORE, Record(rank=rank):
                return await self._next(self._range.before(rank), reverse=True), rank
            case Side.AFTER, Record(rank=rank):
                return rank, await self._next(self._range.after(rank))
            case Side.LAST, _:
                return await self._next(self._range, reverse=True), None
            case _:
                return None, await self._next(self._range)

    async def nearest(self, lower: str | None, upper: str | None, count: int) -> tuple[list[Record], list[Record]]:
        """At least the `count` nearest siblings, or all, before and after the place between two ranks, in order, read
        strongly; the ranks are those of neighbours, None at either end.
        """
        limit = count + len(self._excluded) + len(self._ranks)
        listed: list[list[Record]] = [[], []]
        if lower is not None:
            listed[0] = await self._list(self._range.before(just_after(lower)), limit, reverse=True)
        if upper is not None:
            listed[1] = await self._list(replace(self._range, lo=upper), limit)
        keys = ({record.key for some in listed for record in some} | self._ranks.keys()) - self._excluded
        await self._reader.read_into(self._read_set, {key.pk for key in keys}, keys)
        own = self._record
        found = [record for key in keys if (record := self._read_set.record(key))]
        found = [one for one in found if (one.siblings, one.level) == (own.siblings, own.level)]
        found.sort(key=attrgetter("rank"))
        # Behind the last that a full list has may be others.
        ends = [some[-1].rank if len(some) == limit else None for some in listed]
        before = [one for one in found if lower and (ends[0] or "") <= one.rank <= lower]
        after = [one for one in found if upper and upper <= one.rank and (ends[1] is None or one.rank <= ends[1])]
        return before, after

    async def _next(self, key_range: KeyRange, *, reverse: bool = False) -> str | None:
        """The rank of the first sibling in a part of the range."""
        limit = 1 + len(self._excluded)
        listed, _ = await asyncio.gather(self._list(key_range, limit, reverse=reverse), self._read_recent())
        known = self._excluded | self._ranks.keys()
        if len(listed) == limit and known.issuperset(record.key for record in listed):
            listed = await self._list(key_range, 1 + len(known), reverse=reverse)
        ranks: dict[Key, str | None] = {record.key: record.rank for record in listed if not self._are_all}
        ranks |= self._ranks
        found = [
            rank
            for key, rank in ranks.items()
            if rank and key not in self._excluded and key_range.lo <= rank < key_range.hi
        ]  # fmt: skip
        return (max if reverse else min)(found, default=None)

    async def _list(self, key_range: KeyRange, limit: int, *, reverse: bool = False) -> list[Record]:
        """The first nodes in a range of the index."""
        return await self._reader.store.nodes(key_range, self._reader.reads, limit=limit, reverse=reverse)

    async def _read_recent(self) -> None:
        """Read the ranks that the index may not show yet."""
        if self._since is not None:
            await self._read_log(self._since)
        self._ranks |= self._reader.overlay.pending_ranks(self._record.siblings)

    async def _read_log(self, since: float) -> None:
        own = self._record
        unknown: set[Key] = set()
        log = own.hierarchy if own.is_root else own.pk
        for change in await self._reader.recent.since(log, since, self._reader.reads):
            if any(top.holds(own.key) and top != own.key for top in change.subtrees):
                # All siblings came here by the move of an ancestor; they are read with all below them.
                pages = self._reader.pages(below(own.pk, parent_sort_key(own.sk)))
                items = [item async for page in pages for item in page if depth_of(cast(str, item["sk"])) == own.depth]
                self._ranks, self._are_all = {one.key: one.rank for one in map(Record.of, items)}, True
                return
            for key, rank in change.places:
                if parent_partition(*key) != own.siblings:
                    continue
                self._ranks[key] = rank
                (unknown.add if rank is None else unknown.discard)(key)
        await self._reader.read_into(self._read_set, [], unknown)
        for key in unknown:
            found = self._read_set.record(key)
            self._ranks[key] = found.rank if found else None


async def _make_room(
    reader: Reader, siblings: SiblingOrder, record: Record, lower: str | None, upper: str | None
) -> Ranks:
    """The ranks of a node between two ranks and of the siblings nearest to it: of as few as get short ranks, else of as
    many as get ranks at all in one transaction.

    Raises TooLarge where none do.
    """
    limited = COUNTS_OF_ROOTS if record.is_root else COUNTS
    is_limited = reader.store.max_commit_changes is not None
    counts = limited if is_limited else COUNTS_WITHOUT_LIMIT
    before, after = await siblings.nearest(lower, upper, counts[-1] + 1)
    chosen: Ranks | None = None
    for count in counts:
        ordered = [*before[-count:], record, *after[:count]]
        if is_limited and sum(size_of(one.item()) for one in ordered) > MAX_BATCH_BYTES:
            break
        found = ranks_between(
            record.level,
            before[-count - 1].rank if len(before) > count else None,
            after[count].rank if len(after) > count else None,
            len(ordered),
        )
        if found is not None:
            place = len(before[-count:])
            others = zip([*ordered[:place], *ordered[place + 1 :]], [*found[:place], *found[place + 1 :]], strict=True)
            chosen = Ranks(found[place], list(others))
            if max(map(len, found)) <= SHORT:
                break
    if chosen is None:
        raise TooLarge(
            f"{shorten(format_path(record.path))} has no room there, since the keys or ranks of its siblings are too "
            "long and too close; make some of its neighbours the first or the last ones before."
        )
    return chosen
