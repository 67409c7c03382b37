"""Running moves: the moves that a request found in tree versions, and the side of its commit that it sees of each.

A move commits by one transaction: its subtree is at its old place before, at its new one after. A request uses one side
for all of its reads. It reads the state of a move first, and only then what the commit changes: the counts of all
ancestors of both ends, and the tree versions. So a request that sees the commit has read nothing older than the commit.
A request that does not see it reads the states again at its end, and starts again if a move has committed meanwhile. So
does one that had an ancestor with other counts before it knew of the move, as in a list of roots: it begins with the
moves that it knows by then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from store.metadata.moves import Move, move_key
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.keys import Key, ancestor_keys, tree_version_key
from store.model.records import Item, Record


@dataclass
class RunningMoves:
    """The loaded moves. `read_strong` reads items with strong consistency; `on_load` is called after each load.

    `committed` has the side of each move by its id, `trees` the trees of their ends, and `shown` the sides of those
    whose states are in the response, which need not be loaded. `ancestors` are the nodes above all ends with their
    counts, and `tree_versions` the versions that commits change, both as of the side that is seen. `hidden` and `moved`
    are those of a VisibilityFilter. `is_torn` is whether an ancestor was read with other counts.
    """

    read_strong: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Item | None]]]
    on_load: "Callable[[RunningMoves], None]"
    committed: dict[str, bool] = field(default_factory=dict)
    shown: dict[str, bool] = field(default_factory=dict)
    trees: set[str] = field(default_factory=set)
    ancestors: dict[Key, Record] = field(default_factory=dict)
    tree_versions: dict[str, TreeVersion] = field(default_factory=dict)
    hidden: tuple[Key, ...] = ()
    moved: tuple[tuple[Key, Key], ...] = ()
    is_torn: bool = False
    _partitions: dict[str, set[str]] = field(default_factory=dict)
    _loads: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    async def load(self, moves: Iterable[ActiveMoveRef]) -> None:
        """Load these moves, each once; everyone who needs a move waits for its load."""
        moves = list(moves)
        if new := {move.id: move for move in moves if move.id not in self._loads}:
            self._loads.update(dict.fromkeys(new, asyncio.ensure_future(self._load(new))))
        await asyncio.gather(*{self._loads[move.id] for move in moves})

    async def _load(self, moves: Mapping[str, ActiveMoveRef]) -> None:
        committed = await self._committed(moves)
        ends = [end for move_id in committed for end in moves[move_id].ends]
        partitions = {partition for move_id in committed for partition in moves[move_id].partitions}
        above = {key for end in ends for key in ancestor_keys(end)}
        items = await self.read_strong([*map(tree_version_key, partitions), *above])
        self.tree_versions |= {one: TreeVersion.of(one, items[tree_version_key(one)]) for one in partitions}
        self.ancestors |= {
            key: self.tree_versions[key.pk].with_counts(Record.of(item))
            for key in above
            if (item := items[key]) is not None
        }
        self.trees |= {end.pk for end in ends}
        self._partitions |= {move_id: moves[move_id].partitions for move_id in committed}
        for move_id, has_committed in committed.items():
            ref = moves[move_id]
            hidden = ref.hidden(has_committed=has_committed)
            self.hidden += (hidden,) if hidden is not None else ()
            self.moved += ((ref.source, ref.target),) if has_committed and ref.target and not ref.is_restore else ()
        self.committed |= committed
        self.on_load(self)

    async def _committed(self, ids: Iterable[str]) -> dict[str, bool]:
        """Whether these moves have committed by now; those that have ended and have no record are left out."""
        items = await self.read_strong([move_key(move_id) for move_id in ids])
        return {key.sk: Move.of(item).has_committed for key, item in items.items() if item is not None}

    async def are_unchanged(self) -> bool:
        """Whether no move has committed since it was loaded, or since its state was read that is shown."""
        seen = self.shown | self.committed
        return (
            not self.is_torn
            and all(seen[move_id] is side for move_id, side in self.shown.items())
            and await self._committed(seen) == seen
        )

    def committed_in(self, tree: str) -> set[str]:
        """The ids of the loaded moves with an end in a tree that have committed, each by a transaction in its log."""
        return {one for one, has_committed in self.committed.items() if has_committed and tree in self._partitions[one]}

    def with_current_counts(self, record: Record) -> Record:
        """A record with the counts of the side that is seen; those from an index may be older."""
        current = self.ancestors.get(record.key)
        return record if current is None else replace(record, kids=current.kids, below=current.below)

    def stop(self) -> None:
        """Cancel running loads."""
        for load in self._loads.values():
            load.cancel()
