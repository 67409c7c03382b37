"""Removing a node: alone, with all below it, or so that its children take its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.edits.create_update import existing, touched
from store.edits.move import move_in, needs_of_move
from store.edits.reader import Reader
from store.edits.transaction import TransactionBuilder, WriteContext
from store.errors import NotEmpty, TooLarge
from store.metadata.move_record import new_move
from store.model.hierarchy import Hierarchy
from store.model.keys import (
    Key,
    Path,
    ancestor_keys,
    node_key,
)
from store.model.paths import format_path
from store.model.records import Record
from store.text import quantity, shorten


class Policy(Enum):
    """What becomes of a node's children when it is deleted."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    REPARENT = "reparent"


@dataclass(frozen=True)
class Delete:
    """The end of a node. Its last state and its history stay with its id.

    A cascade that does not fit into one transaction is only registered by the draft, and journaled.
    """

    hierarchy: Hierarchy
    path: Path
    policy: Policy
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path)

    def needs(self) -> list[Key]:
        place = node_key(self.hierarchy.name, self.path)
        return [place, *ancestor_keys(place)]

    def wanted(self) -> dict[str, Any]:
        return {"path": self.path, "policy": self.policy.value, "expected": self.expected}

    async def draft(self, reader: Reader, moment: WriteContext) -> TransactionBuilder:
        seen = await reader.seen(self.partitions(), self.needs())
        record = existing(seen, self.hierarchy, self.path, self.expected)
        if self.policy is Policy.REFUSE and (children := sum(record.kids.values())):
            raise NotEmpty(
                f"{shorten(format_path(self.path))} has {quantity(children, 'child', 'children')}; delete them with it "
                "(CASCADE) or let them take its place (REPARENT)."
            )
        draft = TransactionBuilder(seen, moment, record)
        records = await reader.subtree(seen, record, ancestor_keys(record.key))
        if self.policy is Policy.REPARENT:
            await self._reparent(draft, reader, record, records)
        elif records is not None:
            await draft.remove(records)
        else:
            draft.begin(new_move(record, None, moment.now, moment.at, moment.by))
        draft.record = replace(record, kids={}, below={})
        return draft

    async def _reparent(
        self, draft: TransactionBuilder, reader: Reader, record: Record, records: Sequence[Record] | None
    ) -> None:
        """Remove the node and move each child with all below it to its side; raises TooLarge where that is no
        transaction.

        Who follows the changes one by one finds each place free: the child that takes the node's own place comes last.
        """
        if records is None:
            raise TooLarge(
                f"{shorten(format_path(self.path))} and all below it are {1 + sum(record.below.values()):,} nodes, "
                "more or larger ones than change in one transaction. Move its children to where they shall be, one by "
                "one, and delete it then."
            )
        families: dict[str, list[Record]] = {}
        for one in records[1:]:
            families.setdefault(one.sk[: one.sk.index("#", len(record.sk)) + 1], []).append(one)
        moves = [(family, (*self.path[:-1], family[0].path[-1])) for family in families.values()]
        async for some in in_chunks([move for move in moves if move[1] != self.path]):
            await self._move_all(draft, reader, some)
        await draft.remove([record], alone=True)
        await self._move_all(draft, reader, [move for move in moves if move[1] == self.path])

    async def _move_all(
        self, draft: TransactionBuilder, reader: Reader, moves: Sequence[tuple[Sequence[Record], Path]]
    ) -> None:
        await self._read_all(draft, reader, moves)
        for family, target in moves:
            await move_in(draft, reader, self.hierarchy, family, target, leaving=self.path)

    async def _read_all(
        self, draft: TransactionBuilder, reader: Reader, moves: Sequence[tuple[Sequence[Record], Path]]
    ) -> None:
        """Read at once what each of some moves would read by itself."""
        name = self.hierarchy.name
        keys = [key for family, target in moves for key in needs_of_move(family[0], node_key(name, target))]
        await reader.add(draft.seen, touched(name, *[target for _, target in moves]), keys)
