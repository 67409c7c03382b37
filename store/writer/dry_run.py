"""Dry run: the size and cost of an edit, without committing it."""

from dataclasses import dataclass

from store.concurrency import in_chunks
from store.edits.transaction import TransactionBuilder
from store.engine.protocol import Store
from store.metadata.move_record import Move
from store.model.items import Change, Delete, Put, canonical_item, size_of
from store.model.keys import Path

WRITE_UNIT_BYTES = 1024
INDEXES = 2  # besides the table, each of which a node's item is written to as well
MOVED_CHANGES = (2, 2)  # per node of a background move: its copy and redirect; its old item and its id's record
CASCADE_CHANGES = (3,)  # per node of a background deletion: its old item, its last state, its id's record
REDIRECT_CHANGES = (1,)  # per node of a background deletion in a tree with redirects
UNITS_A_NODE = 10  # of 1 KB, for one write to the table and two indexes, and its removal from them, or a deletion
UNITS_A_REDIRECT = 2
UNITS_A_TRANSACTION = 2
SEARCH_UNITS_A_NODE = 8  # to remove the search items of a node with two words


@dataclass(frozen=True)
class DryRun:
    """The number of nodes written, of transactions, of DynamoDB write units (approximate), and the paths at which
    other nodes are in the way.
    """

    nodes: int
    transactions: int
    write_units: int
    collisions: list[Path]


async def dry_run(transaction: TransactionBuilder, store: Store) -> DryRun:
    """The result of a dry run of a transaction."""
    if transaction.collisions or transaction.is_empty:
        return DryRun(0, 0, 0, transaction.collisions)
    if transaction.move is not None:
        has_redirects = transaction.read_set.version(transaction.move.source.pk).has_redirects
        return _of_move(transaction.move, store.max_commit_changes or store.max_changes, has_redirects=has_redirects)
    hierarchy, units = transaction.record.hierarchy, SEARCH_UNITS_A_NODE * transaction.nodes_left_out
    async for some in in_chunks(transaction.changes()):
        units += sum([_write_units(change, hierarchy) for change in some])
    return DryRun(transaction.nodes, 1, units, [])


def _write_units(change: Change, hierarchy: str) -> int:
    """About the write units of a change: two for each KB of an item in a transaction, and its indexes'."""
    size = size_of(canonical_item(change.item)) if isinstance(change, Put) else 1
    is_node = isinstance(change, Put) and "tier" in change.item
    is_node = is_node or (isinstance(change, Delete) and change.key.pk.startswith(f"{hierarchy}#"))
    return -(-size // WRITE_UNIT_BYTES) * (2 + INDEXES * is_node)


def _of_move(move: Move, max_changes: int, *, has_redirects: bool) -> DryRun:
    """Each transaction also writes the record of the move; there are three more for its begin, flip and end."""
    changes: tuple[int, ...] = MOVED_CHANGES
    if move.target is None:
        changes = CASCADE_CHANGES + REDIRECT_CHANGES * has_redirects
    units_a_node = UNITS_A_NODE + UNITS_A_REDIRECT * (move.target is not None or has_redirects)
    transactions = 3 + sum(-(-move.nodes // ((max_changes - 1) // number)) for number in changes)
    return DryRun(move.nodes, transactions, units_a_node * move.nodes + UNITS_A_TRANSACTION * transactions, [])
