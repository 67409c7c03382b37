"""Edits made: each is drafted over what was read and committed as one transaction, again if somebody else was first."""

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from store.draft import Draft, Moment
from store.edits import Edit
from store.errors import AlreadyExists, CladeError, Conflict, TooLarge
from store.journal import Move
from store.keys import Key, Path, format_path, shorten
from store.mover import Mover
from store.once import once_item, once_key, outcome
from store.pace import Pace
from store.queue import Queue
from store.reader import Reader
from store.reads import Reads
from store.records import Record
from store.stamps import rfc3339
from store.stores import Store

ATTEMPTS = 20  # at one edit while others write to the same tree
LONGEST_DELAY_SECONDS = 0.25
MOVED_CHANGES = (1, 2)  # of a node that is moved in several transactions: its copy; its old item and its id's record
SWEPT_CHANGES = (3,)  # of one that goes with a cascade
UNITS_A_NODE = 10  # of a KB, by which it is written to the table and two indexes once, and removed from them
UNITS_A_TRANSACTION = 2


@dataclass(frozen=True)
class Terms:
    """How an edit is to be made: only tried (`dry_run`), at most once under a `key` of a `caller`, and by whom."""

    dry_run: bool = False
    key: str | None = None
    by: str | None = None
    caller: str = ""


@dataclass(frozen=True)
class Forecast:
    """What an edit would change: how many nodes are written in how many transactions for about how many write units,
    and which paths are in its way.
    """

    nodes: int
    transactions: int
    write_units: int
    collisions: list[Path]


@dataclass(frozen=True)
class Written:
    """The node of an edit as it was written; of a dry run as it would be, with a forecast.

    With a `move` the edit takes more than one transaction: the node is as it will lie when that has flipped.
    """

    record: Record
    forecast: Forecast | None = None
    move: Move | None = None


class Writer:
    """Makes edits, those of one tree one after another; a process needs one for a store.

    What takes more than one transaction is left to its `mover`.
    """

    def __init__(self, store: Store, pace: Pace = Pace()) -> None:
        self._store = store
        self._queue = Queue()
        self._pace = pace
        self.mover = Mover(store, pace, self._queue)

    @property
    def waiting(self) -> int:
        """How many edits wait for those before them."""
        return self._queue.waiting

    async def write(self, edit: Edit, reads: Reads, terms: Terms = Terms()) -> Written:
        """Make an edit. Raises a CladeError where it cannot be made, Conflict where others never stop writing."""
        written = await self._write(edit, reads, terms)
        journey = self.mover.journey(written.move.id) if written.move else None
        if journey is None:
            return written
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pace.wait_seconds):
                await journey.has_flipped.wait()
        if journey.refusal is not None:
            raise journey.refusal
        return replace(written, move=journey.move)

    async def _write(self, edit: Edit, reads: Reads, terms: Terms) -> Written:
        once = once_key(edit.hierarchy.name, terms.key, terms.caller) if terms.key is not None else None
        reader = Reader(self._store, reads)
        async with self._queue.turn(edit.partitions()):
            for delay in _delays():
                await asyncio.sleep(delay)
                try:
                    return await self._attempt(edit, reader, terms, once)
                except _Overtaken:
                    continue
        raise Conflict("Others are writing to the same tree all the time, so nothing was changed; try again later.")

    async def _attempt(self, edit: Edit, reader: Reader, terms: Terms, once: Key | None) -> Written:
        if (done := await _done(edit, reader, once)) is not None:
            return done
        try:
            return await self._make(edit, reader, terms, once)
        except CladeError:
            # What stands in its way may be itself, made for somebody who asked for the same at the same time.
            if (done := await _done(edit, reader, once)) is not None:
                return done
            raise

    async def _make(self, edit: Edit, reader: Reader, terms: Terms, once: Key | None) -> Written:
        now = time.time()
        draft = await edit.draft(reader, Moment(rfc3339(now), now, terms.by))
        if terms.dry_run:
            return Written(draft.record, _forecast(draft, self._store.most_changes or self._store.max_changes))
        if draft.collisions:
            raise AlreadyExists(f"There is a node at {shorten(format_path(draft.collisions[0]))} already.")
        changes = draft.changes()
        if once is not None:
            changes.append(once_item(once, _told(edit), draft.record, now, draft.move.id if draft.move else None))
        if self._store.most_changes is not None and len(changes) > self._store.most_changes:
            raise TooLarge(
                f"This changes {draft.nodes} nodes by {len(changes)} writes; one transaction of DynamoDB holds "
                f"{self._store.most_changes}. Change smaller parts."
            )
        try:
            await self._store.commit(changes)
        except Conflict as error:
            raise _Overtaken from error
        if draft.move is not None:
            self.mover.start(draft.move)
        return Written(draft.record, move=draft.move)


class _Overtaken(Exception):
    """Somebody else's transaction came between the reads of an edit and its commit."""


async def _done(edit: Edit, reader: Reader, once: Key | None) -> Written | None:
    """What the edit has changed already under its idempotency key."""
    item = None if once is None else (await reader.seen([], [once])).item(once)
    if item is None:
        return None
    record, key = outcome(item, _told(edit))
    move = None if key is None else (await reader.seen([], [key])).item(key)
    return Written(record, move=None if move is None else Move.of(move))


def _delays() -> Iterator[float]:
    """How long to wait before each attempt; random, so that those who met once do not meet again."""
    yield 0.0
    for attempt in range(1, ATTEMPTS):
        yield random.uniform(0.0, min(LONGEST_DELAY_SECONDS, 0.01 * attempt))  # noqa: S311 - no secret


def _forecast(draft: Draft, most: int) -> Forecast:
    if draft.collisions or draft.is_empty:
        return Forecast(0, 0, 0, draft.collisions)
    if draft.move is not None:
        return _forecast_of_move(draft.move, most)
    return Forecast(draft.nodes, 1, draft.write_units(), [])


def _forecast_of_move(move: Move, most: int) -> Forecast:
    """Each transaction also writes the record of the move; at both ends and at the flip are some more."""
    changes = SWEPT_CHANGES if move.target is None else MOVED_CHANGES
    transactions = 3 + sum(-(-move.nodes // ((most - 1) // number)) for number in changes)
    return Forecast(move.nodes, transactions, UNITS_A_NODE * move.nodes + UNITS_A_TRANSACTION * transactions, [])


def _told(edit: Edit) -> str:
    """An edit as a text that is the same for the same wish."""
    parts = [(one.name, getattr(edit, one.name)) for one in fields(edit) if one.name != "hierarchy"]  # type: ignore[arg-type]
    return repr((type(edit).__name__, parts))
