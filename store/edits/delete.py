"""Deleting a node: alone, with its subtree, or with its children moved to its parent."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.edits.create_update import existing, touched
from store.edits.move import keys_of_move, move_subtree
from store.edits.read_set import WriteContext
from store.edits.reader import Reader
from store.edits.search_changes import changes_of_removal
from store.edits.transaction import TransactionBuilder
from store.errors import NotEmpty, TooLarge
from store.metadata.move_record import new_move
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, ancestor_keys, node_key
from store.model.paths import format_path
from store.model.records import Record
from store.text import quantity, shorten


class Policy(Enum):
    """What happens to the children of a deleted node."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    REPARENT = "reparent"


@dataclass(frozen=True)
class Delete:
    """Deletion of a node. Its last state and its history stay with its id.

    A cascade that does not fit into one transaction is only registered, and done by a background move.
    """

    hierarchy: Hierarchy
    path: Path
    policy: Policy
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path)

    def keys_to_read(self) -> list[Key]:
        key = node_key(self.hierarchy.name, self.path)
        return [key, *ancestor_keys(key)]

    def arguments(self) -> dict[str, Any]:
        return {"path": self.path, "policy": self.policy.value, "expected": self.expected}

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await reader.read(self.partitions(), self.keys_to_read())
        record = existing(read_set, self.hierarchy, self.path, self.expected)
        if self.policy is Policy.REFUSE and (children := sum(record.kids.values())):
            raise NotEmpty(
                f"{shorten(format_path(self.path))} has {quantity(children, 'child', 'children')}; delete them too "
                "(CASCADE) or move them to its parent (REPARENT)."
            )
        transaction = TransactionBuilder(self.hierarchy, read_set, context, record)
        records = await reader.subtree(read_set, record, ancestor_keys(record.key), self._search_changes)
        if self.policy is Policy.REPARENT:
            await self._reparent(transaction, reader, record, records)
        elif records is not None:
            await transaction.remove(records)
        else:
            transaction.begin(new_move(record, None, context.now, context.at, context.by))
        transaction.record = replace(record, kids={}, below={})
        return transaction

    def _search_changes(self, records: Sequence[Record]) -> int:
        # Children that are moved lose their items and get new ones.
        return changes_of_removal(self.hierarchy, records) * (2 if self.policy is Policy.REPARENT else 1)

    async def _reparent(
        self, transaction: TransactionBuilder, reader: Reader, record: Record, records: Sequence[Record] | None
    ) -> None:
        """Remove the node and move the subtree of each child to the node's parent; raises TooLarge where that does not
        fit into one transaction.

        The child that gets the node's own path is moved last, so that the change log never has two nodes at one path.
        """
        if records is None:
            raise TooLarge(
                f"{shorten(format_path(self.path))} and its descendants are {record.subtree_size:,} nodes, "
                "more or larger ones than fit into one transaction. Move its children one by one, then delete it."
            )
        subtrees: dict[str, list[Record]] = {}
        for below in records[1:]:
            subtrees.setdefault(below.sk[: below.sk.index("#", len(record.sk)) + 1], []).append(below)
        moves = [(subtree, (*self.path[:-1], subtree[0].path[-1])) for subtree in subtrees.values()]
        async for some in in_chunks([move for move in moves if move[1] != self.path]):
            await self._move_all(transaction, reader, some)
        await transaction.remove([record], alone=True)
        await self._move_all(transaction, reader, [move for move in moves if move[1] == self.path])

    async def _move_all(
        self, transaction: TransactionBuilder, reader: Reader, moves: Sequence[tuple[Sequence[Record], Path]]
    ) -> None:
        name = self.hierarchy.name
        keys = [
            key
            for subtree, target in moves
            for key in keys_of_move(self.hierarchy, transaction.read_set, subtree[0], node_key(name, target))
        ]
        await reader.read_into(transaction.read_set, touched(name, *[target for _, target in moves]), keys)
        for subtree, target in moves:
            await move_subtree(transaction, self.hierarchy, subtree, target, leaving=self.path)
