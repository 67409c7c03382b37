"""Reordering siblings: another position for a node among its siblings of the same level."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from store.edits.create_update import existing, touched
from store.edits.read_set import WriteContext
from store.edits.reader import Reader
from store.edits.sibling_order import SiblingOrder
from store.edits.transaction import TransactionBuilder
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, node_key
from store.model.paths import format_path
from store.model.ranges import KeyRange
from store.model.ranks import evenly_spaced_ranks, rank_between
from store.model.records import Record
from store.text import shorten


class Side(Enum):
    """The new position of a node among its siblings of its level: first, last, or next to one of them."""

    FIRST = "first"
    LAST = "last"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Reorder:
    """Another position for a node among its siblings of the same level; `beside` is the path of one of them.

    Siblings are read from an index, which may be `settle_seconds` behind the table.
    """

    hierarchy: Hierarchy
    path: Path
    side: Side
    beside: Path | None = None
    expected: int | None = None
    settle_seconds: float = 0.0

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path, self.beside or self.path)

    def keys_to_read(self) -> list[Key]:
        return [node_key(self.hierarchy.name, path) for path in (self.path, self.beside or self.path)]

    def arguments(self) -> dict[str, Any]:
        return {"path": self.path, "side": self.side.value, "beside": self.beside, "expected": self.expected}

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await reader.read(self.partitions(), self.keys_to_read())
        record, beside = [existing(read_set, self.hierarchy, path) for path in (self.path, self.beside or self.path)]
        existing(read_set, self.hierarchy, self.path, self.expected)
        self._check(record, beside)
        transaction = TransactionBuilder(self.hierarchy, read_set, context, record)
        transaction.check_not_moving(record.key, beside.key)
        moves = await reader.active_moves(read_set, record.hierarchy if record.is_root else record.pk)
        siblings = SiblingOrder(reader, read_set, record, moves.hidden)
        lower, upper = await self._neighbours(siblings, beside, context)
        if (lower is None or lower < record.rank) and (upper is None or record.rank < upper):
            return transaction  # it is there already
        rank = rank_between(record.level, lower, upper)
        if rank is None:
            await _rank_all(transaction, siblings, upper)
        else:
            transaction.record = transaction.reorder(record, rank)
        return transaction

    def _check(self, record: Record, beside: Record) -> None:
        if self.beside is None:
            return
        one, other = shorten(format_path(self.path)), shorten(format_path(self.beside))
        if record.key == beside.key:
            raise BadInput(f"{one} cannot be next to itself; give one of its siblings.")
        if record.siblings != beside.siblings or record.level != beside.level:
            raise BadInput(f"{other} is not a sibling of {one} of the same level; only those have an order.")

    async def _neighbours(
        self, siblings: SiblingOrder, beside: Record, context: WriteContext
    ) -> tuple[str | None, str | None]:
        """The ranks before and after the new position, None at an end."""

        async def nearest(key_range: KeyRange, *, reverse: bool = False) -> str | None:
            return await siblings.next(context, self.settle_seconds, key_range, reverse=reverse)

        all_siblings = siblings.key_range
        match self.side:
            case Side.FIRST:
                return None, await nearest(all_siblings)
            case Side.LAST:
                return await nearest(all_siblings, reverse=True), None
            case Side.BEFORE:
                return await nearest(all_siblings.before(beside.rank), reverse=True), beside.rank
            case Side.AFTER:
                return beside.rank, await nearest(all_siblings.after(beside.rank))


async def _rank_all(transaction: TransactionBuilder, siblings: SiblingOrder, upper: str | None) -> None:
    """Give all siblings of the level new ranks, with the node before the sibling that has the rank `upper`."""
    others = await siblings.all()
    index = next((index for index, other in enumerate(others) if upper and other.rank >= upper), len(others))
    ordered = [*others[:index], transaction.record, *others[index:]]
    transaction.record = transaction.reorder_all(
        transaction.record, ordered, evenly_spaced_ranks(transaction.record.level, len(ordered))
    )
