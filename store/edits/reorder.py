"""Reordering siblings: another position for a node among its siblings of the same level."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from store.edits.create_update import existing, touched
from store.edits.read_set import WriteContext
from store.edits.reader import Reader
from store.edits.sibling_order import SiblingOrder
from store.edits.transaction import TransactionBuilder
from store.errors import BadInput, TooLarge
from store.model.hierarchy import Hierarchy
from store.model.items import MAX_BATCH_BYTES, size_of
from store.model.keys import MAX_SORT_KEY_BYTES, Key, Path, node_key
from store.model.paths import format_path
from store.model.ranges import KeyRange
from store.model.ranks import rank_between, ranks_between
from store.model.records import Record
from store.text import shorten

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
            await _make_room(transaction, reader, siblings, lower, upper)
        else:
            transaction.reorder([record], [rank])
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


async def _make_room(
    transaction: TransactionBuilder, reader: Reader, siblings: SiblingOrder, lower: str | None, upper: str | None
) -> None:
    """Rank the node between two ranks together with the siblings nearest to it: with as few as get short ranks, else
    with as many as get ranks at all in one transaction.

    Raises TooLarge where none do.
    """
    record = transaction.record
    limited = COUNTS_OF_ROOTS if record.is_root else COUNTS
    counts = limited if reader.is_limited else COUNTS_WITHOUT_LIMIT
    before, after = await siblings.beside(lower, upper, counts[-1] + 1)
    chosen: tuple[list[Record], list[str]] | None = None
    for count in counts:
        ordered = [*before[-count:], record, *after[:count]]
        if reader.is_limited and sum(size_of(one.item()) for one in ordered) > MAX_BATCH_BYTES:
            break
        found = ranks_between(
            record.level,
            before[-count - 1].rank if len(before) > count else None,
            after[count].rank if len(after) > count else None,
            len(ordered),
        )
        if found is not None:
            chosen = ordered, found
            if max(map(len, found)) <= SHORT:
                break
    if chosen is None:
        raise TooLarge(
            f"{shorten(format_path(record.path))} has no room there, since the keys or ranks of its siblings are too "
            "long and too close; make some of its neighbours the first or the last ones before."
        )
    transaction.reorder(*chosen)
