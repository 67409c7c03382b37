"""The order of siblings, as somebody wants it."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from store.edits.create_update import existing, touched
from store.edits.reader import Reader
from store.edits.sibling_order import SiblingOrder
from store.edits.transaction import TransactionBuilder, WriteContext
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, node_key
from store.model.paths import format_path
from store.model.ranges import KeyRange
from store.model.ranks import evenly_spaced_ranks, rank_between
from store.model.records import Record
from store.text import shorten


class Side(Enum):
    """Where a node goes among its siblings of its level: to an end of them, or beside one."""

    FIRST = "first"
    LAST = "last"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Reorder:
    """Another place for a node among its siblings of the same level; `beside` is the path of one of them.

    Neighbours are read from an index, which may trail behind the table for `settle_seconds`.
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

    def wanted(self) -> dict[str, Any]:
        return {"path": self.path, "side": self.side.value, "beside": self.beside, "expected": self.expected}

    async def draft(self, reader: Reader, moment: WriteContext) -> TransactionBuilder:
        seen = await reader.seen(self.partitions(), self.needs())
        record, beside = [existing(seen, self.hierarchy, path) for path in (self.path, self.beside or self.path)]
        existing(seen, self.hierarchy, self.path, self.expected)
        self._check(record, beside)
        draft = TransactionBuilder(seen, moment, record)
        draft.keep_out(record.key, beside.key)
        hidden = await reader.hidden(seen, record.hierarchy if record.is_root else record.pk)
        siblings = SiblingOrder(reader, seen, record, hidden)
        lower, upper = await self._neighbours(siblings, beside, moment)
        if (lower is None or lower < record.rank) and (upper is None or record.rank < upper):
            return draft  # it stands there already
        rank = rank_between(record.level, lower, upper)
        if rank is None:
            await _rank_anew(draft, siblings, upper)
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

    async def _neighbours(
        self, siblings: SiblingOrder, beside: Record, moment: WriteContext
    ) -> tuple[str | None, str | None]:
        """The ranks between which the node shall stand, None where nothing is."""

        async def nearest(span: KeyRange, *, reverse: bool = False) -> str | None:
            return await siblings.next(moment, self.settle_seconds, span, reverse=reverse)

        span = siblings.span
        match self.side:
            case Side.FIRST:
                return None, await nearest(span)
            case Side.LAST:
                return await nearest(span, reverse=True), None
            case Side.BEFORE:
                return await nearest(span.before(beside.rank), reverse=True), beside.rank
            case Side.AFTER:
                return beside.rank, await nearest(span.after(beside.rank))


async def _rank_anew(draft: TransactionBuilder, siblings: SiblingOrder, upper: str | None) -> None:
    """Give all siblings of the level new ranks, with the node in front of the one that has the rank `upper`."""
    others = await siblings.all()
    place = next((place for place, one in enumerate(others) if upper and one.rank >= upper), len(others))
    line = [*others[:place], draft.record, *others[place:]]
    draft.record = draft.rank_anew(draft.record, line, evenly_spaced_ranks(draft.record.level, len(line)))
