"""What an edit would change, as a dry run tells it."""

from dataclasses import dataclass

from store.edits.transaction import TransactionBuilder
from store.engine.protocol import Store
from store.metadata.move_record import Move
from store.model.keys import Path

MOVED_CHANGES = (1, 2)  # of a node that is moved in several transactions: its copy; its old item and its id's record
SWEPT_CHANGES = (3,)  # of one that goes with a cascade
UNITS_A_NODE = 10  # of a KB, by which it is written to the table and two indexes once, and removed from them
UNITS_A_TRANSACTION = 2


@dataclass(frozen=True)
class DryRun:
    """How many nodes are written in how many transactions for about how many write units, and which paths are in
    the way.
    """

    nodes: int
    transactions: int
    write_units: int
    collisions: list[Path]


async def dry_run(draft: TransactionBuilder, store: Store) -> DryRun:
    """What the commit of a draft would take."""
    if draft.collisions or draft.is_empty:
        return DryRun(0, 0, 0, draft.collisions)
    if draft.move is not None:
        return _of_move(draft.move, store.most_changes or store.max_changes)
    return DryRun(draft.nodes, 1, await draft.write_units(), [])


def _of_move(move: Move, most: int) -> DryRun:
    """Each transaction also writes the record of the move; at both ends and at the flip are some more."""
    changes = SWEPT_CHANGES if move.target is None else MOVED_CHANGES
    transactions = 3 + sum(-(-move.nodes // ((most - 1) // number)) for number in changes)
    return DryRun(move.nodes, transactions, UNITS_A_NODE * move.nodes + UNITS_A_TRANSACTION * transactions, [])
