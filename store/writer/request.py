"""An edit that somebody waits for: on which terms it is to be made, and what has come of it."""

import asyncio
from dataclasses import dataclass
from functools import cached_property

from store.edits.create_update import Edit
from store.edits.transaction import TransactionBuilder
from store.engine.usage import ReadUsage
from store.errors import AlreadyExists, TooLarge
from store.metadata.idempotency import (
    idempotency_key,
    idempotency_record,
    request_fingerprint,
    stored_result,
)
from store.metadata.move_record import Move
from store.model.items import Change, Item
from store.model.keys import Key
from store.model.paths import format_path
from store.model.records import Record
from store.text import shorten
from store.writer.dry_run import DryRun


@dataclass(frozen=True)
class EditOptions:
    """How an edit is to be made: only tried (`dry_run`), at most once under a `key` of a `caller`, and by whom."""

    dry_run: bool = False
    key: str | None = None
    by: str | None = None
    caller: str = ""


@dataclass(frozen=True)
class EditResult:
    """The node of an edit as it was written; of a dry run as it would be, with a forecast.

    With a `move` the edit takes more than one transaction: the node is as it will lie when that has flipped.
    """

    record: Record
    forecast: DryRun | None = None
    move: Move | None = None


class EditRequest:
    """Its `outcome` is awaited by whoever wishes; when nobody waits any more it is cancelled.

    `once` is where its outcome lies under its idempotency key. Raises BadInput for a key that cannot be one.
    """

    def __init__(self, edit: Edit, reads: ReadUsage, terms: EditOptions) -> None:
        self.edit = edit
        self.reads = reads
        self.terms = terms
        self.once = None if terms.key is None else idempotency_key(edit.hierarchy.name, terms.key, terms.caller)
        self.outcome: asyncio.Future[EditResult] = asyncio.get_running_loop().create_future()

    @property
    def is_settled(self) -> bool:
        """Whether it has its outcome, or nobody waits for one."""
        return self.outcome.done()

    def settle(self, outcome: EditResult | BaseException) -> None:
        """Tell what has come of it, if anybody still waits for that."""
        if self.is_settled:
            return
        if isinstance(outcome, EditResult):
            self.outcome.set_result(outcome)
        else:
            self.outcome.set_exception(outcome)

    def changes(self, draft: TransactionBuilder, most: int | None) -> list[Change]:
        """What is committed for it, `most` changes at once; raises AlreadyExists, or TooLarge where they are more."""
        if draft.collisions:
            raise AlreadyExists(f"There is a node at {shorten(format_path(draft.collisions[0]))} already.")
        changes, move = draft.changes(), draft.move
        if self.once is not None:
            now = draft.moment.now
            changes.append(idempotency_record(self.once, self._wanted, draft.record, now, move.id if move else None))
        if most is not None and len(changes) > most:
            raise TooLarge(
                f"This changes {draft.nodes} nodes by {len(changes)} writes; one transaction of DynamoDB holds {most}. "
                "Change smaller parts."
            )
        return changes

    def repeated(self, item: Item) -> tuple[Record, Key | None]:
        """What it has come to already by the item under its idempotency key; raises BadInput for another edit's."""
        return stored_result(item, self._wanted)

    @cached_property
    def _wanted(self) -> str:
        return request_fingerprint(type(self.edit).__name__, self.edit.wanted())
