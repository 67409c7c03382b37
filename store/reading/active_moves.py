"""Active moves: background moves that are running, and what they hide; and the tree versions that refer to them."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.move_record import PARTITION, Move, move_key
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.items import Item, key_of
from store.model.keys import Index, Key, tree_version_key
from store.model.ranges import KeyRange
from store.retry import RetryPolicy

MOVE_SECONDS = 120.0  # how long to wait for the background moves of a tree
MOVE_POLLS = RetryPolicy(1.0, 2.0, deadline_seconds=MOVE_SECONDS)


async def tree_versions(store: Store, partitions: Sequence[str], reads: ReadUsage) -> list[TreeVersion]:
    """The versions of trees (`location#US`), or of the roots of a hierarchy (`location`), in the order given."""
    items = await store.get([tree_version_key(partition) for partition in partitions], reads, strong=True)
    return [TreeVersion.of(partition, item) for partition, item in zip(partitions, items, strict=True)]


async def tree_version(store: Store, partition: str, reads: ReadUsage) -> TreeVersion:
    """The version of one tree, or of the roots of a hierarchy."""
    (version,) = await tree_versions(store, [partition], reads)
    return version


@dataclass(frozen=True)
class ActiveMoves:
    """The running moves with an end in one tree, or at one root of a hierarchy, and what they hide from readers."""

    moves: Sequence[Move] = ()

    @cached_property
    def hidden(self) -> frozenset[Key]:
        """The tops of hidden subtrees: the copy until the move flips, from then on what is left at the old place."""
        return frozenset(move.hidden for move in self.moves if move.hidden is not None)

    @property
    def refs(self) -> list[ActiveMoveRef]:
        return [move.running for move in self.moves]

    def hide(self, key: Key) -> bool:
        """Whether the node at a key is hidden."""
        return any(top.holds(key) for top in self.hidden)

    def visible(self, items: Sequence[Item]) -> Sequence[Item]:
        """The node items among these that are not hidden."""
        return [item for item in items if not self.hide(key_of(item))] if self.hidden else items

    def current(self, key: Key) -> Key | None:
        """Where the node is whose id record still points to `key`; None where a cascade has deleted it."""
        return next((moved for move in self.moves if (moved := move.led(key)) != key), key)


async def recent_moves(store: Store, reads: ReadUsage, hierarchy: str | None = None, since: str = "0") -> list[Move]:
    """The moves of one hierarchy, or of all, that are running or ended within a day; the newest first.

    `since` is the least id, and ids are in the order in which moves began.
    """
    key_range = KeyRange(Index.TABLE, PARTITION, since, "g")
    items = await store.range(key_range, reads, reverse=True, strong=True)
    return [move for move in map(Move.of, items) if hierarchy in (None, move.hierarchy)]


async def active_moves(store: Store, refs: Iterable[ActiveMoveRef], reads: ReadUsage) -> ActiveMoves:
    """The moves that a tree version refers to, as they are now, without those that have ended or have no record."""
    keys = [move_key(ref.id) for ref in refs]
    items = await store.get(keys, reads, strong=True) if keys else []
    moves = [Move.of(item) for item in items if item is not None]
    return ActiveMoves([move for move in moves if move.ended_at is None])


async def wait_for_moves(store: Store, partition: str, reads: ReadUsage) -> TreeVersion:
    """The version of a tree once no move has an end in it; raises Conflict where one is still running after a while."""
    version = TreeVersion(partition)
    for delay in MOVE_POLLS.delays():
        await asyncio.sleep(delay)
        version = await tree_version(store, partition, reads)
        if not version.moves:
            return version
    refusal = version.moves[0].refusal(Key(partition, "#"))
    raise Conflict(f"{refusal} clade repair finishes an abandoned move.")
