"""Moving a node with its subtree: to another key (rename), to another parent, to another tree, or to be a root."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from store.edits.create_update import existing, levels_above, touched
from store.edits.read_set import ReadSet, WriteContext
from store.edits.reader import Reader
from store.edits.search_changes import changes_of_move, moved_keys
from store.edits.transaction import TransactionBuilder
from store.errors import Misplaced
from store.metadata.move_record import new_move
from store.model.hierarchy import Hierarchy
from store.model.key_rewrite import SubtreeRewrite
from store.model.keys import Key, Path, ancestor_keys, node_key
from store.model.paths import format_path
from store.model.records import Record
from store.text import shorten

MAX_CHECKED_NODES = 100_000  # which take seconds; a request has ten, and a move of any size has to begin within it


@dataclass(frozen=True)
class Move:
    """Move of a node with its subtree to another path, whose last segment is its new key.

    A subtree that does not fit into one transaction is only registered, and moved by a background move. Whether all
    its keys fit at the new place is checked before; of a very large subtree while it is copied, which is then undone.
    """

    hierarchy: Hierarchy
    path: Path
    target: Path
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path, self.target)

    def keys_to_read(self) -> list[Key]:
        key = node_key(self.hierarchy.name, self.path)
        return [key, *ancestor_keys(key)]

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
        keys = keys_of_move(self.hierarchy, read_set, top, key)
        await reader.read_into(read_set, touched(self.hierarchy.name, self.target), keys)
        search_changes = partial(changes_of_move, self.hierarchy, top.key, key)
        records = await reader.subtree(read_set, top, [*ancestor_keys(top.key), *ancestor_keys(key)], search_changes)
        if records is not None:
            await move_subtree(transaction, self.hierarchy, records, self.target)
            return transaction
        rewrite = _rewrite(transaction, self.hierarchy, top, self.target)
        if not transaction.collisions:
            transaction.record = rewrite.moved(top)
            transaction.begin(new_move(top, rewrite.target, context.now, context.at, context.by))
            if rewrite.may_not_fit and transaction.nodes <= MAX_CHECKED_NODES:
                await reader.check_fits(rewrite)
        return transaction


def keys_of_move(hierarchy: Hierarchy, read_set: ReadSet, top: Record, target: Key) -> list[Key]:
    """The keys to read for the move of a node, whose ancestors were read, to another key: nodes, and what search has of
    their moves.
    """
    return [target, *ancestor_keys(target), *moved_keys(hierarchy, read_set, top)]


async def move_subtree(
    transaction: TransactionBuilder, hierarchy: Hierarchy, records: Sequence[Record], target: Path, leaving: Path = ()
) -> None:
    """Add the move of a node and all below it, `records` in key order, to a transaction, as the node it is about.

    Its `keys_of_move` are read. The node at `leaving` is removed in the same transaction. Raises a CladeError where the
    move is not allowed.
    """
    rewrite = _rewrite(transaction, hierarchy, records[0], target, leaving)
    if not transaction.collisions:
        await transaction.relocate(records, rewrite)
        transaction.record = rewrite.moved(records[0])


def _rewrite(
    transaction: TransactionBuilder, hierarchy: Hierarchy, top: Record, target: Path, leaving: Path = ()
) -> SubtreeRewrite:
    """The rewrite of keys; adds a collision to the transaction where another node is at the target and not leaving."""
    key = node_key(hierarchy.name, target)
    above = levels_above(transaction.read_set, hierarchy, target, top.level)
    transaction.check_not_moving(key)
    if transaction.read_set.item(key) is not None and target != leaving:
        transaction.collisions.append(target)
    return SubtreeRewrite.of(top, key, above)
