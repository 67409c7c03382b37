"""The lease of a large move: by it one worker at a time writes to the move (fencing)."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from store.engine import ReadUsage, Store
from store.errors import Conflict
from store.metadata.moves import Move
from store.model.records import Change, Put


class LeaseLost(Exception):
    """Another worker has taken over the move, or it has ended."""


class MoveLease:
    """`move` is the record as last written; each write renews the lease to `lease_seconds` from now."""

    def __init__(self, store: Store, move: Move, lease_seconds: float) -> None:
        self.move = move
        self._store = store
        self._lease_seconds = lease_seconds

    async def write(self, changes: Sequence[Change] = (), **progress: Any) -> None:
        """Commit changes and the move's progress. Raises LeaseLost, or Conflict where a condition of a change fails."""
        values = {"lease": round(self._store.now() + self._lease_seconds, 3), **progress}
        new, old = replace(self.move, **values), self.move
        when = {"epoch": old.epoch, "state": old.state.value, "lease": old.lease, "ended_at": None}
        try:
            await self._store.commit([Put(new.item(), when), *changes])
        except Conflict as error:
            if 0 in error.failed:
                raise LeaseLost from error
            raise
        self.move = new

    async def acquire(self) -> None:
        """Take over a move whose lease has run out; raises LeaseLost where another worker was faster."""
        try:
            await self.write(epoch=self.move.epoch + 1)
        except Conflict as error:
            raise LeaseLost from error

    async def release(self) -> None:
        """Let the next worker take over at once."""
        await self.write(lease=0)

    async def refresh(self) -> None:
        """Read the record after a write without an answer; raises LeaseLost where another worker has the move."""
        (item,) = await self._store.get([self.move.key], ReadUsage(), strong=True)
        found = None if item is None else Move.of(item)
        if found is None or found.epoch != self.move.epoch or found.ended_at is not None:
            raise LeaseLost
        self.move = found

    async def renew(self) -> None:
        """Renew the lease if a third of it has passed."""
        if self.move.lease - self._store.now() < self._lease_seconds * 2 / 3:
            await self.write()

    async def wait(self, seconds: float) -> None:
        """Sleep, and renew the lease meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, self._lease_seconds / 3))
            await self.renew()
