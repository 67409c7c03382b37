"""Moving a node with its subtree to another key (rename), to another parent, to another tree, or to be a root; deleting
one alone, with its subtree, or with its children moved to its parent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.errors import Misplaced, NotEmpty, TooLarge, quantity, shorten
from store.metadata.moves import new_move
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, ancestor_keys, node_key
from store.model.paths import check_sizes, format_path
from store.model.records import Record, SubtreeRewrite
from store.writing.create_update import Edit, existing, levels_above, touched
from store.writing.derived import moved_keys, search_changes_of_move, search_changes_of_removal
from store.writing.reads import Reader, ReadSet, WriteContext
from store.writing.transaction import TransactionBuilder

MAX_CHECKED_NODES = 100_000  # which take seconds; a request has ten, and a move of any size has to begin within it


@dataclass(frozen=True)
class Move(Edit):
    """Move of a node with its subtree to another path, whose last segment is its new key.

    A subtree that does not fit into one transaction is only registered, as a large move. Whether all its keys fit at
    the new place is checked before; of a very large subtree while it is copied, which is then undone.
    """

    target: Path
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path, self.target)

    def arguments(self) -> dict[str, Any]:
        return {"path": self.path, "target": self.target, "expected": self.expected}

    async def build(self, reader: Reader, context: WriteContext) -> TransactionBuilder:
        read_set = await reader.read(self.partitions(), self.keys_to_read())
        top = existing(read_set, self.hierarchy, self.path, self.expected)
        if self.target == self.path:
            return TransactionBuilder(self.hierarchy, read_set, context, top)
        if self.target[: len(self.path)] == self.path:
            raise Misplaced(f"{shorten(format_path(self.path))} cannot be moved below itself.")
        transaction = TransactionBuilder(self.hierarchy, read_set, context, top)
        key = node_key(self.hierarchy.name, self.target)
        keys = _keys_of_move(self.hierarchy, read_set, top, key)
        await reader.read_into(read_set, touched(self.hierarchy.name, self.target), keys)
        search_changes = partial(search_changes_of_move, self.hierarchy, top.key, key)
        records = await reader.subtree(read_set, top, [*ancestor_keys(top.key), *ancestor_keys(key)], search_changes)
        rewrite = _rewrite(transaction, self.hierarchy, top, self.target)
        if transaction.collisions:
            return transaction
        transaction.record = rewrite.moved(top)
        if records is not None:
            await transaction.relocate(records, rewrite)
        else:
            transaction.begin(new_move(top, rewrite.target, context.now, context.at, context.by))
            if rewrite.may_not_fit and transaction.nodes <= MAX_CHECKED_NODES:
                await reader.check_fits(rewrite)
        return transaction


class Policy(Enum):
    """What happens to the children of a deleted node."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    REPARENT = "reparent"


@dataclass(frozen=True)
class Delete(Edit):
    """Deletion of a node. Its last state and its history stay with its id.

    A cascade that does not fit into one transaction is only registered, as a large move without a target.
    """

    policy: Policy
    expected: int | None = None

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
        # Children that are moved lose their search items and get new ones.
        search_changes = partial(search_changes_of_removal, self.hierarchy, 2 if self.policy is Policy.REPARENT else 1)
        records = await reader.subtree(read_set, record, ancestor_keys(record.key), search_changes)
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
            for key in _keys_of_move(self.hierarchy, transaction.read_set, subtree[0], node_key(name, target))
        ]
        await reader.read_into(transaction.read_set, touched(name, *[target for _, target in moves]), keys)
        for subtree, target in moves:
            rewrite = _rewrite(transaction, self.hierarchy, subtree[0], target, leaving=self.path)
            if not transaction.collisions:
                await transaction.relocate(subtree, rewrite)


# -- shared by both ----------------------------------------------------------------------------------------------------


def _keys_of_move(hierarchy: Hierarchy, read_set: ReadSet, top: Record, target: Key) -> list[Key]:
    """The keys to read for the move of a node, whose ancestors were read, to another key: nodes, and what search has of
    their moves.
    """
    return [target, *ancestor_keys(target), *moved_keys(hierarchy, read_set, top)]


def _rewrite(
    transaction: TransactionBuilder, hierarchy: Hierarchy, top: Record, target: Path, leaving: Path = ()
) -> SubtreeRewrite:
    """The rewrite of keys; adds a collision to the transaction where another node is at the target and not leaving.

    Raises BadPath for a target whose keys do not fit: a child that takes the place of a root may be too long for one.
    """
    check_sizes(target)
    key = node_key(hierarchy.name, target)
    above = levels_above(transaction.read_set, hierarchy, target, top.level)
    transaction.check_not_moving(key)
    if transaction.read_set[key] is not None and target != leaving:
        transaction.collisions.append(target)
    return SubtreeRewrite.of(top, key, above)
