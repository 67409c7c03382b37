"""The changes to one tree cut into transactions, each of which leaves the table consistent.

Whoever stops between two of them leaves fewer nodes than were wanted, but no count, id or parent that is wrong. So a
batch holds, beside the nodes it is about, all records above them with their new counts, each once."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson
from msgspec.structs import replace

from store.metadata.change_log import Event, LogEntry
from store.metadata.history import id_item, revision_item, tombstone_item
from store.metadata.tree_version import level_at_depth
from store.model.attributes import Value
from store.model.items import (
    ABSENT,
    MAX_BATCH_BYTES,
    UNCONDITIONAL,
    Change,
    Condition,
    Delete,
    Put,
)
from store.model.keys import (
    decode_segment,
    first_rank,
    last_segment,
    parent_sort_key,
)
from store.model.records import Counts, Record
from store.text import rfc3339
from store.transfer.diff import TreeDiff
from store.transfer.rows import Node

MAX_LOG_BYTES = 300_000  # and its items, of which the log entry of a batch is one, at 400 KB
LOG_ENTRY_BYTES = 250  # of an entry but for its sort key: the longest id, and the rest
ITEM_BYTES = 800  # of a record but for its sort key, name and own attributes: ids, counts, times, names of attributes
BYTES_A_CHARACTER = 4  # at most
KEY_COPIES = 6  # a sort key stands in about so many attributes of a record and its id record
SEALS = 4  # the changes that are added to a batch when it is committed: two stamps and their logs


class Creation(NamedTuple):
    """A node to be created: its full id, its first revision, and what is required of its id record."""

    node: Node
    id: str
    revision: int = 1
    when: Condition = ABSENT


@dataclass
class Batch:
    """`changes` but for the stamps and the log; `shape` and `roots` are what the two stamps count more or less.

    `now` is its time in seconds since 1970, `at` the same as it is stored.
    """

    now: float
    at: str
    changes: list[Change] = field(default_factory=list)
    entries: list[LogEntry] = field(default_factory=list)
    shape: Counts = field(default_factory=dict)
    roots: Counts = field(default_factory=dict)


class _Place:
    """A record whose counts move from batch to batch."""

    __slots__ = ("below", "kids", "record", "when")

    def __init__(self, record: Record, when: Condition) -> None:
        self.record = record
        self.when = when
        self.kids = dict(record.kids)
        self.below = dict(record.below)

    def put(self) -> Put:
        put = Put(replace(self.record, kids=dict(self.kids), below=dict(self.below)).item(), self.when)
        self.when = UNCONDITIONAL
        return put


class _Line(NamedTuple):
    """What stands above a key, the parent first, and its levels, the root's first."""

    parent: str
    places: list[_Place]
    levels: list[str]


_ROOTS = _Line("", [], [])


def batches(found: TreeDiff, creations: Iterable[Creation], pk: str, most: int) -> Iterator[Batch]:
    """Transactions of at most `most` changes that make `creations` (parents first) and the rest of a difference.

    They build on one another, so they are made one by one, and each must be committed before the next is asked for.
    Each has the time at which it was begun.
    """
    cutter = _Cutter(found, pk, most)
    coming = iter(creations)
    creation = next(coming, None)
    while creation is not None:
        following = next(coming, None)
        node = creation.node
        yield from cutter.room(node.sk, 2, _weight(node.sk, node.name, node.values))
        cutter.create(creation, inner=following is not None and following.node.sk.startswith(node.sk))
        creation = following
    for old, new in found.updated:
        yield from cutter.room(new.sk, 2, _weight_of(old) + _weight_of(new))
        cutter.update(old, new)
    for record in found.removed:
        yield from cutter.room(record.sk, 3, 2 * _weight_of(record))
        cutter.remove(record)
    yield from cutter.rest()


class _Cutter:
    """The batch that is being filled, and the present state of all records above changes.

    `room` is asked for in front of each change, and finds the line above it that the change then uses.
    """

    def __init__(self, found: TreeDiff, pk: str, most: int) -> None:
        self._places = {sk: _Place(record, UNCONDITIONAL) for sk, record in found.above.items()}
        self._pk = pk
        self._most = most - SEALS
        self._line = _ROOTS
        self._open()

    def _open(self) -> None:
        now = time.time()
        self._batch = Batch(now, rfc3339(now))
        self._touched: dict[str, _Place] = {}  # the records above changes, and changed ones, that the batch will hold
        self._counted: _Line | None = None  # a line that is wholly among them
        self._bytes = self._log_bytes = 0

    def room(self, sk: str, changes: int, weight: int) -> Iterator[Batch]:
        """Hand out the batch so far where so many more changes at a key, and the records above it, would not fit."""
        self._line = line = self._above(sk)
        if line is not self._counted:
            above = [place for place in line.places if place.record.sk not in self._touched]
            changes += len(above)
            weight += sum([_weight_of(place.record) for place in above])
        logged = BYTES_A_CHARACTER * len(sk) + LOG_ENTRY_BYTES
        if (
            len(self._batch.changes) + len(self._touched) + changes > self._most
            or self._bytes + weight > MAX_BATCH_BYTES
            or self._log_bytes + logged > MAX_LOG_BYTES
        ):
            yield from self.rest()
        self._bytes += weight
        self._log_bytes += logged

    def rest(self) -> Iterator[Batch]:
        """Hand out the batch so far, and open the next."""
        if self._batch.entries:
            self._batch.changes += [place.put() for place in self._touched.values()]
            yield self._batch
        self._open()

    def create(self, creation: Creation, *, inner: bool) -> None:
        """`inner` where more will be created below it, so that its counts go on changing."""
        node = creation.node
        sk = node.sk
        own = last_segment(self._pk, sk)
        record = Record(
            pk=self._pk, sk=sk, rank=node.rank or first_rank(node.level, own), id=creation.id, level=node.level,
            name=decode_segment(own) if node.name is None else node.name, above=self._line.levels, kids={}, below={},
            revision=creation.revision, updated_at=self._batch.at,
            attributes={name: value for name, value in node.values.items() if value is not None},
        )  # fmt: skip
        self._count(record, 1)
        self._log(Event.CREATED, record)
        if inner:
            self._places[sk] = self._touched[sk] = _Place(record, ABSENT)
        else:
            self._batch.changes.append(Put(record.item(), ABSENT))
        self._batch.changes.append(Put(id_item(record), creation.when))

    def update(self, old: Record, new: Record) -> None:
        new = replace(new, updated_at=self._batch.at)
        place = self._places.get(new.sk) or _Place(new, UNCONDITIONAL)
        place.record = new
        self._touched[new.sk] = place
        self._log(Event.UPDATED, new)
        self._batch.changes.append(Put(revision_item(old)))

    def remove(self, record: Record) -> None:
        self._places.pop(record.sk, None)
        self._touched.pop(record.sk, None)
        self._count(record, -1)
        self._log(Event.DELETED, record)
        self._batch.changes += [
            Delete(record.key),
            Put(revision_item(record)),
            Put(tombstone_item(record, self._batch.at)),
        ]

    def _count(self, record: Record, change: int) -> None:
        """Count a node more or less in everything above it and in the stamps."""
        places = self._line.places
        if self._line is not self._counted:
            self._touched.update({place.record.sk: place for place in places})
            self._counted = self._line
        for place in places:
            _count(place.below, record.level, change)
        if places:
            _count(places[0].kids, record.level, change)
        else:
            _count(self._batch.roots, level_at_depth(record.level, 0), change)
        _count(self._batch.shape, level_at_depth(record.level, len(places)), change)

    def _log(self, event: Event, record: Record) -> None:
        self._batch.entries.append(LogEntry(event, record.sk, record.id, record.level, record.revision))

    def _above(self, sk: str) -> _Line:
        """The line above a key; siblings follow one another, so that of the change before may serve again."""
        if sk == "#":
            return _ROOTS
        parent = parent_sort_key(sk)
        if parent == self._line.parent:
            return self._line
        place = self._places[parent]
        places = [place, *self._above(parent).places]
        return _Line(parent, places, [*place.record.above, place.record.level])


def _count(counts: Counts, name: str, change: int) -> None:
    """Zero is told by absence."""
    counts[name] = counts.get(name, 0) + change
    if not counts[name]:
        del counts[name]


def _weight(sk: str, name: str | None, values: dict[str, Value]) -> int:
    """Some more than the bytes that a record takes in a transaction."""
    own = len(orjson.dumps(values)) if values else 0
    return ITEM_BYTES + BYTES_A_CHARACTER * (KEY_COPIES * len(sk) + len(name or "")) + own


def _weight_of(record: Record) -> int:
    return _weight(record.sk, record.name, record.attributes)
