"""Active moves: the journaled moves that run, read from their records."""

import asyncio
import time
from collections.abc import Iterable

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.move_record import PARTITION, Move, move_key
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.keys import Index, Key, tree_version_key
from store.model.ranges import KeyRange


async def recent_moves(store: Store, reads: ReadUsage, hierarchy: str | None = None, since: str = "0") -> list[Move]:
    """The moves that run, or have ended within a day, the newest first; of one hierarchy or of all.

    Those with ids from `since` on, which are in the order of their beginnings.
    """
    items = await store.range(KeyRange(Index.TABLE, PARTITION, since, "g"), reads, reverse=True, strong=True)
    moves = map(Move.of, items)
    return [move for move in moves if hierarchy in (None, move.hierarchy)]


async def active_moves(store: Store, told: Iterable[ActiveMoveRef], reads: ReadUsage) -> list[Move]:
    """The moves that a stamp tells of as they are now; those that have ended, or have no record, are left out."""
    keys = [move_key(one.id) for one in told]
    items = await store.get(keys, reads, strong=True) if keys else []
    moves = [Move.of(item) for item in items if item is not None]
    return [move for move in moves if move.ended_at is None]


MOVE_SECONDS = 120.0  # how long a tree is waited for in which a journaled move is under way
MOVE_DELAY_SECONDS = 1.0


async def wait_for_moves(store: Store, pk: str, reads: ReadUsage) -> TreeVersion:
    """A tree's stamp when no move has an end there; raises Conflict where one does not come to its own."""
    last = time.monotonic() + MOVE_SECONDS
    while (stamp := await _stamp(store, pk, reads)).moves:
        if time.monotonic() > last:
            refusal = stamp.moves[0].refusal(Key(pk, "#"))
            raise Conflict(f"{refusal} One that nobody works on is ended by clade repair.")
        await asyncio.sleep(MOVE_DELAY_SECONDS)
    return stamp


async def _stamp(store: Store, partition: str, reads: ReadUsage) -> TreeVersion:
    (item,) = await store.get([tree_version_key(partition)], reads, strong=True)
    return TreeVersion.of(partition, item)
