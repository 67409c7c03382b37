"""Transaction builder: what was read goes in, the changes of one commit come out.

Nothing is written here, so a dry run is a transaction that is not committed. What is stored besides the nodes follows
from their changes by the kinds of the hierarchy, which may have to read before; the counts of all ancestors of a
change, the versions of all trees that it touches and their change logs follow, too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.edits.reader import Reader, ReadSet, WriteContext
from store.errors import Conflict, TooLarge
from store.kinds.kinds import Kinds
from store.kinds.node_kind import Located, NodeKinds, located
from store.metadata.change_log import Event, LogEntry, log_item, root_log_key
from store.metadata.move_record import Move
from store.metadata.redirects import Departure, departures, log_place, redirect_item, redirect_key
from store.metadata.tree_version import ActiveMoveRef, by_level, level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.items import (
    ABSENT,
    MAX_BATCH_BYTES,
    MAX_ITEM_BYTES,
    UNCONDITIONAL,
    Change,
    Condition,
    Delete,
    Put,
    canonical_item,
    size_of,
)
from store.model.key_rewrite import TOKEN_CHARACTERS, SubtreeRewrite
from store.model.keys import Key, Path, ancestor_keys, last_segment, parent_sort_key
from store.model.paths import format_path
from store.model.records import Counts, Record
from store.search.lineage import lineage

MAX_MOVES = 20  # running in one tree: each reader of the tree reads their records
MAX_SMALL_ENTRIES = 50  # of a log, which fit into an item whatever their paths
MAX_LOGGED_RANKS = 100  # no transaction changes more where indexes are behind the table


class Way(NamedTuple):
    """A move that is a part of another: to a place where a node waits until its target is free (`former` is None), or
    from there to the target; then `former` is the key that the node had before.
    """

    former: Key | None


@dataclass
class _CountChange:
    """The change of a node's counts of children and descendants, by level."""

    kids: Counter[str] = field(default_factory=Counter)
    below: Counter[str] = field(default_factory=Counter)


@dataclass
class _TreeChange:
    """The changes of one partition's tree version and log; `moves` is None where the running moves stay the same."""

    shape: Counter[str] = field(default_factory=Counter)
    redirects: int = 0
    moves: tuple[ActiveMoveRef, ...] | None = None
    entries: list[LogEntry] = field(default_factory=list)
    ranks: dict[str, str] = field(default_factory=dict)


class TransactionBuilder:
    """The changes of one transaction so far, on nodes of a `hierarchy`, None where its class is not loaded.

    `record` is the node that it is about, as it will be; `nodes` counts the nodes that it writes; `move` is the
    background move that it begins. All methods raise Conflict for a change of a node that a running move holds.
    """

    def __init__(
        self, hierarchy: Hierarchy | None, reader: Reader, read_set: ReadSet, context: WriteContext, record: Record
    ) -> None:
        self.read_set = read_set
        self.kinds = Kinds(hierarchy)
        self._reader = reader
        self.context = context
        self.record = record
        self.nodes = 0
        self.move: Move | None = None
        self._changes: dict[Key, Change] = {}
        self._counts: defaultdict[Key, _CountChange] = defaultdict(_CountChange)
        self._trees: dict[str, _TreeChange] = {}

    # -- edits ---------------------------------------------------------------------------------------------------------

    async def create(self, record: Record) -> None:
        """Add a new node; its ancestors and the record of its id were read."""
        self._put(record, ABSENT)
        await self._derive(None, self._located(record))
        if record.is_root and not self.read_set.version(record.hierarchy).number:
            self._add([Put(marker) for marker in self.kinds.nodes.markers()])
        self._count(record, shape_of([record]), 1)
        self._tree(record.pk).shape.update(shape_of([record]))
        self._log(Event.CREATED, record)

    async def update(self, old: Record, new: Record) -> None:
        """Write the next revision of a node's content; its ancestors were read if any kind depends on them."""
        self._put(new)
        self._add(self.kinds.events.changed(old))
        await self._derive(self._located(old), self._located(new))
        self._log(Event.UPDATED, new)

    def reorder(self, record: Record, rank: str) -> Record:
        """Give a node another position among its siblings; returns it as it will be."""
        new = self._rank(record, rank)
        self._log(Event.MOVED, record, record.path, record.path)
        return new

    def rank_again(self, ranks: Iterable[tuple[Record, str]]) -> None:
        """Give nodes new ranks in the order that they have; they are in no entry of the log."""
        for record, rank in ranks:
            self._rank(record, rank)

    async def remove(self, records: Sequence[Record], *, alone: bool = False) -> None:
        """Remove a node and all below it, its own record first; `alone` where the subtree goes elsewhere."""
        top = records[0]
        self._check_apart(top.key)
        line = lineage([[*self.read_set.ancestors(top.key), top][0].id])
        await self._read_ahead(self.kinds.nodes, ((Located(record, line), None) for record in records))
        async for some in in_chunks(records):
            for record in some:
                node = Located(record, line)
                self._change(Delete(record.key))
                self._add(self.kinds.events.deleted(node, self.context.at, self.context.by))
                self._add(self.kinds.nodes.changes(node, None, self.read_set.found))
        self.nodes += len(records)
        self.count_removed(top, shape_of(records), alone=alone)

    async def relocate(self, records: Sequence[Record], rewrite: SubtreeRewrite, way: "Way | None" = None) -> None:
        """Move a node and all below it, its own record first. Raises BadPath where a key would be too long or deep."""
        top = rewrite.moved(records[0])
        self._check_apart(rewrite.source, rewrite.target)
        kinds, found = self.kinds.nodes.of_move(rewrite.source, rewrite.target)[0], self.read_set.found
        old, new = self.read_set.ancestors(rewrite.source), self.read_set.ancestors(rewrite.target)
        moves = zip(located(old, records), located(new, map(rewrite.moved, records)), strict=True)
        async for some in in_chunks(records):
            pairs = list(islice(moves, len(some)))
            await self._read_ahead(kinds, pairs)
            for before, after in pairs:
                moved = after.record
                # At the target may be a node that the same transaction removes.
                is_free = moved.key == rewrite.target and self.read_set.item(rewrite.target) is None
                self._change(Delete(before.record.key))
                self._change(Put(moved.item(), ABSENT if is_free else UNCONDITIONAL))
                self._add(self.kinds.events.carried(before, rewrite.source, rewrite.target))
                self._add(kinds.changes(before, after, found))
        self.nodes += len(records)
        await self.count_moved(records[0], top, shape_of(records), way)

    # -- background moves ----------------------------------------------------------------------------------------------

    def begin(self, move: Move) -> None:
        """Register a background move, to whose subtrees nobody else writes until it ends.

        Raises Conflict where it overlaps another one, or where as many are running as readers can bear.
        """
        self._check_apart(*move.running.ends)
        if any(len(self.read_set.version(partition).moves) >= MAX_MOVES for partition in move.running.partitions):
            raise Conflict(f"{MAX_MOVES} large moves are running in this tree; try again when some have ended.")
        self.move, self.nodes = move, move.nodes
        self._add(self.kinds.events.began(move.id))
        self._change(Put(move.item(), ABSENT))
        for partition in move.running.partitions:
            self._tree(partition).moves = (*self.read_set.version(partition).moves, move.running)

    def count_removed(self, top: Record, shape: Counts, *, alone: bool = False) -> None:
        """Change counts and logs for the removal of a subtree with the counts `shape` (`{"CITY@2": 50}`)."""
        self._count(top, shape, -1)
        self._tree(top.pk).shape.subtract(shape)
        self._log(Event.DELETED, top, alone=alone)

    async def count_moved(self, old: Record, new: Record, shape: Counts, way: "Way | None" = None) -> None:
        """Change counts, redirects and logs for the move of a subtree with the counts `shape` at its old place, and
        what is stored for its top alone.
        """
        self._count(old, shape, -1)
        self._count(new, shape, 1)
        self._tree(old.pk).shape.subtract(shape)
        self._tree(new.pk).shape.update(_deeper(shape, new.depth - old.depth))
        before, after = [[*self.read_set.ancestors(one.key), one] for one in (old, new)]
        await self._derive(self._located(old), self._located(new), self.kinds.nodes.of_move(old.key, new.key)[1])
        self._add(self.kinds.events.moved(before, after, self.read_set.found))
        key = old.key if way is None else way.former
        self._redirect(old.key, new, key)
        if key is None:
            return  # it only waits there
        former = replace(old, pk=key.pk, sk=key.sk)
        self._log(Event.MOVED, former if former.pk != new.pk else new, former.path, new.path)
        if former.pk != new.pk:
            self._log(Event.MOVED, new, former.path, new.path)

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def records(self) -> list[Record]:
        """The node that it is about."""
        return [self.record]

    @property
    def is_empty(self) -> bool:
        return not self._changes

    def changes(self) -> list[Change]:
        """All changes for one commit; raises TooLarge where the log entries do not fit into one item."""
        changes = dict(self._changes)
        for key, count in self._counts.items():
            old = self.read_set.record(key)
            if key in changes or old is None:
                continue  # a node that is itself removed
            new = replace(old, kids=_sum(old.kids, count.kids), below=_sum(old.descendant_counts, count.below))
            if (new.kids, new.below) != (old.kids, old.below):
                changes[key] = Put(new.item())
        for partition, tree in self._trees.items():
            for put in self._version_and_log(partition, tree):
                changes[put.key] = put
        return list(changes.values())

    def _version_and_log(self, partition: str, tree: _TreeChange) -> list[Put]:
        version, now = self.read_set.version(partition), self.context.now
        puts = [version.incremented(tree.shape, tree.redirects, tree.moves, now=now)]
        if "#" in partition or tree.entries:
            ranks = tree.ranks if len(tree.ranks) <= MAX_LOGGED_RANKS else {}
            log = log_item(version, tree.entries, self.context.at, now, ranks)
            if len(tree.entries) > MAX_SMALL_ENTRIES and size_of(canonical_item(log.item)) > MAX_ITEM_BYTES:
                raise TooLarge(
                    f"{len(tree.entries):,} subtrees would be moved at once, more than fit into one entry of the "
                    "change feed. Move some of them first."
                )
            puts.append(log)
        return puts

    # -- single changes ------------------------------------------------------------------------------------------------

    def _rank(self, record: Record, rank: str) -> Record:
        new = replace(record, rank=rank)
        self._put(new)
        self._tree(record.pk)
        log, name = (record.hierarchy, root_log_key(record.pk)) if record.is_root else (record.pk, record.sk)
        self._tree(log).ranks[name] = rank
        return new

    def _put(self, record: Record, when: Condition = UNCONDITIONAL) -> None:
        self.read_set.check_not_moving(record.key)
        self.nodes += 1
        self._change(Put(record.item(), when))

    def _check_apart(self, *tops: Key) -> None:
        """Raise Conflict where the subtree at one of these keys overlaps one that is being moved."""
        for top in tops:
            for running in self.read_set.version(top.pk).moves:
                if running.meets(top):
                    raise Conflict(running.refusal(top))

    def _located(self, record: Record) -> Located:
        return Located.below(self.read_set.ancestors(record.key) if self.kinds.nodes.by_ancestors else [], record)

    async def _derive(self, before: Located | None, after: Located | None, kinds: NodeKinds | None = None) -> None:
        """Add what follows from the change of a node by some kinds, or all."""
        kinds = self.kinds.nodes if kinds is None else kinds
        await self._read_ahead(kinds, [(before, after)])
        self._add(kinds.changes(before, after, self.read_set.found))

    async def _read_ahead(self, kinds: NodeKinds, nodes: Iterable[tuple[Located | None, Located | None]]) -> None:
        """Read what the kinds need for the changes of nodes."""
        if kinds.reads:
            keys = [key for before, after in nodes for key in kinds.keys_to_read(before, after)]
            await self._reader.read_into(self.read_set, [], keys)

    def _add(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._change(change)

    def _change(self, change: Change) -> None:
        """Add a change. Of a Put and a Delete of one item, as where a node replaces one that leaves, the Put stays."""
        earlier = self._changes.get(change.key)
        if isinstance(earlier, Put) and isinstance(change, Delete):
            return
        if isinstance(earlier, Delete) and isinstance(change, Put):
            change = Put(change.item, earlier.when)
        self._changes[change.key] = change

    def _count(self, top: Record, shape: Counts, sign: int) -> None:
        """Add a subtree to the counts of all its ancestors, or subtract it; the root's are in the tree version."""
        below = by_level(shape)
        for key in ancestor_keys(top.key)[1:]:
            for level, number in below.items():
                self._counts[key].below[level] += sign * number
        if top.is_root:
            self._tree(top.hierarchy).shape[level_at_depth(top.level, 0)] += sign
        else:
            self._counts[Key(top.pk, parent_sort_key(top.sk))].kids[top.level] += sign

    def _redirect(self, old: Key, moved: Record, former: Key | None) -> None:
        """Redirect the old path of a moved node to its new one.

        A node that has waited at `old` left its `former` key when it began to wait, and comes to its new key now;
        `former` is None for one that begins to wait.
        """
        key = redirect_key(old if former is None else former)
        found = self.read_set.item(key)
        moves = departures(found)
        tokens = moved.came_by if former is None else moved.came_by[-TOKEN_CHARACTERS:]
        departure = Departure(self._place(old.pk), self._place(moved.pk), tokens, moved.key)
        for waited in moves if key != redirect_key(old) else ():
            if last_segment(*waited.target) == last_segment(*old):
                moves = [one for one in moves if one is not waited]
                tokens = moved.came_by.removeprefix(waited.tokens)
                departure = departure._replace(left=waited.left, tokens=tokens)
        self._tree(old.pk).redirects += found is None
        self._change(Put(redirect_item(key, sorted([*moves, departure]))))

    def _place(self, partition: str) -> str:
        """The place of this transaction in the log of a tree."""
        return log_place(self.read_set.version(partition).number + 1)

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

    def _tree(self, partition: str) -> _TreeChange:
        return self._trees.setdefault(partition, _TreeChange())


def shape_of(records: Sequence[Record]) -> Counts:
    """The number of records by level and depth: `{"CITY@2": 50}`."""
    return Counter([level_at_depth(record.level, record.depth) for record in records])


def _deeper(shape: Counts, depths: int) -> Counts:
    """The same counts, each so many depths further down."""
    split = [(*tier.rpartition("@")[::2], number) for tier, number in shape.items()]
    return {level_at_depth(level, int(depth) + depths): number for level, depth, number in split}


def _sum(counts: Counts, change: Mapping[str, int]) -> Counts:
    """Counts with a change, without those that are zero."""
    summed = {level: counts.get(level, 0) + change.get(level, 0) for level in {**counts, **change}}
    return {level: count for level, count in summed.items() if count}


T = TypeVar("T")


class Step(NamedTuple, Generic[T]):
    """Changes that have to be in one transaction, the bytes that they count, and what they are about."""

    subject: T
    changes: Sequence[Change]
    size: int


def in_transactions(steps: Iterable[Step[T]], max_changes: int) -> Iterator[tuple[list[Change], list[T]]]:
    """The changes of each transaction, with the subjects of its steps; a larger step has one of its own."""
    changes: list[Change] = []
    subjects: list[T] = []
    size = 0
    for step in steps:
        if changes and (len(changes) + len(step.changes) > max_changes or size + step.size > MAX_BATCH_BYTES):
            yield changes, subjects
            changes, subjects, size = [], [], 0
        changes += step.changes
        subjects.append(step.subject)
        size += step.size
    if subjects:
        yield changes, subjects
