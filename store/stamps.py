"""The stamp of a tree, which every transaction on the tree raises, and the log of what each transaction changed.

A stamp lies at `sk` = `!` of the tree's partition, the log items behind it at `!` and the stamp's number. A
transaction requires the stamp that it saw, so nothing can slip in between what it checked and what it writes. The
roots of a hierarchy have a stamp too, in the partition named after the hierarchy alone, and a log of what changes
which roots there are and how they stand in order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, cast

from store.attributes import Value
from store.items import ABSENT, Item, Put
from store.keys import Key, format_path, hierarchy_of, log_key, path_of, shorten, stamp_key

LOG_SECONDS = 90 * 24 * 3600  # how long log items are kept


class Running(NamedTuple):
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
class Stamp:
    """`n` is the number of transactions so far; `shape` tells how many nodes each tier has (`{"CITY@2": 50}`).

    `aliases` is how many aliases point out of the tree, `moves` are those under way with an end in it, `log_expires` is
    when the last item of its log expires. The stamp of a hierarchy's roots has their one tier, and the moves with an
    end that is a root.
    """

    partition: str
    n: int = 0
    shape: dict[str, int] = field(default_factory=dict)
    aliases: int = 0
    moves: tuple[Running, ...] = ()
    log_expires: int = 0

    @classmethod
    def of(cls, partition: str, item: Item | None) -> "Stamp":
        """The stamp that an item holds, or the one of a tree in which nothing was ever written."""
        if item is None:
            return cls(partition)
        found = cast(dict[str, Any], item)
        return cls(
            partition, found["n"], found["shape"], found["aliases"], moves_of(item), found.get("log_expires", 0)
        )  # fmt: skip

    @property
    def key(self) -> Key:
        return stamp_key(self.partition)

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

    def raised(
        self, change: dict[str, int], aliases: int = 0, moves: tuple[Running, ...] | None = None, *, now: float = 0
    ) -> Put:
        """The change that raises this stamp by one, its shape by so many nodes for each tier, and its aliases.

        `moves` are those under way from then on, None where they stay.
        """
        shape = {tier: self.shape.get(tier, 0) + change.get(tier, 0) for tier in {**self.shape, **change}}
        item: Item = {
            "pk": self.key.pk, "sk": self.key.sk, "n": self.n + 1,
            "shape": {tier: count for tier, count in shape.items() if count}, "aliases": self.aliases + aliases,
        }  # fmt: skip
        if expires := self.next_expires(now) if now else self.log_expires:
            item["log_expires"] = expires
        if running := self.moves if moves is None else moves:
            item["moves"] = told_moves(running)
        return Put(item, {"n": self.n} if self.n else ABSENT)


def moves_of(stamp: Item | None) -> tuple[Running, ...]:
    """The moves that a stamp's item tells of."""
    return tuple([_running(one) for one in cast(dict[str, Any], stamp or {}).get("moves", ())])


def told_moves(moves: Iterable[Running]) -> Value:
    """Moves as a stamp's item tells them."""
    return [[one.id, *one.source, *(one.target or ())] for one in moves]


def _running(told: Any) -> Running:
    move_id, pk, sk, *target = told
    return Running(move_id, Key(pk, sk), Key(*target) if target else None)


def tier_name(level: str, depth: int) -> str:
    """How a shape names a tier."""
    return f"{level}@{depth}"


class Event(StrEnum):
    CREATED = "CREATED"
    UPDATED = "UPDATED"
    MOVED = "MOVED"
    DELETED = "DELETED"


class LogEntry(NamedTuple):
    """One node's change: what happened, to which node, where it lies and which revision it has now.

    `sk` is its key without the log's partition in front: of a node `#NE#`, of a root in its hierarchy's log `#US#`. A
    move tells from which path to which, and is in the logs of both trees; with equal paths the node has only another
    place among its siblings. A move, and a deletion, is about all below the node as well, unless it is `alone`.
    """

    event: Event
    sk: str
    id: str
    level: str
    revision: int
    source: str | None = None
    target: str | None = None
    alone: bool = False


def root_name(pk: str) -> str:
    """How the log of a hierarchy names the root of a tree."""
    return f"{pk[pk.index('#') :]}#"


def rfc3339(seconds: float) -> str:
    """A time in UTC as it is stored."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def log_item(
    stamp: Stamp, entries: Iterable[LogEntry], at: str, now: float, ranks: Mapping[str, str] | None = None
) -> Put:
    """What the transaction that raises `stamp` leaves in the log; `at` is the time as text, `now` in seconds.

    `ranks` are the new ranks of siblings that were put in another order, by what stands for `sk` in entries.
    """
    key = log_key(stamp.partition, stamp.n + 1)
    changes: list[Value] = [[*_needed(entry)] for entry in entries]
    item: Item = {"pk": key.pk, "sk": key.sk, "at": at, "changes": changes, "expires": stamp.next_expires(now)}
    if ranks:
        item["ranks"] = cast(Value, dict(ranks))
    return Put(item)


def _needed(entry: LogEntry) -> tuple[Value, ...]:
    """An entry without what it leaves out at its end."""
    return (entry.event.value, *entry[1 : None if entry.alone else 7 if entry.source else 5])


def entries_of(item: Item) -> list[LogEntry]:
    """What an item of the log tells."""
    return [LogEntry(Event(event), *rest) for event, *rest in cast(dict[str, Any], item)["changes"]]
