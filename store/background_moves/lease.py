"""A journaled move in the hands of one process: whatever that writes is written only as long as nobody else has it.

Each write is one transaction with the record of the move, which must be as this process left it. So one that slept
past its lease, and one whose answer came too late, write nothing when somebody else has taken over.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.move_record import Move
from store.model.items import Change, Put


class LeaseLost(Exception):
    """Somebody else has the move by now, or it has ended."""


class MoveLease:
    """`move` is the move as it was last written; each write prolongs the lease to `lease_seconds` from now."""

    def __init__(self, store: Store, move: Move, lease_seconds: float) -> None:
        self.move = move
        self._store = store
        self._lease = lease_seconds

    async def write(self, changes: Sequence[Change] = (), **progress: Any) -> None:
        """Commit changes with the move's progress. Raises Lost, or Conflict where a condition of theirs fails."""
        values = {"lease": round(time.time() + self._lease, 3), **progress}
        moved, old = replace(self.move, **values), self.move
        when = {"epoch": old.epoch, "state": old.state.value, "lease": old.lease, "ended_at": None}
        try:
            await self._store.commit([Put(moved.item(), when), *changes])
        except Conflict as error:
            if 0 in error.failed:
                raise LeaseLost from error
            raise
        self.move = moved

    async def take(self) -> None:
        """Become the one who has it, from whoever let the lease run out; raises Lost where somebody was quicker."""
        try:
            await self.write(epoch=self.move.epoch + 1)
        except Conflict as error:
            raise LeaseLost from error

    async def release(self) -> None:
        """Let the next take it over at once."""
        await self.write(lease=0)

    async def refresh(self) -> None:
        """See what became of a write without an answer; raises Lost where somebody else has the move."""
        (item,) = await self._store.get([self.move.key], ReadUsage(), strong=True)
        found = None if item is None else Move.of(item)
        if found is None or found.epoch != self.move.epoch or found.ended_at is not None:
            raise LeaseLost
        self.move = found

    async def keep(self) -> None:
        """Prolong the lease where a third of it has passed."""
        if self.move.lease - time.time() < self._lease * 2 / 3:
            await self.write()

    async def wait(self, seconds: float) -> None:
        """Sleep, and keep the move meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, self._lease / 3))
            await self.keep()
