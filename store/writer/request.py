"""Edit request: an edit that a client waits for, its options and its result."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from store.concurrency import in_chunks
from store.edits.batch import Refused
from store.edits.create_update import BuiltEdit, Edit
from store.edits.delete import Delete as DeleteEdit
from store.edits.move import Move as MoveEdit
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import TooLarge
from store.metadata.idempotency import (
    StoredResult,
    idempotency_key,
    idempotency_record,
    request_fingerprint,
    stored_result,
)
from store.metadata.move_record import Move
from store.model.items import Change, Delete, Item, Put, canonical_item, size_of
from store.model.keys import Path
from store.model.records import Record

WRITE_UNIT_BYTES = 1024
INDEXES = 2  # besides the table, each of which a node's item is written to as well
MOVED_CHANGES = (1, 2)  # per node of a background move: its copy; its old item and its id's record
CASCADE_CHANGES = (3,)  # per node of a background deletion
UNITS_A_NODE = 10  # of 1 KB, for one write to the table and two indexes, and its removal from them
UNITS_A_TRANSACTION = 2


@dataclass(frozen=True)
class DryRun:
    """The number of nodes written, of transactions, and of DynamoDB write units (approximate)."""

    nodes: int
    transactions: int
    write_units: int


async def dry_run(transaction: BuiltEdit, changes: Sequence[Change], store: Store) -> DryRun:
    """The result of a dry run of a transaction with these changes."""
    if transaction.is_empty:
        return DryRun(0, 0, 0)
    if transaction.move is not None:
        return _of_move(transaction.move, store.max_commit_changes or store.max_changes)
    of_nodes, units = f"{transaction.records[0].hierarchy}#", 0
    async for some in in_chunks(changes):
        units += sum([_write_units(change, of_nodes) for change in some])
    return DryRun(transaction.nodes, 1, units)


def _write_units(change: Change, of_nodes: str) -> int:
    """About the write units of a change: two for each KB of an item in a transaction, and its indexes'.

    `of_nodes` is how the partitions of nodes begin.
    """
    if not isinstance(change, Put):
        return 2 + INDEXES * (isinstance(change, Delete) and change.key.pk.startswith(of_nodes))
    size = size_of(canonical_item(change.item))
    return -(-size // WRITE_UNIT_BYTES) * (2 + INDEXES * ("tier" in change.item))


def _of_move(move: Move, max_changes: int) -> DryRun:
    """Each transaction also writes the record of the move; there are three more for its begin, flip and end."""
    changes = CASCADE_CHANGES if move.target is None else MOVED_CHANGES
    transactions = 3 + sum(-(-move.nodes // ((max_changes - 1) // number)) for number in changes)
    return DryRun(move.nodes, transactions, UNITS_A_NODE * move.nodes + UNITS_A_TRANSACTION * transactions)


@dataclass(frozen=True)
class EditOptions:
    """`dry_run`: commit nothing. `key`: the idempotency key of the `caller` for what was `asked`, as JSON, which is the
    same for the same request, also where an id leads to another path by now. `by`: the author that the node gets.
    """

    dry_run: bool = False
    key: str | None = None
    by: str | None = None
    caller: str = ""
    asked: Any = None


@dataclass(frozen=True)
class EditResult:
    """The nodes that were written, one for each edit of a batch, or with a `dry_run` as they would be; `before` is the
    path that the node of one move or deletion had.

    With a `move` the edit takes more than one transaction: its node is as it will be when the move has flipped.
    """

    records: Sequence[Record]
    dry_run: DryRun | None = None
    move: Move | None = None
    before: Path | None = None

    @property
    def record(self) -> Record:
        """The node of the only edit."""
        return self.records[0]


class EditRequest:
    """`result` is awaited by the client; it is cancelled when the client has gone.

    `result_key` is the key of the stored result, None without an idempotency key. Raises BadInput for an idempotency
    key that is not valid.
    """

    def __init__(self, edit: Edit, reads: ReadUsage, options: EditOptions) -> None:
        self.edit = edit
        self.reads = reads
        self.options = options
        self.result_key = (
            None if options.key is None else idempotency_key(edit.hierarchy.name, options.key, options.caller)
        )  # fmt: skip
        self.result: asyncio.Future[EditResult] = asyncio.get_running_loop().create_future()

    @property
    def is_settled(self) -> bool:
        """Whether it has a result, or nobody waits for one."""
        return self.result.done()

    def settle(self, result: EditResult | BaseException) -> None:
        """Set the result, unless nobody waits for it."""
        if self.is_settled:
            return
        if isinstance(result, EditResult):
            self.result.set_result(result)
        else:
            self.result.set_exception(result)

    def changes(self, transaction: BuiltEdit, now: float, max_changes: int | None) -> list[Change]:
        """The changes to commit, with the stored result; raises TooLarge for too many changes."""
        changes, move = transaction.changes(), transaction.move
        if self.result_key is not None:
            move_id = None if move is None else move.id
            changes.append(
                idempotency_record(self.result_key, self._fingerprint, transaction.records, now, move_id, self.before)
            )
        if max_changes is not None and len(changes) > max_changes:
            raise TooLarge(
                f"This changes {transaction.nodes} nodes by {len(changes)} writes; one transaction of DynamoDB holds "
                f"{max_changes}. Change smaller parts."
            )
        return changes

    @property
    def before(self) -> Path | None:
        """The path that the node of a move or deletion has before; None for other edits."""
        return self.edit.path if isinstance(self.edit, MoveEdit | DeleteEdit) else None

    def stored_result(self, item: Item) -> StoredResult:
        """The stored result; raises BadInput for that of another edit."""
        return stored_result(item, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> str:
        kind = self.edit.kind if isinstance(self.edit, Refused) else type(self.edit).__name__
        return request_fingerprint(kind, self.options.asked)
