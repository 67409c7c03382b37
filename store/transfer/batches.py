"""Batches of an import: the changes to one tree cut into transactions, each of which leaves the table consistent.

An import that stops between two of them leaves fewer nodes than the file has, but no wrong count, id or parent. So a
batch has, besides the nodes it is about, all their ancestors with their new counts, each once."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from msgspec.structs import replace

from store.metadata.change_log import Event, LogEntry
from store.metadata.history import id_item, revision_item, tombstone_item
from store.metadata.tree_version import level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.items import ABSENT, MAX_BATCH_BYTES, UNCONDITIONAL, Change, Condition, Delete, Put, size_of
from store.model.keys import decode_segment, first_rank, last_segment, parent_sort_key
from store.model.records import Counts, Record
from store.search.node_items import Located, is_indexed, removals, search_changes
from store.text import rfc3339
from store.transfer.diff import TreeDiff
from store.transfer.rows import Node

MAX_LOG_BYTES = 300_000  # the log entries of a batch are one item, and items end at 400 KB
LOG_ENTRY_BYTES = 250  # of an entry without its sort key
ITEM_BYTES = 800  # of a record without its sort key, name and attributes: ids, counts, times, names of attributes
BYTES_A_CHARACTER = 4  # at most, in UTF-8
EXACT_BYTES = 4_000  # of encoded values, whose size in the table may be four times as much
SEARCH_ITEM_BYTES = 400  # of most of them
KEY_COPIES = 6  # a sort key is in about so many attributes of a record and its id record
VERSION_CHANGES = 5  # added to a batch when it is committed: two versions, their logs, the marker of search items


class Creation(NamedTuple):
    """A node to be created: its full id, its first revision, and the condition for its id record."""

    node: Node
    id: str
    revision: int = 1
    when: Condition = ABSENT


@dataclass
class Batch:
    """`changes` without versions and logs; `shape` and `roots` are the changes of the counts of the two versions.

    `now` is its time in seconds since 1970, `at` the same in UTC (RFC 3339).
    """

    now: float
    at: str
    changes: list[Change] = field(default_factory=list)
    entries: list[LogEntry] = field(default_factory=list)
    shape: Counts = field(default_factory=dict)
    roots: Counts = field(default_factory=dict)


class _CountedRecord:
    """A record with its counts after the last batch; of a root those of its children alone."""

    __slots__ = ("below", "kids", "record", "when")

    def __init__(self, record: Record, when: Condition) -> None:
        self.record = record
        self.when = when
        self.kids = dict(record.kids)
        self.below = dict(record.below or {})

    def put(self) -> Put:
        put = Put(replace(self.record, kids=dict(self.kids), below=dict(self.below)).item(), self.when)
        self.when = UNCONDITIONAL
        return put


def batches(
    hierarchy: Hierarchy, diff: TreeDiff, creations: Sequence[Creation], pk: str, max_changes: int
) -> Iterator[Batch]:
    """Transactions of at most `max_changes` changes for `creations` (parents first), updates and removals.

    They build on one another, so each must be committed before the next is requested. Each has the time at which it was
    begun.
    """
    builder = _BatchBuilder(hierarchy, diff, pk, max_changes)
    for creation, following in zip(creations, [*creations[1:], None], strict=False):
        node = creation.node
        record = builder.new_record(creation)
        found = builder.search_changes(None, record)
        yield from builder.make_room(node.sk, 2, _size_of(record, len(node.encoded)), found)
        builder.create(creation, record, inner=following is not None and following.node.sk.startswith(node.sk))
    for old, new in diff.updated:
        found = builder.search_changes(old, new)
        yield from builder.make_room(new.sk, 2, _size_of(old) + _size_of(new), found)
        builder.update(old, new)
    for record in diff.removed:
        found = builder.search_changes(record, None)
        yield from builder.make_room(record.sk, 3, 2 * _size_of(record), found)
        builder.remove(record)
    yield from builder.finish()


class _BatchBuilder:
    """The batch that is being filled, and the present state of all ancestors of changes.

    `make_room` is called before each change, and finds the ancestors that the change then uses.
    """

    def __init__(self, hierarchy: Hierarchy, diff: TreeDiff, pk: str, max_changes: int) -> None:
        self._indexed = hierarchy if is_indexed(hierarchy) else None
        self._records = {sk: _CountedRecord(record, UNCONDITIONAL) for sk, record in diff.above.items()}
        self._pk = pk
        self._max_changes = max_changes - VERSION_CHANGES
        self._ancestors: list[_CountedRecord] = []  # of the present change, the parent first
        self._open()

    def _open(self) -> None:
        now = time.time()
        self._batch = Batch(now, rfc3339(now))
        self._unwritten: dict[str, _CountedRecord] = {}  # that the batch will contain, with their new counts
        self._last_counted: list[_CountedRecord] | None = None  # ancestors that are all among them
        self._bytes = self._log_bytes = 0

    def make_room(self, sk: str, changes: int, size: int, found: Sequence[Change]) -> Iterator[Batch]:
        """Yield the batch so far where so many more changes at a key, with its ancestors and these of search items,
        would not fit; add the latter.
        """
        changes += len(found)
        size += SEARCH_ITEM_BYTES * len(found)
        self._ancestors = ancestors = self._ancestors_of(sk)
        if ancestors is not self._last_counted:
            above = [counted for counted in ancestors if counted.record.sk not in self._unwritten]
            changes += len(above)
            size += sum([_size_of(counted.record) for counted in above])
        logged = BYTES_A_CHARACTER * len(sk) + LOG_ENTRY_BYTES
        if (
            len(self._batch.changes) + len(self._unwritten) + changes > self._max_changes
            or self._bytes + size > MAX_BATCH_BYTES
            or self._log_bytes + logged > MAX_LOG_BYTES
        ):
            yield from self.finish()
        self._bytes += size
        self._log_bytes += logged
        self._batch.changes += found

    def finish(self) -> Iterator[Batch]:
        """Yield the batch so far, and begin the next."""
        if self._batch.entries:
            self._batch.changes += [counted.put() for counted in self._unwritten.values()]
            yield self._batch
        self._open()

    def new_record(self, creation: Creation) -> Record:
        """The record of a node to be created."""
        node = creation.node
        sk = node.sk
        own = last_segment(self._pk, sk)
        self._ancestors = self._ancestors_of(sk)
        parent = self._ancestors[0].record if self._ancestors else None
        return Record(
            pk=self._pk, sk=sk, rank=node.rank or first_rank(node.level, own), id=creation.id, level=node.level,
            name=decode_segment(own) if node.name is None else node.name,
            above=[*parent.above, parent.level] if parent else [], kids={}, below={},
            revision=creation.revision, updated_at=self._batch.at,
            attributes=node.values,
        )  # fmt: skip

    def search_changes(self, old: Record | None, new: Record | None) -> list[Change]:
        """The changes of the search items of a node that changes from one record to another."""
        if self._indexed is None:
            return []
        sk = cast(Record, new or old).sk
        self._ancestors = self._ancestors_of(sk)
        above = [counted.record for counted in reversed(self._ancestors)]
        if sk != "#" and not above[0].is_root:  # whose counts only its children change
            above.insert(0, self._records["#"].record)
        if new is None:
            removed = cast(Record, old)
            return removals(self._indexed, removed, [*above, removed][0].id)
        before = None if old is None else Located.below(above, old)
        return search_changes(self._indexed, before, Located.below(above, new))

    def create(self, creation: Creation, record: Record, *, inner: bool) -> None:
        """`inner` where nodes will be created below it, so that its counts change again."""
        sk = record.sk
        if record.updated_at != self._batch.at:
            record = replace(record, updated_at=self._batch.at)
        self._count(record, 1)
        self._log(Event.CREATED, record)
        if inner:
            self._records[sk] = self._unwritten[sk] = _CountedRecord(record, ABSENT)
        else:
            self._batch.changes.append(Put(record.item(), ABSENT))
        self._batch.changes.append(Put(id_item(record), creation.when))

    def update(self, old: Record, new: Record) -> None:
        new = replace(new, updated_at=self._batch.at)
        counted = self._records.get(new.sk) or _CountedRecord(new, UNCONDITIONAL)
        counted.record = new
        self._unwritten[new.sk] = counted
        self._log(Event.UPDATED, new)
        self._batch.changes.append(Put(revision_item(old)))

    def remove(self, record: Record) -> None:
        self._records.pop(record.sk, None)
        self._unwritten.pop(record.sk, None)
        self._count(record, -1)
        self._log(Event.DELETED, record)
        self._batch.changes += [
            Delete(record.key),
            Put(revision_item(record)),
            Put(tombstone_item(record, self._batch.at)),
        ]

    def _count(self, record: Record, change: int) -> None:
        """Add a node to the counts of its ancestors and of the versions, or subtract it."""
        records = self._ancestors
        if records is not self._last_counted:
            self._unwritten.update({counted.record.sk: counted for counted in records})
            self._last_counted = records
        for counted in records:
            _count(counted.below, record.level, change)
        if records:
            _count(records[0].kids, record.level, change)
        else:
            _count(self._batch.roots, level_at_depth(record.level, 0), change)
        _count(self._batch.shape, level_at_depth(record.level, record.depth), change)

    def _log(self, event: Event, record: Record) -> None:
        self._batch.entries.append(LogEntry(event, record.sk, record.id, record.level, record.revision))

    def _ancestors_of(self, sk: str) -> list[_CountedRecord]:
        """The ancestors of a key; siblings follow one another, so those of the change before are used again."""
        parent = parent_sort_key(sk) if sk != "#" else None
        if parent == (self._ancestors[0].record.sk if self._ancestors else None):
            return self._ancestors
        if parent is None:
            return []
        above = [counted for counted in self._ancestors_of(parent) if not counted.record.is_root]
        return [self._records[parent], *above]


def _count(counts: Counts, name: str, change: int) -> None:
    """Change a count; zero is removed."""
    counts[name] = counts.get(name, 0) + change
    if not counts[name]:
        del counts[name]


def _size_of(record: Record, encoded: int = EXACT_BYTES) -> int:
    """An upper bound of the bytes of a record in a transaction; values are measured unless few bytes encode them."""
    own = encoded if encoded < EXACT_BYTES else size_of(record.attributes)
    return ITEM_BYTES + BYTES_A_CHARACTER * (KEY_COPIES * len(record.sk) + len(record.name)) + own
