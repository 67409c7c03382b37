"""Edit request: an edit that a client waits for, its options and its result."""

import asyncio
from dataclasses import dataclass
from functools import cached_property

from store.edits.create_update import Edit
from store.edits.transaction import TransactionBuilder
from store.engine.usage import ReadUsage
from store.errors import AlreadyExists, TooLarge
from store.metadata.idempotency import idempotency_key, idempotency_record, request_fingerprint, stored_result
from store.metadata.move_record import Move
from store.model.items import Change, Item
from store.model.keys import Key
from store.model.paths import format_path
from store.model.records import Record
from store.text import shorten
from store.writer.dry_run import DryRun


@dataclass(frozen=True)
class EditOptions:
    """`dry_run`: commit nothing. `key`: the idempotency key of the `caller`. `by`: the author that the node gets."""

    dry_run: bool = False
    key: str | None = None
    by: str | None = None
    caller: str = ""


@dataclass(frozen=True)
class EditResult:
    """The node as it was written, or with a `dry_run` as it would be.

    With a `move` the edit takes more than one transaction: the node is as it will be when the move has flipped.
    """

    record: Record
    dry_run: DryRun | None = None
    move: Move | None = None


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

    def changes(self, transaction: TransactionBuilder, max_changes: int | None) -> list[Change]:
        """The changes to commit, with the stored result; raises AlreadyExists, or TooLarge for too many changes."""
        if transaction.collisions:
            path = shorten(format_path(transaction.collisions[0]))
            raise AlreadyExists(f"A node already exists at {path}; choose another path.")
        changes, move = transaction.changes(), transaction.move
        if self.result_key is not None:
            now = transaction.context.now
            move_id = None if move is None else move.id
            changes.append(idempotency_record(self.result_key, self._fingerprint, transaction.record, now, move_id))
        if max_changes is not None and len(changes) > max_changes:
            raise TooLarge(
                f"This changes {transaction.nodes} nodes by {len(changes)} writes; one transaction of DynamoDB holds "
                f"{max_changes}. Change smaller parts."
            )
        return changes

    def stored_result(self, item: Item) -> tuple[Record, Key | None]:
        """The node and the key of the move in a stored result; raises BadInput for that of another edit."""
        return stored_result(item, self._fingerprint)

    @cached_property
    def _fingerprint(self) -> str:
        return request_fingerprint(type(self.edit).__name__, self.edit.arguments())
