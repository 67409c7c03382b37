"""Deleting a node: alone, with its subtree, or with its children moved to its parent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.edits.create_update import check_ids, existing, touched
from store.edits.move import keys_of_move, move_subtree
from store.edits.reader import Reader, WriteContext
from store.edits.transaction import TransactionBuilder
from store.errors import FaultList, NotEmpty, TooLarge
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

    A cascade that does not fit into one transaction is only registered, and done by a background move. `ids` are those
    that the nodes at some of its paths have to have.
    """

    hierarchy: Hierarchy
    path: Path
    policy: Policy
    expected: int | None = None
    ids: Mapping[Path, str] = field(default_factory=dict)

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path)

    def keys_to_read(self) -> list[Key]:
        key = node_key(self.hierarchy.name, self.path)
        return [key, *ancestor_keys(key)]

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await reader.read(self.partitions(), self.keys_to_read())
        check_ids(read_set, self.hierarchy, self.ids)
        record = existing(read_set, self.hierarchy, self.path, reader, self.expected)
        if self.policy is Policy.REFUSE and (children := sum(record.kids.values())):
            raise NotEmpty(
                f"{shorten(format_path(self.path))} has {quantity(children, 'child', 'children')}; delete them too "
                "(CASCADE) or move them to its parent (REPARENT)."
            ).at("policy")
        transaction = TransactionBuilder(self.hierarchy, reader, read_set, context, record)
        # Children that are moved lose their items and get new ones.
        times = 2 if self.policy is Policy.REPARENT else 1
        records = await reader.subtree(
            read_set, record, ancestor_keys(record.key), lambda some: times * transaction.kinds.most_of_removal(some)
        )
        if self.policy is Policy.REPARENT:
            await self._reparent(transaction, reader, record, records)
        elif records is not None:
            await transaction.remove(records)
        else:
            transaction.begin(new_move(record, None, context.now, context.at, context.by))
        transaction.record = replace(record, kids={}, below={})
        return transaction

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
            ).at("policy")
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
            key for subtree, target in moves for key in keys_of_move(transaction, subtree[0], node_key(name, target))
        ]
        # At once what each move would else read by itself.
        await reader.read_into(transaction.read_set, touched(name, *[target for _, target in moves]), keys)
        faults = FaultList()
        for subtree, target in moves:
            with faults.collecting():
                await move_subtree(transaction, reader, self.hierarchy, subtree, target, leaving=self.path)
        faults.errors = [error.at("policy") for error in faults.errors]
        faults.check()
