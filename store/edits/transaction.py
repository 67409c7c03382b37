"""One transaction as it is being drafted: what was read goes in, what is to be committed comes out.

Nothing is read or written here, so a dry run is a draft that nobody commits. The counts of everything above a change,
the stamps of all trees that it touches and their logs follow from the changes themselves.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.errors import Conflict, TooLarge
from store.metadata.change_log import (
    Event,
    LogEntry,
    log_item,
    root_log_key,
)
from store.metadata.history import id_item, revision_item, tombstone_item
from store.metadata.move_record import Move
from store.metadata.redirects import redirect_item, redirect_key, redirected_id
from store.metadata.tree_version import ActiveMoveRef, TreeVersion, level_at_depth
from store.model.items import (
    ABSENT,
    MAX_ITEM_BYTES,
    UNCONDITIONAL,
    Change,
    Condition,
    Delete,
    Item,
    Put,
    canonical_item,
    size_of,
)
from store.model.key_rewrite import SubtreeRewrite
from store.model.keys import (
    Key,
    Path,
    ancestor_keys,
    parent_sort_key,
    tree_version_key,
)
from store.model.paths import format_path
from store.model.records import Counts, Record

WRITE_UNIT_BYTES = 1024
MOST_MOVES = 20  # under way in one tree: each reader of the tree reads their records
MOST_SMALL_ENTRIES = 50  # of a log, which fit into an item whatever their paths
MOST_RANKS = 100  # which a log tells; no transaction gives more where indexes trail behind
INDEXES = 2  # beside the table, each of which a node's item is written to as well


@dataclass(frozen=True)
class WriteContext:
    """When something is written, as a time in UTC (RFC 3339) and in seconds, and by whom, where that is known."""

    at: str
    now: float
    by: str | None = None


class ReadSet:
    """What was read before a transaction is drafted, None where there is nothing; asking for anything else fails."""

    def __init__(self, items: Mapping[Key, Item | None]) -> None:
        self._items = dict(items)

    def __contains__(self, key: Key) -> bool:
        return key in self._items

    def item(self, key: Key) -> Item | None:
        return self._items[key]

    def record(self, key: Key) -> Record | None:
        item = self._items[key]
        return None if item is None else Record.of(item)

    def stamp(self, partition: str) -> TreeVersion:
        return TreeVersion.of(partition, self._items[tree_version_key(partition)])

    def add(self, items: Mapping[Key, Item | None]) -> None:
        self._items |= items


@dataclass
class _Counts:
    """What the children and descendants of one node become more or less."""

    kids: Counter[str] = field(default_factory=Counter)
    below: Counter[str] = field(default_factory=Counter)


@dataclass
class _Touched:
    """What a transaction changes of a tree beside its nodes, or of a hierarchy beside its roots."""

    shape: Counter[str] = field(default_factory=Counter)
    aliases: int = 0
    moves: tuple[ActiveMoveRef, ...] | None = None
    entries: list[LogEntry] = field(default_factory=list)
    ranks: dict[str, str] = field(default_factory=dict)


class TransactionBuilder:
    """The changes so far. `record` is the node that it is about as it will be, `nodes` how many are written,
    `collisions` paths that others have already, so that it cannot be committed, and `move` is the journaled one that
    it begins, if it does. What would write into a move that is under way is refused as a Conflict.
    """

    def __init__(self, seen: ReadSet, moment: WriteContext, record: Record) -> None:
        self.seen = seen
        self.moment = moment
        self.record = record
        self.nodes = 0
        self.collisions: list[Path] = []
        self.move: Move | None = None
        self._changes: dict[Key, Change] = {}
        self._counts: dict[Key, _Counts] = {}
        self._trees: dict[str, _Touched] = {}

    def keep_out(self, *keys: Key) -> None:
        """Raise Conflict where one of these keys lies at an end of a move that is under way, or below."""
        for key in keys:
            for running in self.seen.stamp(key.pk).moves:
                if running.holds(key):
                    raise Conflict(running.refusal(key))

    # -- what can be done ----------------------------------------------------------------------------------------------

    def create(self, record: Record, id_when: Condition) -> None:
        """A new node; `id_when` is required of its id's record."""
        self._put(record, ABSENT)
        self._change(Put(id_item(record), id_when))
        self._count(record, shape_of([record]), 1)
        self._tree(record.pk).shape.update(shape_of([record]))
        self._log(Event.CREATED, record)

    def update(self, old: Record, new: Record) -> None:
        """The next revision of a node's content."""
        self._put(new)
        self._change(Put(revision_item(old)))
        self._log(Event.UPDATED, new)

    def reorder(self, record: Record, rank: str) -> Record:
        """Another place among its siblings."""
        self._log(Event.MOVED, record, record.path, record.path)
        return self._rank(record, rank)

    def rank_anew(self, record: Record, line: Sequence[Record], ranks: Sequence[str]) -> Record:
        """New ranks for all siblings of a node, itself included, which is the one that the log tells."""
        new = {one.key: self._rank(one, rank) for one, rank in zip(line, ranks, strict=True)}
        self._log(Event.MOVED, record, record.path, record.path)
        return new[record.key]

    async def remove(self, records: Sequence[Record], *, alone: bool = False) -> None:
        """A node and all below it, its own record first; `alone` where what lies below goes elsewhere."""
        top = records[0]
        self._keep_apart(top.key)
        async for some in in_chunks(records):
            for record in some:
                self._change(Delete(record.key))
                self._change(Put(revision_item(record)))
                self._change(Put(tombstone_item(record, self.moment.at, self.moment.by)))
        self.nodes += len(records)
        self.count_removed(top, shape_of(records), alone=alone)

    async def relocate(self, records: Sequence[Record], way: SubtreeRewrite) -> None:
        """A node and all below it to another place, its own record first. Raises BadPath where that is none for all."""
        top = way.moved(records[0])
        self._keep_apart(way.source, way.target)
        async for some in in_chunks(records):
            for record in some:
                moved = way.moved(record)
                # At the new place may lie a node that the same transaction removes.
                free = moved.key == way.target and self.seen.item(way.target) is None
                self._change(Delete(record.key))
                self._change(Put(moved.item(), ABSENT if free else UNCONDITIONAL))
                self._change(Put(id_item(moved)))
        self.nodes += len(records)
        self.count_moved(records[0], top, shape_of(records))

    # -- moves that take more than one transaction ---------------------------------------------------------------------

    def begin(self, move: Move) -> None:
        """Register a move, whose nodes and places nobody else writes to until it ends.

        Raises Conflict where it meets another one, or where so many are under way that readers would suffer.
        """
        self._keep_apart(*move.running.ends)
        if any(len(self.seen.stamp(partition).moves) >= MOST_MOVES for partition in move.running.partitions):
            raise Conflict(f"{MOST_MOVES} large moves are under way in this tree; try again when some have ended.")
        self.move, self.nodes = move, move.nodes
        self._change(Put(move.item(), ABSENT))
        for partition in move.running.partitions:
            self._tree(partition).moves = (*self.seen.stamp(partition).moves, move.running)

    def count_removed(self, top: Record, shape: Counts, *, alone: bool = False) -> None:
        """What the end of a node and all below it, so many in each tier, changes of what counts and tells them."""
        self._count(top, shape, -1)
        self._tree(top.pk).shape.subtract(shape)
        self._log(Event.DELETED, top, alone=alone)

    def count_moved(self, old: Record, new: Record, shape: Counts) -> None:
        """What the move of a node and all below it, so many in each tier of its old tree, changes of that."""
        self._count(old, shape, -1)
        self._count(new, shape, 1)
        self._tree(old.pk).shape.subtract(shape)
        self._tree(new.pk).shape.update(_deeper(shape, new.depth - old.depth))
        self._alias(old.key, new)
        self._log(Event.MOVED, old if old.pk != new.pk else new, old.path, new.path)
        if old.pk != new.pk:
            self._log(Event.MOVED, new, old.path, new.path)

    # -- what follows from it ------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self._changes

    def changes(self) -> list[Change]:
        """All of it as one commit takes it; raises TooLarge where its log does not fit into one item."""
        moment, found = self.moment, dict(self._changes)
        for key, counts in self._counts.items():
            old = self.seen.record(key)
            if key in found or old is None:
                continue  # a node that is itself removed
            new = replace(old, kids=_sum(old.kids, counts.kids), below=_sum(old.below, counts.below))
            if (new.kids, new.below) != (old.kids, old.below):
                found[key] = Put(new.item())
        for partition, touched in self._trees.items():
            stamp = self.seen.stamp(partition)
            put = stamp.incremented(touched.shape, touched.aliases, touched.moves, now=moment.now)
            found[put.key] = put
            if "#" in partition or touched.entries:
                ranks = touched.ranks if len(touched.ranks) <= MOST_RANKS else {}
                put = log_item(stamp, touched.entries, moment.at, moment.now, ranks)
                self._check_log(touched.entries, put.item)
                found[put.key] = put
        return list(found.values())

    async def write_units(self) -> int:
        """About how many write units of DynamoDB the commit takes: two for each KB of an item, and its indexes'."""
        units = 0
        async for some in in_chunks(self.changes()):
            units += sum(map(self._units_of, some))
        return units

    def _units_of(self, change: Change) -> int:
        size = size_of(canonical_item(change.item)) if isinstance(change, Put) else 1
        is_node = isinstance(change, Put) and "tier" in change.item
        is_node = is_node or (isinstance(change, Delete) and change.key.pk.startswith(f"{self.record.hierarchy}#"))
        return -(-size // WRITE_UNIT_BYTES) * (2 + INDEXES * is_node)

    def _check_log(self, entries: Sequence[LogEntry], item: Item) -> None:
        if len(entries) > MOST_SMALL_ENTRIES and size_of(canonical_item(item)) > MAX_ITEM_BYTES:
            raise TooLarge(
                f"{len(entries):,} nodes would get other places at once, each with all below it, more than the "
                "change feed tells as one change. Move some of them by themselves before."
            )

    def _rank(self, record: Record, rank: str) -> Record:
        new = replace(record, rank=rank)
        self._put(new)
        self._tree(record.pk)
        log, name = (record.hierarchy, root_log_key(record.pk)) if record.is_root else (record.pk, record.sk)
        self._tree(log).ranks[name] = rank
        return new

    def _put(self, record: Record, when: Condition = UNCONDITIONAL) -> None:
        self.keep_out(record.key)
        self.nodes += 1
        self._change(Put(record.item(), when))

    def _keep_apart(self, *tops: Key) -> None:
        """Raise Conflict where the subtree at one of these and one that is being moved have anything in common."""
        for top in tops:
            for running in self.seen.stamp(top.pk).moves:
                if running.meets(top):
                    raise Conflict(running.refusal(top))

    def _change(self, change: Change) -> None:
        """Note a change; of two of one item, as where a node comes to the place that another leaves, the put stays."""
        known = self._changes.get(change.key)
        if isinstance(known, Put) and isinstance(change, Delete):
            return
        if isinstance(known, Delete) and isinstance(change, Put):
            change = Put(change.item)
        self._changes[change.key] = change

    def _count(self, top: Record, shape: Counts, sign: int) -> None:
        """Count a node and all below it, so many in each tier, more or less in all above."""
        below = _levels(shape)
        for key in ancestor_keys(top.key):
            counts = self._counts.setdefault(key, _Counts())
            for level, number in below.items():
                counts.below[level] += sign * number
        if top.is_root:
            self._tree(top.hierarchy).shape[level_at_depth(top.level, 0)] += sign
        else:
            self._counts[Key(top.pk, parent_sort_key(top.sk))].kids[top.level] += sign

    def _alias(self, place: Key, moved: Record) -> None:
        """Lead from the old place of a moved node to its id, and drop what leads from its new one to itself."""
        tree = self._tree(place.pk)
        tree.aliases += self.seen.item(redirect_key(place)) is None
        self._change(Put(redirect_item(place, moved.id)))
        there = redirect_key(moved.key)
        found = self.seen.item(there)
        if found is not None and redirected_id(found) == moved.id:
            self._tree(moved.pk).aliases -= 1
            self._change(Delete(there))

    def _log(
        self,
        event: Event,
        record: Record,
        source: Path | None = None,
        target: Path | None = None,
        *,
        alone: bool = False,
    ) -> None:
        old, new = [None if path is None else format_path(path) for path in (source, target)]
        entry = LogEntry(event, record.sk, record.id, record.level, record.revision, old, new, alone)
        self._tree(record.pk).entries.append(entry)
        if record.is_root and event is not Event.UPDATED:
            self._tree(record.hierarchy).entries.append(entry._replace(sk=root_log_key(record.pk)))

    def _tree(self, partition: str) -> _Touched:
        return self._trees.setdefault(partition, _Touched())


def shape_of(records: Sequence[Record]) -> Counts:
    """How many of some records each tier has."""
    return Counter([level_at_depth(record.level, record.depth) for record in records])


def _levels(shape: Counts) -> Counter[str]:
    levels: Counter[str] = Counter()
    for tier, number in shape.items():
        levels[tier.rpartition("@")[0]] += number
    return levels


def _deeper(shape: Counts, depths: int) -> Counts:
    """The same nodes so many depths further down."""
    split = [(*tier.rpartition("@")[::2], number) for tier, number in shape.items()]
    return {level_at_depth(level, int(depth) + depths): number for level, depth, number in split}


def _sum(counts: Counts, change: Mapping[str, int]) -> Counts:
    """Counts with a change, of which zero is told by absence."""
    summed = {level: counts.get(level, 0) + change.get(level, 0) for level in {**counts, **change}}
    return {level: count for level, count in summed.items() if count}
