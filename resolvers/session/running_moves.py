"""The running moves that a request has met in stamps, and what it has learned of them.

A move flips by one transaction: its subtree is seen at its old place before, at its new one after. A request takes one
side for all of its reads. It reads the state of a move first, and only then what the flip changes: the counts of all
above both ends, and the stamps. So whoever reads of a flip has read nothing older than the flip; and whoever reads of
none is told at last, by reading the states again, whether one has come since. Then the answer is made anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from store.metadata.move_record import Move, move_key
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.items import Item
from store.model.keys import Key, ancestor_keys, tree_version_key
from store.model.records import Record

ReadNow = Callable[[Sequence[Key]], Awaitable[Mapping[Key, Item | None]]]


@dataclass
class RunningMoves:
    """What is known of the moves that were met. `read_now` reads strongly; `learned` is called when more is known.

    `flipped` tells of each on which side of its flip it was met, `trees` in which trees they have ends. `above` are the
    nodes above all ends, whose counts are those of the side that is seen, and `stamps` those that the flips change.
    """

    read_now: ReadNow
    learned: "Callable[[RunningMoves], None]"
    flipped: dict[str, bool] = field(default_factory=dict)
    trees: set[str] = field(default_factory=set)
    above: dict[Key, Record] = field(default_factory=dict)
    stamps: dict[str, TreeVersion] = field(default_factory=dict)
    hidden: tuple[Key, ...] = ()
    moved: tuple[tuple[Key, Key], ...] = ()
    _learning: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    async def meet(self, running: Iterable[ActiveMoveRef]) -> None:
        """Learn what these moves hide; each is learned of once, and everyone who meets it waits for that."""
        running = list(running)
        if new := {one.id: one for one in running if one.id not in self._learning}:
            self._learning.update(dict.fromkeys(new, asyncio.ensure_future(self._learn(new))))
        await asyncio.gather(*{self._learning[one.id] for one in running})

    async def _learn(self, running: Mapping[str, ActiveMoveRef]) -> None:
        flipped = await self._flipped(running)
        ends = [end for move_id in flipped for end in running[move_id].ends]
        stamps = {partition for move_id in flipped for partition in running[move_id].partitions}
        above = {key for end in ends for key in ancestor_keys(end)}
        found = await self.read_now([*map(tree_version_key, stamps), *above])
        self.stamps |= {
            partition: TreeVersion.of(partition, found[tree_version_key(partition)]) for partition in stamps
        }
        self.above |= {key: Record.of(item) for key in above if (item := found[key]) is not None}
        self.trees |= {end.pk for end in ends}
        for move_id, has_flipped in flipped.items():
            _, source, target = running[move_id]
            out_of_sight = source if has_flipped else target
            self.hidden += (out_of_sight,) if out_of_sight is not None else ()
            self.moved += ((source, target),) if has_flipped and target is not None else ()
        self.flipped |= flipped
        self.learned(self)

    async def _flipped(self, ids: Iterable[str]) -> dict[str, bool]:
        """Whether these moves have flipped by now; one that has no record any more has long ended."""
        items = await self.read_now([move_key(one) for one in ids])
        return {key.sk: Move.of(item).has_flipped for key, item in items.items() if item is not None}

    async def are_as_met(self) -> bool:
        """Whether none of them has flipped since it was met."""
        return await self._flipped(self.flipped) == self.flipped

    def renewed(self, record: Record) -> Record:
        """A record with the counts that are true on the side that is seen, whatever an index has told of them."""
        now = self.above.get(record.key)
        return record if now is None else replace(record, kids=now.kids, below=now.below)

    def stop(self) -> None:
        """End what is being learned."""
        for learning in self._learning.values():
            learning.cancel()
