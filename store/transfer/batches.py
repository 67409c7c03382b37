"""Batches of an import: the changes to one tree cut into transactions, each of which leaves the table consistent.

An import that stops between two of them leaves fewer nodes than the file has, but no wrong count, id or parent. So a
batch has, besides the nodes it is about, all their ancestors with their new counts, each once.
"""

from collections import ChainMap, Counter
from collections.abc import Iterator, MutableMapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from store.engine import Store
from store.errors import rfc3339
from store.kinds.conditional import Waiting, keys_of
from store.kinds.items import item_changes, removals, removed
from store.kinds.kind import Located
from store.kinds.marker import Recipes
from store.metadata.history import Removal, id_item_at, revision_item
from store.metadata.tree_version import Event, LogEntry, TreeVersion, changed_counts, level_at_depth
from store.model.keys import (
    Key,
    decode_segment,
    first_rank,
    hierarchy_of,
    last_segment,
    level_partition,
    parent_sort_key,
)
from store.model.records import ABSENT, MAX_BATCH_BYTES, Change, Condition, Counts, Item, Put, Record, size_of
from store.transfer.diff import TreeDiff, Update
from store.transfer.staging import Node
from store.writing.derived import node_removed

MAX_LOG_BYTES = 300_000  # the log entries of a batch are one item, and items end at 400 KB
LOG_ENTRY_BYTES = 250  # of an entry without its sort key
ITEM_BYTES = 800  # of a record without its sort key, name and attributes: ids, counts, times, names of attributes
BYTES_A_CHARACTER = 4  # at most, in UTF-8
EXACT_BYTES = 4_000  # of encoded values, whose size in the table may be four times as much
KIND_ITEM_BYTES = 400  # of most of them
KEY_COPIES = 6  # a sort key is in about so many attributes of a record and its id record
NOTHING: tuple[Sequence[Change], Sequence[Waiting]] = ((), ())  # of the items of kinds
VERSION_CHANGES = 5  # added to a batch when it is committed: two versions, their logs, the marker of kinds


class Creation(NamedTuple):
    """A node to be created: its full id, its first revision, and the condition for its id record."""

    node: Node
    id: str
    revision: int = 1
    when: Condition = ABSENT


@dataclass
class Batch:
    """`changes` without versions and logs, and without those of items that are `waiting` for a read of these keys;
    `shape` and `roots` are the changes of the counts of the two versions, `ranks` the new ranks of stored nodes.

    `now` is its time in seconds since 1970, `at` the same in UTC (RFC 3339).
    """

    now: float
    at: str
    changes: list[Change] = field(default_factory=list)
    entries: list[LogEntry] = field(default_factory=list)
    shape: Counts = field(default_factory=dict)
    roots: Counts = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    waiting_keys: set[Key] = field(default_factory=set)
    ranks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pruned:
    """The deletion of one tree's nodes that are pruned, and the numbers of children and descendants that it has removed
    so far, by the sort keys of nodes that are left.
    """

    deletion: str
    kids: Counter[str] = field(default_factory=Counter)
    below: Counter[str] = field(default_factory=Counter)

    def remove(self, sk: str) -> tuple[int, int]:
        """Count a node that is removed, after its children; returns its own two numbers."""
        kids, below = self.kids.pop(sk, 0), self.below.pop(sk, 0)
        parent = parent_sort_key(sk)
        self.kids[parent] += 1
        self.below[parent] += 1 + below
        return kids, below


@dataclass(slots=True)
class _CountedRecord:
    """A record with its present counts; of a root those of its children alone, since its item has no others."""

    record: Record
    is_new: bool = False


class Batches:
    """The batches of one tree with a `version`: the one that is being filled, and the present state of all ancestors of
    changes.

    For each change of a node, its ancestors are found first, then room is made in the batch. `recipes` are what
    items of kinds are made of, `pruned` is what was removed before.
    """

    def __init__(self, recipes: Recipes, diff: TreeDiff, version: TreeVersion, store: Store, pruned: Pruned) -> None:
        self._recipes = recipes
        self._pruned = deepcopy(pruned)  # as if each batch were committed
        self._diff = diff
        self._records: MutableMapping[str, _CountedRecord] = {sk: _CountedRecord(one) for sk, one in diff.above.items()}
        self._pk = version.partition
        self._has_redirects = version.has_redirects
        self._max_changes = store.max_changes - VERSION_CHANGES
        self._now = store.now
        self._ancestors: list[_CountedRecord] = []  # of the present change, the parent first
        self._uncounted = 0  # new nodes in the batch that are not in the counts yet, siblings of one level
        self._level, self._depth = "", 0  # theirs
        self._open()

    def of(self, creations: Sequence[Creation]) -> Iterator[Batch]:
        """Transactions of at most the `max_changes` of the store for `creations` (parents first), updates and removals.

        They build on one another, so each must be committed before the next is requested. Each has the time at which it
        was begun.
        """
        yield from self._create(creations)
        for old, new in self._diff.updated:
            if new.sk in self._diff.circles:
                yield from self._finish()  # an empty batch has room for it
            yield from self._update(old, new)
        for record in self._diff.removed:
            yield from self._remove(record)
        yield from self._finish()

    def fits(self, circle: Sequence[Update]) -> bool:
        """Whether an empty batch has room for updates that belong into one transaction."""
        trial = copy(self)
        trial._records = ChainMap({new.sk: _CountedRecord(new) for _, new in circle}, self._records)
        trial._open()
        return not [batch for old, new in circle for batch in trial._update(old, new)]

    def _create(self, creations: Sequence[Creation]) -> Iterator[Batch]:
        """Create nodes, parents first; siblings of one level that follow one another are counted together."""
        shared: Item = {}  # what siblings of one level have alike
        changes = self._batch.changes
        for creation, following in zip_longest(creations, islice(creations, 1, None)):
            node, own = creation.node, last_segment(self._pk, creation.node.sk)
            ancestors = self._ancestors_of(node.sk)
            if ancestors is not self._ancestors or node.level != self._level:
                self._count_new()
                parent = ancestors[0].record if ancestors else None
                above = [*parent.above, parent.level] if parent else []
                self._ancestors, self._level, self._depth = ancestors, node.level, len(above)
                shared = {
                    "pk": self._pk, "parent": self._pk + parent.sk if parent else hierarchy_of(self._pk),
                    "tier": level_partition(self._pk, node.level, len(above)), "level": node.level,
                    "above": cast(Any, above), "kids": {}, **({"below": {}} if parent else {}),
                }  # fmt: skip
            rank = self._diff.ranks.get(node.sk) if self._diff.plan.order else node.rank
            item: Item = {
                **shared, "sk": node.sk, "rank": rank or first_rank(node.level, own), "id": creation.id,
                "name": decode_segment(own) if node.name is None else node.name, "revision": creation.revision,
                "updated_at": self._batch.at, **node.values,
            }  # fmt: skip
            # The values are measured unless few bytes encode them.
            content = len(node.encoded) if len(node.encoded) < EXACT_BYTES else size_of(node.values)
            found = self._item_changes(None, Record.of(item)) if self._recipes else NOTHING
            yield from self._make_room(node.sk, 2, _bound(node.sk, node.name or "", content), *found)
            if self._batch.changes is not changes:
                changes, item["updated_at"] = self._batch.changes, self._batch.at
            self._include_ancestors()
            self._uncounted += 1
            self._batch.entries.append(LogEntry(Event.CREATED, node.sk, creation.id, node.level, creation.revision))
            if following and following.node.sk.startswith(node.sk):  # whose creation changes the counts of this one
                self._records[node.sk] = self._unwritten[node.sk] = _CountedRecord(Record.of(item), is_new=True)
            else:
                changes.append(Put(item, ABSENT))
            changes.append(Put(id_item_at(creation.id, self._pk, node.sk), creation.when))
        self._count_new()

    def _update(self, old: Record, new: Record) -> Iterator[Batch]:
        """Update a node."""
        self._ancestors = self._ancestors_of(new.sk)
        found = self._item_changes(old, new)
        yield from self._make_room(new.sk, 2, _size_of(old) + _size_of(new), *found)
        new = replace(new, updated_at=self._batch.at)
        counted = self._records.get(new.sk) or _CountedRecord(new)
        counted.record = replace(new, kids=counted.record.kids, below=counted.record.below)
        self._unwritten[new.sk] = counted
        self._batch.entries.append(LogEntry(Event.UPDATED, new.sk, new.id, new.level, new.revision))
        self._batch.changes.append(Put(revision_item(old)))
        if old.rank != new.rank:
            self._batch.ranks[new.sk] = new.rank

    def _remove(self, record: Record) -> Iterator[Batch]:
        """Remove a node without children."""
        self._ancestors = self._ancestors_of(record.sk)
        found = self._item_changes(record, None)
        yield from self._make_room(record.sk, 4, 2 * _size_of(record), *found)
        self._records.pop(record.sk, None)
        self._unwritten.pop(record.sk, None)
        self._include_ancestors()
        self._count(record.level, record.depth, -1)
        self._batch.entries.append(LogEntry(Event.DELETED, record.sk, record.id, record.level, record.revision))
        line = [self._ancestors[0].record.id, record.id]
        gone = Removal(self._pruned.deletion, line, *self._pruned.remove(record.sk))
        self._batch.changes += node_removed(record, self._batch.at, None, gone, has_redirects=self._has_redirects)

    def _finish(self) -> Iterator[Batch]:
        """Yield the batch so far, and begin the next."""
        self._count_new()
        if self._batch.entries:
            for counted in self._unwritten.values():
                item = counted.record.item()
                self._batch.changes.append(Put(item, ABSENT) if counted.is_new else Put(item))
                counted.is_new = False
            yield self._batch
        self._open()

    def _open(self) -> None:
        now = self._now()
        self._batch = Batch(now, rfc3339(now))
        self._unwritten: dict[str, _CountedRecord] = {}  # that the batch will contain, with their new counts
        self._last_counted: list[_CountedRecord] | None = None  # ancestors that are all among them
        self._bytes = self._log_bytes = 0

    def _make_room(
        self, sk: str, changes: int, size: int, found: Sequence[Change], waiting: Sequence[Waiting]
    ) -> Iterator[Batch]:
        """Yield the batch so far where so many more changes at a key, with its ancestors and these of items of kinds,
        would not fit; add the latter.
        """
        keys = {*keys_of(waiting)}
        changes += len(found) + len(keys)
        size += KIND_ITEM_BYTES * (len(found) + len(keys))
        if self._ancestors is not self._last_counted:
            above = [counted for counted in self._ancestors if counted.record.sk not in self._unwritten]
            changes += len(above)
            size += sum([_size_of(counted.record) for counted in above])
        logged = BYTES_A_CHARACTER * len(sk) + LOG_ENTRY_BYTES
        changes += len(self._batch.changes) + len(self._batch.waiting_keys) + len(self._unwritten)
        if (
            changes > self._max_changes
            or self._bytes + size > MAX_BATCH_BYTES
            or self._log_bytes + logged > MAX_LOG_BYTES
        ):
            yield from self._finish()
        self._bytes += size
        self._log_bytes += logged
        self._batch.changes += found
        if waiting:
            self._batch.waiting += waiting
            self._batch.waiting_keys |= keys

    def _item_changes(self, old: Record | None, new: Record | None) -> tuple[Sequence[Change], Sequence[Waiting]]:
        """The changes of the items of kinds of a node that changes from one record to another, and those that wait."""
        if not self._recipes:
            return NOTHING
        above = [counted.record for counted in reversed(self._ancestors)]
        if above and not above[0].is_root:  # whose counts only its children change
            above.insert(0, self._records["#"].record)
        if old is not None and new is None:
            root_id = [*above, old][0].id
            return removals(self._recipes, old, root_id), Waiting.of(self._recipes, removed(old, root_id), None)
        before, after = None if old is None else Located.below(above, old), Located.below(above, cast(Record, new))
        return item_changes(self._recipes, before, after), Waiting.of(self._recipes, before, after)

    def _include_ancestors(self) -> None:
        """Let the batch contain the ancestors of the present change, with their new counts."""
        if self._ancestors is not self._last_counted:
            self._unwritten.update({counted.record.sk: counted for counted in self._ancestors})
            self._last_counted = self._ancestors

    def _count_new(self) -> None:
        if self._uncounted:
            self._count(self._level, self._depth, self._uncounted)
            self._uncounted = 0

    def _count(self, level: str, depth: int, change: int) -> None:
        """Add so many nodes to the counts of their ancestors and of the versions, or subtract them."""
        for counted in self._ancestors:
            record = counted.record
            counted.record = replace(record, below=changed_counts(record.below or {}, {level: change}))
        if self._ancestors:
            parent = self._ancestors[0]
            parent.record = replace(parent.record, kids=changed_counts(parent.record.kids, {level: change}))
        else:
            self._batch.roots = changed_counts(self._batch.roots, {level_at_depth(level, 0): change})
        self._batch.shape = changed_counts(self._batch.shape, {level_at_depth(level, depth): change})

    def _ancestors_of(self, sk: str) -> list[_CountedRecord]:
        """The ancestors of a key; siblings follow one another, so those of the change before are used again."""
        parent = parent_sort_key(sk) if sk != "#" else None
        if parent == (self._ancestors[0].record.sk if self._ancestors else None):
            return self._ancestors
        if parent is None:
            return []
        above = [counted for counted in self._ancestors_of(parent) if not counted.record.is_root]
        return [self._records[parent], *above]


def _size_of(record: Record) -> int:
    return _bound(record.sk, record.name, size_of(record.attributes))


def _bound(sk: str, name: str, content: int) -> int:
    """An upper bound of the bytes of a record in a transaction."""
    return ITEM_BYTES + BYTES_A_CHARACTER * (KEY_COPIES * len(sk) + len(name)) + content
