"""The order of siblings, as somebody wants it."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import cast

from store.draft import Draft, Moment, Seen
from store.edits import existing, touched
from store.errors import BadInput
from store.hierarchy import Hierarchy
from store.keys import Key, Path, Span, format_path, log_key, node_key, shorten, siblings
from store.ranks import anew, between
from store.reader import Reader
from store.records import Record


class Side(Enum):
    """Where a node goes among its siblings of its level: to an end of them, or beside one."""

    FIRST = "first"
    LAST = "last"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Reorder:
    """Another place for a node among its siblings of the same level; `beside` is the path of one of them.

    Neighbours are read from an index. Where that may trail behind the table for `settle_seconds`, and the tree was
    written to within that time, the edit waits for the rest of it.
    """

    hierarchy: Hierarchy
    path: Path
    side: Side
    beside: Path | None = None
    expected: int | None = None
    settle_seconds: float = 0.0

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path, self.beside or self.path)

    def needs(self) -> list[Key]:
        return [node_key(self.hierarchy.name, path) for path in (self.path, self.beside or self.path)]

    async def draft(self, reader: Reader, moment: Moment) -> Draft:
        seen = await reader.seen(self.partitions(), self.needs())
        record, beside = [existing(seen, self.hierarchy, path) for path in (self.path, self.beside or self.path)]
        existing(seen, self.hierarchy, self.path, self.expected)
        self._check(record, beside)
        reader.stand_first()
        await self._settle(reader, seen, record, moment)
        draft = Draft(seen, moment, record)
        draft.keep_out(record.key, beside.key)
        hidden = await reader.hidden(seen, record.hierarchy if record.is_root else record.pk)
        lower, upper = await self._neighbours(reader, record, beside, hidden)
        if (lower is None or lower < record.rank) and (upper is None or record.rank < upper):
            return draft  # it stands there already
        rank = between(record.level, lower, upper)
        if rank is None:
            await self._rank_anew(draft, reader, record, upper, hidden)
        else:
            draft.record = draft.reorder(record, rank)
        return draft

    def _check(self, record: Record, beside: Record) -> None:
        if self.beside is None:
            return
        one, other = shorten(format_path(self.path)), shorten(format_path(self.beside))
        if record.key == beside.key:
            raise BadInput(f"{one} cannot stand beside itself; name one of its siblings.")
        if record.siblings != beside.siblings or record.level != beside.level:
            raise BadInput(f"{other} is no sibling of {one} of the same level; siblings stand in order level by level.")

    async def _settle(self, reader: Reader, seen: Seen, record: Record, moment: Moment) -> None:
        """Wait until the index surely tells what the tree's last transaction wrote."""
        if self.settle_seconds:
            key = log_key(record.pk, seen.stamp(record.pk).n)
            last = (await reader.seen([], [key])).item(key)
            if last is not None:
                written = datetime.fromisoformat(cast(str, last["at"])).timestamp()
                await asyncio.sleep(min(max(0.0, written + self.settle_seconds - moment.now), self.settle_seconds))

    async def _neighbours(
        self, reader: Reader, record: Record, beside: Record, hidden: frozenset[Key]
    ) -> tuple[str | None, str | None]:
        """The ranks between which the node shall stand, None where nothing is."""
        family = siblings(record.siblings, record.level)
        others = hidden | {record.key}
        match self.side:
            case Side.FIRST:
                return None, await _next(reader, others, family)
            case Side.LAST:
                return await _next(reader, others, family, reverse=True), None
            case Side.BEFORE:
                return await _next(reader, others, family.before(beside.rank), reverse=True), beside.rank
            case Side.AFTER:
                return beside.rank, await _next(reader, others, family.after(beside.rank))

    async def _rank_anew(
        self, draft: Draft, reader: Reader, record: Record, upper: str | None, hidden: frozenset[Key]
    ) -> None:
        """Give all siblings of the level new ranks, with the node in front of the one that has the rank `upper`."""
        found = [one.key for one in await reader.range(siblings(record.siblings, record.level))]
        keys = [key for key in found if key not in hidden | {record.key}]
        await reader.add(draft.seen, {key.pk for key in keys}, keys)
        others = sorted([one for key in keys if (one := draft.seen.record(key))], key=lambda one: one.rank)
        place = next((place for place, one in enumerate(others) if one.rank == upper), len(others))
        line = [*others[:place], record, *others[place:]]
        for one, rank in zip(line, anew(record.level, len(line)), strict=True):
            new = draft.reorder(one, rank, told=one is record)
            draft.record = new if one is record else draft.record


async def _next(reader: Reader, others: frozenset[Key], span: Span, *, reverse: bool = False) -> str | None:
    """The rank of the first sibling in a span that is none of these others."""
    found = await reader.range(span, limit=1 + len(others), reverse=reverse)
    return next((one.rank for one in found if one.key not in others), None)
