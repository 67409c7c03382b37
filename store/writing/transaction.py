"""Transaction builder: what was read goes in, the changes of one commit come out.

Nothing is read or written here, so a dry run is a transaction that is not committed. All that follows from a change of
nodes is derived here, whatever the edit: id records, revisions, tombstones and redirects, the counts of all ancestors,
the versions of all trees that it touches and their change logs; search items by `search_changes.py`.

Many small changes are cut into transactions by count and bytes (`in_transactions`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.errors import Conflict, TooLarge
from store.metadata.history import id_item, redirect_item, revision_item, tombstone_item, without_redirect
from store.metadata.moves import Move
from store.metadata.tree_version import (
    ActiveMoveRef,
    Event,
    LogEntry,
    by_level,
    changed_counts,
    level_at_depth,
    log_item,
    root_log_key,
)
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, ancestor_keys, parent_sort_key
from store.model.paths import format_path
from store.model.records import (
    ABSENT,
    MAX_BATCH_BYTES,
    MAX_ITEM_BYTES,
    UNCONDITIONAL,
    Change,
    Condition,
    Counts,
    Delete,
    Put,
    Record,
    SubtreeRewrite,
    canonical_item,
    size_of,
)
from store.search.items import is_indexed
from store.writing.reads import ReadSet, WriteContext
from store.writing.search_changes import SearchChanges

T = TypeVar("T")

MAX_MOVES = 20  # running in one tree: each reader of the tree reads their records
MAX_SMALL_ENTRIES = 50  # of a log, which fit into an item whatever their paths
MAX_LOGGED_RANKS = 100  # no transaction changes more where indexes are behind the table


@dataclass
class _CountChange:
    """The change of a node's counts of children and descendants, by level."""

    kids: Counter[str] = field(default_factory=Counter)
    below: Counter[str] = field(default_factory=Counter)


@dataclass
class _TreeChange:
    """The changes of one partition's tree version and log; `moves` is None where the running moves stay the same."""

    shape: Counter[str] = field(default_factory=Counter)
    has_redirects: bool = False
    moves: tuple[ActiveMoveRef, ...] | None = None
    entries: list[LogEntry] = field(default_factory=list)
    ranks: dict[str, str] = field(default_factory=dict)


class TransactionBuilder:
    """The changes of one transaction so far, on nodes of a `hierarchy`, None where its class is not loaded.

    `record` is the node that it is about, as it will be; `nodes` counts the nodes that it writes; `collisions` are
    paths that other nodes have, so that it cannot be committed; `move` is the large move that it begins. All
    methods raise Conflict for a change of a node that a running move holds.
    """

    def __init__(self, hierarchy: Hierarchy | None, read_set: ReadSet, context: WriteContext, record: Record) -> None:
        self.read_set = read_set
        self._search = (
            None if hierarchy is None or not is_indexed(hierarchy) else SearchChanges(hierarchy, read_set, context)
        )
        self.context = context
        self.record = record
        self.nodes = 0
        self.collisions: list[Path] = []
        self.move: Move | None = None
        self._changes: dict[Key, Change] = {}
        self._counts: defaultdict[Key, _CountChange] = defaultdict(_CountChange)
        self._trees: dict[str, _TreeChange] = {}

    def check_not_moving(self, *keys: Key) -> None:
        """Raise Conflict where one of these keys is in a subtree at an end of a running move."""
        for key in keys:
            for running in self.read_set.version(key.pk).moves:
                if running.holds(key):
                    raise Conflict(running.refusal(key))

    # -- edits ---------------------------------------------------------------------------------------------------------

    def create(self, record: Record, id_when: Condition) -> None:
        """Add a new node; `id_when` is the condition for its id record."""
        self._put(record, ABSENT)
        self._change(Put(id_item(record), id_when))
        if self._search is not None:
            self._search.create(record)
        self._count(record, shape_of([record]), 1)
        self._tree(record.pk).shape.update(shape_of([record]))
        self._log(Event.CREATED, record)

    def update(self, old: Record, new: Record) -> None:
        """Write the next revision of a node's content."""
        self._put(new)
        self._change(Put(revision_item(old)))
        if self._search is not None:
            self._search.update(old, new)
        self._log(Event.UPDATED, new)

    def reorder(self, siblings: Sequence[Record], ranks: Sequence[str]) -> None:
        """Give siblings new ranks, `record` among them, which alone is in the log's entries."""
        record = self.record
        for one, rank in zip(siblings, ranks, strict=True):
            new = replace(one, rank=rank)
            self._put(new)
            self._tree(one.pk)
            log, name = (one.hierarchy, root_log_key(one.pk)) if one.is_root else (one.pk, one.sk)
            self._tree(log).ranks[name] = rank
            if one.key == record.key:
                self.record = new
        self._log(Event.MOVED, record, record.path, record.path)

    async def remove(self, records: Sequence[Record], *, alone: bool = False) -> None:
        """Remove a node and all below it, its own record first; `alone` where the subtree goes elsewhere."""
        top = records[0]
        self._check_apart(top.key)
        has_redirects = self.read_set.version(top.pk).has_redirects
        async for some in in_chunks(records):
            for record in some:
                self._change(Delete(record.key))
                self._change(Put(revision_item(record)))
                self._change(Put(tombstone_item(record, self.context.at, self.context.by)))
                for change in without_redirect(record, has_redirects=has_redirects):
                    self._change(change)
        if self._search is not None:
            await self._search.remove(records)
        self.nodes += len(records)
        self.record_removal(top, shape_of(records), alone=alone)

    async def relocate(self, records: Sequence[Record], rewrite: SubtreeRewrite) -> None:
        """Move a node and all below it, its own record first. Raises BadPath where a key would be too long or deep."""
        top = rewrite.moved(records[0])
        self._check_apart(rewrite.source, rewrite.target)
        async for some in in_chunks(records):
            for record in some:
                moved = rewrite.moved(record)
                # At the target may be a node that the same transaction removes.
                is_free = moved.key == rewrite.target and self.read_set.item(rewrite.target) is None
                self._change(Delete(record.key))
                self._change(Put(moved.item(), ABSENT if is_free else UNCONDITIONAL))
                self._change(Put(id_item(moved)))
                self._change(Put(redirect_item(record)))
        self._tree(rewrite.source.pk).has_redirects = True
        if self._search is not None:
            await self._search.relocate(records, rewrite)
        self.nodes += len(records)
        self.record_move(records[0], top, shape_of(records))

    # -- large moves ---------------------------------------------------------------------------------------------------

    def begin(self, move: Move) -> None:
        """Register a large move, to whose subtrees nobody else writes until it ends.

        Raises Conflict where it overlaps another one, or where as many are running as readers can bear.
        """
        self._check_apart(*move.running.ends)
        if any(len(self.read_set.version(partition).moves) >= MAX_MOVES for partition in move.running.partitions):
            raise Conflict(f"{MAX_MOVES} large moves are running in this tree; try again when some have ended.")
        self.move, self.nodes = move, move.nodes
        if self._search is not None:
            self._search.begin(move.id)
        self._change(Put(move.item(), ABSENT))
        if move.target is not None:
            self._tree(move.source.pk).has_redirects = True  # the redirects are written with the copies
        for partition in move.running.partitions:
            self._tree(partition).moves = (*self.read_set.version(partition).moves, move.running)

    def record_removal(self, top: Record, shape: Counts, *, alone: bool = False) -> None:
        """Change counts and logs for the removal of a subtree with the counts `shape` (`{"CITY@2": 50}`)."""
        self._count(top, shape, -1)
        self._tree(top.pk).shape.subtract(shape)
        self._log(Event.DELETED, top, alone=alone)

    def record_move(self, old: Record, new: Record, shape: Counts) -> None:
        """Change counts and logs for the move of a subtree with the counts `shape` at its old place."""
        self._count(old, shape, -1)
        self._count(new, shape, 1)
        self._tree(old.pk).shape.subtract(shape)
        self._tree(new.pk).shape.update(_deeper(shape, new.depth - old.depth))
        if self._search is not None:
            self._search.move(old, new)
        self._log(Event.MOVED, old if old.pk != new.pk else new, old.path, new.path)
        if old.pk != new.pk:
            self._log(Event.MOVED, new, old.path, new.path)

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def nodes_left_out(self) -> int:
        """The number of removed nodes whose search items are not among the changes, since this is a dry run."""
        return 0 if self._search is None else self._search.left_out

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
            kids, below = changed_counts(old.kids, count.kids), changed_counts(old.descendant_counts, count.below)
            new = replace(old, kids=kids, below=below)
            if (new.kids, new.below) != (old.kids, old.below):
                changes[key] = Put(new.item())
        for partition, tree in self._trees.items():
            for put in self._version_and_log(partition, tree):
                changes[put.key] = put
        if self._search is not None:
            changes.update(self._search.changes)
        return list(changes.values())

    def _version_and_log(self, partition: str, tree: _TreeChange) -> list[Put]:
        version, now = self.read_set.version(partition), self.context.now
        puts = [version.incremented(tree.shape, tree.moves, has_redirects=tree.has_redirects, now=now)]
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

    def _put(self, record: Record, when: Condition = UNCONDITIONAL) -> None:
        self.check_not_moving(record.key)
        self.nodes += 1
        self._change(Put(record.item(), when))

    def _check_apart(self, *tops: Key) -> None:
        """Raise Conflict where the subtree at one of these keys overlaps one that is being moved."""
        for top in tops:
            for running in self.read_set.version(top.pk).moves:
                if running.meets(top):
                    raise Conflict(running.refusal(top))

    def _change(self, change: Change) -> None:
        """Add a change. Of a Put and a Delete of one item, as where a node replaces one that leaves, the Put stays."""
        earlier = self._changes.get(change.key)
        if isinstance(earlier, Put) and isinstance(change, Delete):
            return
        if isinstance(earlier, Delete) and isinstance(change, Put):
            change = Put(change.item)
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
