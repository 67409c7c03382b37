"""Tree version: a number that every transaction on a tree increments, with the tree's counts of nodes.

It lies at `sk` = `!` of the tree's partition. A transaction requires the version that it read, so nothing can be
written between what it checked and what it writes (optimistic concurrency). The roots of a hierarchy have a version
too, in the partition named after the hierarchy alone.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from store.model.attributes import Value
from store.model.items import ABSENT, Item, Put
from store.model.keys import (
    Key,
    hierarchy_of,
    path_of,
    tree_version_key,
)
from store.model.paths import format_path
from store.text import shorten

LOG_SECONDS = 90 * 24 * 3600  # how long log items are kept


class ActiveMoveRef(NamedTuple):
    """A move that is under way: its id, and the tops of the subtrees at its two ends; a cascade has no target."""

    id: str
    source: Key
    target: Key | None

    @property
    def ends(self) -> tuple[Key, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)

    @property
    def partitions(self) -> set[str]:
        """Those whose stamps tell of it: the trees of its ends, and the hierarchy where an end is a root."""
        return {end.pk for end in self.ends} | {hierarchy_of(end.pk) for end in self.ends if end.sk == "#"}

    def holds(self, key: Key) -> bool:
        """Whether a node lies at one of its ends, or below."""
        return any(end.holds(key) for end in self.ends)

    def meets(self, key: Key) -> bool:
        """Whether the subtree at a key and one at an end of it have anything in common."""
        return any(end.holds(key) or key.holds(end) for end in self.ends)

    def refusal(self, key: Key) -> str:
        """What is said to whoever would write at a key that meets an end; the other end may be hidden from them."""
        end = next((one for one in self.ends if one.holds(key) or key.holds(one)), self.source)
        path, verb = shorten(format_path(path_of(*end))), "deleted" if self.target is None else "moved"
        told = f"{path} is being {verb} with all below it" if end == self.source else f"A subtree is moved to {path}"
        return f"{told}; try again when the move {self.id} has ended."


@dataclass(frozen=True)
class TreeVersion:
    """`n` is the number of transactions so far; `shape` tells how many nodes each tier has (`{"CITY@2": 50}`).

    `aliases` is how many aliases point out of the tree, `moves` are those under way with an end in it, `log_expires` is
    when the last item of its log expires. The stamp of a hierarchy's roots has their one tier, and the moves with an
    end that is a root.
    """

    partition: str
    number: int = 0
    shape: dict[str, int] = field(default_factory=dict)
    aliases: int = 0
    moves: tuple[ActiveMoveRef, ...] = ()
    log_expires: int = 0

    @classmethod
    def of(cls, partition: str, item: Item | None) -> "TreeVersion":
        """The stamp that an item holds, or the one of a tree in which nothing was ever written."""
        if item is None:
            return cls(partition)
        found = cast(dict[str, Any], item)
        return cls(
            partition, found["n"], found["shape"], found["aliases"], decode_moves(item), found.get("log_expires", 0)
        )  # fmt: skip

    @property
    def key(self) -> Key:
        return tree_version_key(self.partition)

    def depths(self, level: str) -> list[int]:
        """The depths at which the tree has nodes of a level."""
        return sorted(depth for name, depth in self.tiers() if name == level)

    def tiers(self) -> list[tuple[str, int]]:
        """Level and depth of each tier that has nodes."""
        split = (tier.rpartition("@") for tier, count in self.shape.items() if count)
        return [(level, int(depth)) for level, _, depth in split]

    def levels(self) -> dict[str, int]:
        """How many nodes of each level there are."""
        counts: Counter[str] = Counter()
        for tier, count in self.shape.items():
            counts[tier.rpartition("@")[0]] += count
        return dict(counts)

    def next_expires(self, now: float) -> int:
        """When a log item that is written now expires: never before those in front of it, whatever clocks say."""
        return max(self.log_expires, int(now) + LOG_SECONDS)

    def incremented(
        self,
        change: dict[str, int],
        aliases: int = 0,
        moves: tuple[ActiveMoveRef, ...] | None = None,
        *,
        now: float = 0,
    ) -> Put:
        """The change that raises this stamp by one, its shape by so many nodes for each tier, and its aliases.

        `moves` are those under way from then on, None where they stay.
        """
        shape = {tier: self.shape.get(tier, 0) + change.get(tier, 0) for tier in {**self.shape, **change}}
        item: Item = {
            "pk": self.key.pk, "sk": self.key.sk, "n": self.number + 1,
            "shape": {tier: count for tier, count in shape.items() if count}, "aliases": self.aliases + aliases,
        }  # fmt: skip
        if expires := self.next_expires(now) if now else self.log_expires:
            item["log_expires"] = expires
        if running := self.moves if moves is None else moves:
            item["moves"] = encode_moves(running)
        return Put(item, {"n": self.number} if self.number else ABSENT)


def decode_moves(stamp: Item | None) -> tuple[ActiveMoveRef, ...]:
    """The moves that a stamp's item tells of."""
    return tuple([_running(one) for one in cast(dict[str, Any], stamp or {}).get("moves", ())])


def encode_moves(moves: Iterable[ActiveMoveRef]) -> Value:
    """Moves as a stamp's item tells them."""
    return [[one.id, *one.source, *(one.target or ())] for one in moves]


def _running(told: Any) -> ActiveMoveRef:
    move_id, pk, sk, *target = told
    return ActiveMoveRef(move_id, Key(pk, sk), Key(*target) if target else None)


def level_at_depth(level: str, depth: int) -> str:
    """How a shape names a tier."""
    return f"{level}@{depth}"
