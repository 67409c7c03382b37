"""Tree version: a number that every transaction on a tree increments, with the tree's counts of nodes; the change log
that belongs to it; and the layout version of the table.

The version is at `sk` = `!` of the tree's partition. A transaction requires the version that it read, so nothing can
be written between its reads and its writes (optimistic concurrency). What it changed is a log item at `!` and the
number of the version after it, kept for 90 days. The roots of a hierarchy have a version and a log, too, in the
partition of the hierarchy's name: which roots there are, and their order.

The layout version is an item of DynamoDB's table, and SQLite's `user_version`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, NamedTuple, cast

from msgspec import Meta, Struct
from msgspec.structs import replace

from store.errors import BadPath, WrongLayout, shorten
from store.model.attributes import Value
from store.model.decoding import Count, Number, Partition, SortKey, Time, decoded
from store.model.keys import Key, hierarchy_of, listed, log_key, path_of, tree_version_key
from store.model.paths import format_path, parse_path
from store.model.records import ABSENT, Counts, Item, Put, Record

LOG_SECONDS = 90 * 24 * 3600  # until log items expire
LAYOUT = 3
"""The version that this Clade reads and writes."""
COPYING = -1
"""The version of a table while `clade copy` fills it; it cannot be used until the copy is complete."""
LAYOUT_KEY = Key("!", "layout")  # not that of a hierarchy, whose names begin with a letter


class ActiveMoveRef(NamedTuple):
    """A running move: its id, and the tops of the subtree at its source and target; a deletion has no target, and of
    the restore of a deletion both are the same.
    """

    id: str
    source: Key
    target: Key | None

    @property
    def is_restore(self) -> bool:
        return self.source == self.target

    def hidden(self, *, has_committed: bool) -> Key | None:
        """The top of the subtree that is hidden while it runs."""
        return self.target if not has_committed else None if self.is_restore else self.source

    @property
    def ends(self) -> tuple[Key, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)

    @property
    def partitions(self) -> set[str]:
        """The partitions whose versions list it: the trees of its ends, and the hierarchy where an end is a root."""
        return {end.pk for end in self.ends} | {hierarchy_of(end.pk) for end in self.ends if end.sk == "#"}

    def holds(self, key: Key) -> bool:
        """Whether a node is in the subtree at one of its ends."""
        return any(end.holds(key) for end in self.ends)

    def meets(self, key: Key) -> bool:
        """Whether the subtree at a key and one at an end of the move overlap."""
        return any(end.holds(key) or key.holds(end) for end in self.ends)

    def refusal(self, key: Key) -> str:
        """The message for a write at a key that `meets` the move; the other end may be hidden."""
        end = next((top for top in self.ends if top.holds(key) or key.holds(top)), self.source)
        verb = "restored" if self.is_restore else "deleted" if self.target is None else "moved"
        path = shorten(format_path(path_of(*end)))
        moving = f"{path} is being {verb} with all below it" if end == self.source else f"A subtree is moved to {path}"
        return f"{moving}; try again when the move {self.id} has ended."


class _StoredMove(Struct, array_like=True, forbid_unknown_fields=True):
    id: str
    pk: Partition
    sk: SortKey
    to_pk: Partition | None = None
    to_sk: SortKey | None = None

    def __post_init__(self) -> None:
        if (self.to_pk is None) is not (self.to_sk is None):
            raise ValueError("Expected both keys of the target")

    @property
    def ref(self) -> ActiveMoveRef:
        target = None if self.to_pk is None or self.to_sk is None else Key(self.to_pk, self.to_sk)
        return ActiveMoveRef(self.id, Key(self.pk, self.sk), target)


class _StoredMoves(Struct):
    moves: list[_StoredMove] = []


class StoredVersion(_StoredMoves, kw_only=True):
    """The item of a tree version."""

    n: Number
    shape: dict[str, Count]
    aliases: bool
    log_expires: Count = 0

    def __post_init__(self) -> None:
        for name in self.shape:
            if not name.rpartition("@")[2].isdecimal():
                raise ValueError("Expected levels and depths in `shape`")


@dataclass(frozen=True)
class TreeVersion:
    """`number` is the number of transactions so far, `shape` the nodes by level and depth (`{"CITY@2": 50}`).

    `has_redirects` is whether a node has ever left a path of the tree by a move, so that there may be redirects.
    `moves` are those that run with an end in it, and `log_expires` is when the last item of its change log expires. The
    version of a hierarchy's roots counts the roots alone, lists the moves with an end that is a root, and is in the
    list of all hierarchies.
    """

    partition: str
    number: int = 0
    shape: dict[str, int] = field(default_factory=dict)
    has_redirects: bool = False
    moves: tuple[ActiveMoveRef, ...] = ()
    log_expires: int = 0

    @classmethod
    def of(cls, partition: str, item: Item | None) -> "TreeVersion":
        """The version in an item; without one, that of a tree in which nothing was ever written. Raises DamagedItem."""
        if item is None:
            return cls(partition)
        found = decoded(item, StoredVersion)
        moves = tuple([move.ref for move in found.moves])
        return cls(partition, found.n, found.shape, found.aliases, moves, found.log_expires)

    @property
    def key(self) -> Key:
        return tree_version_key(self.partition)

    @property
    def has_shape(self) -> bool:
        """Whether the shape is known, so that reads may be planned by it."""
        return bool(self.shape)

    def depths(self, level: str) -> list[int]:
        """The depths at which the tree has nodes of a level."""
        return sorted(depth for name, depth in self.tiers() if name == level)

    def tiers(self) -> list[tuple[str, int]]:
        """The pairs of level and depth that have nodes."""
        parts = (name.rpartition("@") for name, count in self.shape.items() if count)
        return [(level, int(depth)) for level, _, depth in parts]

    @cached_property
    def below_root(self) -> Counts:
        """The number of descendants of the root, by level."""
        return dict(+by_level({name: count for name, count in self.shape.items() if not name.endswith("@0")}))

    def with_counts(self, record: Record) -> Record:
        """A node of the tree with `below`, which of a root is here and not in its item."""
        return replace(record, below=self.below_root) if record.is_root else record

    def next_expires(self, now: float) -> int:
        """The expiry of a log item that is written now: not before that of older ones, also where clocks differ."""
        return max(self.log_expires, int(now) + LOG_SECONDS)

    def incremented(
        self,
        change: dict[str, int],
        moves: tuple[ActiveMoveRef, ...] | None = None,
        *,
        has_redirects: bool = False,
        now: float = 0,
    ) -> Put:
        """The change that increments the number, and adds `change` to the shape.

        `moves` are those that run from then on, None: unchanged. `has_redirects` is whether a node leaves a path by a
        move; once it was, it stays so. The change requires that the version is still this one.
        """
        item: Item = {
            "pk": self.key.pk, "sk": self.key.sk, "n": self.number + 1,
            "shape": cast(Value, changed_counts(self.shape, change)),
            "aliases": self.has_redirects or has_redirects,
        }  # fmt: skip
        if "#" not in self.partition:
            item |= listed(self.partition)
        if expires := self.next_expires(now) if now else self.log_expires:
            item["log_expires"] = expires
        if running := self.moves if moves is None else moves:
            item["moves"] = encode_moves(running)
        return Put(item, {"n": self.number} if self.number else ABSENT)


def decode_moves(version: Item | None) -> tuple[ActiveMoveRef, ...]:
    """The running moves in the item of a tree version; raises DamagedItem."""
    return () if version is None else tuple([move.ref for move in decoded(version, _StoredMoves).moves])


def encode_moves(moves: Iterable[ActiveMoveRef]) -> Value:
    """Running moves as the item of a tree version stores them."""
    return [[move.id, *move.source, *(move.target or ())] for move in moves]


def changed_counts(counts: Counts, change: Counts) -> Counts:
    """Counts with a change, without those that are zero."""
    summed = {name: counts.get(name, 0) + change.get(name, 0) for name in {**counts, **change}}
    return {name: count for name, count in summed.items() if count}


def by_level(shape: Counts) -> Counter[str]:
    """The numbers of a shape by level, of all depths together."""
    counts: Counter[str] = Counter()
    for name, count in shape.items():
        counts[name.rpartition("@")[0]] += count
    return counts


def level_at_depth(level: str, depth: int) -> str:
    """The name of a level at a depth in a shape: `CITY@2`."""
    return f"{level}@{depth}"


def layout_item(version: int = LAYOUT) -> Item:
    """The item that stores a layout version."""
    return {"pk": LAYOUT_KEY.pk, "sk": LAYOUT_KEY.sk, "version": version}


def layout_in(item: Item | None) -> object:
    """The version in the item of a table, None where it has none."""
    return None if item is None else item.get("version")


def check_layout(name: str, found: object) -> None:
    """Raise WrongLayout unless this is the version that can be read and written."""
    if found == COPYING:
        raise WrongLayout(f'"{name}" is an unfinished copy; run the same clade copy again to finish it.')
    if found is None:
        raise WrongLayout(f'"{name}" has no layout version; run clade table create, or use another table.')
    if found != LAYOUT:
        raise WrongLayout(
            f'"{name}" has layout {found}, and this Clade needs {LAYOUT}; use the version of Clade that wrote it.'
        )


class Event(StrEnum):
    CREATED = "CREATED"
    UPDATED = "UPDATED"
    MOVED = "MOVED"
    DELETED = "DELETED"
    RESTORED = "RESTORED"


class LogEntry(NamedTuple):
    """The change of one node: the event, the node's key and id, its level and its revision after the change.

    `sk` is its key without the log's partition: of a node `#NE#`, of a root in its hierarchy's log `#US#`. A move has
    the paths of its source and target, and is in the logs of both trees; with equal paths only the order among siblings
    changed. A move, deletion or restore includes all descendants unless it is `alone`.
    """

    event: Event
    sk: SortKey
    id: str
    level: str
    revision: Number
    source: str | None = None
    target: str | None = None
    alone: bool = False


def root_log_key(pk: str) -> str:
    """The `sk` of a root in the log of its hierarchy."""
    return f"{pk[pk.index('#') :]}#"


def log_item(
    version: TreeVersion, entries: Iterable[LogEntry], at: str, now: float, ranks: Mapping[str, str] | None = None
) -> Put:
    """The log item of the transaction that increments `version`; `at` is the time as text, `now` in seconds.

    `ranks` are the new ranks of siblings that were reordered, by their `sk` as in entries.
    """
    key = log_key(version.partition, version.number + 1)
    # Without the values at the end of an entry that are None or False.
    changes: list[Value] = [
        [one.event.value, *one[1 : None if one.alone else 7 if one.source else 5]] for one in entries
    ]
    item: Item = {"pk": key.pk, "sk": key.sk, "at": at, "changes": changes, "expires": version.next_expires(now)}
    if ranks:
        item["ranks"] = cast(Value, dict(ranks))
    return Put(item)


class Transaction(Struct, rename={"entries": "changes"}):
    """A log item: the time of a transaction (RFC 3339, UTC), also in seconds since 1970, its entries and new ranks."""

    sk: Annotated[str, Meta(pattern=r"^!\d{1,18}$")]
    at: Time
    entries: Sequence[LogEntry]
    ranks: dict[SortKey, str] = {}
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.seconds = datetime.fromisoformat(self.at).timestamp()
        for entry in self.entries:
            try:
                places = [parse_path(path) for path in (entry.source, entry.target) if path is not None]
            except BadPath as error:
                raise ValueError(str(error)) from None
            if len(places) != (2 if entry.event is Event.MOVED else 0):
                raise ValueError("Expected the paths of a move, and of no other change")

    @property
    def number(self) -> int:
        """The number of the tree version after the transaction."""
        return int(self.sk[1:])
