"""Reads of an edit: tree versions first, then items, all strongly consistent, with the pending changes over them.

Items that are read in one request are not read at one moment. Since the versions are read first, a transaction that
requires them is committed only if nothing that was read after them has changed.

Edits that are committed together are built over one overlay of uncommitted changes one after another, so each reads
what those before it leave.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.errors import Conflict
from store.metadata.history import current_key, gone_of, redirect_item, with_revision
from store.metadata.tree_version import TreeVersion
from store.model.keys import (
    Key,
    KeyRange,
    Path,
    below,
    id_key,
    parent_partition,
    revision_key,
    subtree,
    tree_version_key,
)
from store.model.records import (
    MAX_BATCH_BYTES,
    Change,
    Check,
    Delete,
    Item,
    Put,
    Record,
    SubtreeRewrite,
    canonical_item,
    condition_holds,
    key_of,
    size_of,
)
from store.reading import Pages, RecentChanges

CHANGES_A_NODE = 4  # of one that is moved or removed: its old item, its new one or last state, id record, redirect
OTHER_CHANGES = 8  # besides those of ancestors: three tree versions with their log items, an idempotency key, marker

# Limits of a move or deletion in one transaction where the store has none (SQLite): half a second, and its memory.
MAX_NODES = 10_000
MAX_READ_UNITS = 5_000  # of 4 KB each


class Rights:
    """What may be done: everything. Those of a caller are asked by paths alone, so no error discloses hidden nodes."""

    def check_visible(self, hierarchy: str, path: Path) -> None:
        """Raise NotFound for a hidden path."""

    def check_change(self, hierarchy: str, path: Path) -> None:
        """Raise NotFound or Forbidden unless the node at a path may be changed."""

    def check(self, edit: Any) -> None:
        """Raise Forbidden for what an `Edit`, whose nodes are visible, may not do."""

    def check_unique(self, hierarchy: str, label: str) -> None:
        """Raise Forbidden where nodes may not be restored with unique values of an attribute with this label."""


ALL_RIGHTS = Rights()


@dataclass(frozen=True)
class WriteContext:
    """The time of a write, in UTC (RFC 3339) and in seconds since 1970, and its author, None where unknown.

    Of a dry run no changes of the items of kinds of removed nodes are built, only their number is estimated.
    `is_stored`: the result is kept for a repetition. Indexes may be `settle_seconds` behind the table.
    """

    at: str
    now: float
    by: str | None = None
    is_dry_run: bool = False
    is_stored: bool = False
    rights: Rights = ALL_RIGHTS
    settle_seconds: float = 0.0


class ReadSet(dict[Key, Item | None]):
    """Items by key, None where there is none. Asking for a key that was not read raises KeyError.

    Records of roots have counts of descendants only where the version of their tree was read.
    """

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[Key, Record] = {}  # each is asked for several times, as are the versions
        self._versions: dict[str, TreeVersion] = {}

    def record(self, key: Key) -> Record | None:
        item = self[key]
        if item is None:
            return None
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = Record.of(item)
        is_counted = not record.is_root or tree_version_key(key.pk) not in self
        return record if is_counted else self.version(key.pk).with_counts(record)

    def version(self, partition: str) -> TreeVersion:
        found = self._versions.get(partition)
        if found is None:
            found = self._versions[partition] = TreeVersion.of(partition, self[tree_version_key(partition)])
        return found

    def check_not_moving(self, *keys: Key, with_subtrees: bool = False) -> None:
        """Raise Conflict where a running move holds one of these keys, or `with_subtrees` one below them."""
        for key in keys:
            for running in self.version(key.pk).moves:
                if running.meets(key) if with_subtrees else running.holds(key):
                    raise Conflict(running.refusal(key))


class Reader:
    """The reads of one edit, in all attempts at its transaction; what the overlay has is not read again."""

    def __init__(
        self, store: Store, reads: ReadUsage, overlay: "WriteOverlay | None" = None, recent: RecentChanges | None = None
    ) -> None:
        self.store = store
        self.reads = reads
        self.overlay = overlay or WriteOverlay(store)
        self.recent = recent or RecentChanges(store)
        self._checked: list[SubtreeRewrite] = []

    def revision(self, record: Record) -> int:
        """The revision of a node that an expected one is compared with."""
        return record.revision

    async def read(self, partitions: Iterable[str], keys: Iterable[Key]) -> ReadSet:
        """The versions of these trees and hierarchies, and then the items at these keys."""
        read_set = ReadSet()
        await self.read_into(read_set, partitions, keys)
        return read_set

    async def read_into(self, read_set: ReadSet, partitions: Iterable[str], keys: Iterable[Key]) -> None:
        """Read what the read set does not have yet."""
        for wanted in (map(tree_version_key, partitions), keys):
            missing = [key for key in wanted if key not in read_set]
            await self.overlay.read(missing, self.reads)
            read_set.update({key: self.overlay.item(key) for key in missing})

    async def subtree(
        self,
        read_set: ReadSet,
        record: Record,
        ancestors: Sequence[Key],
        item_changes: Callable[[Sequence[Record]], int],
    ) -> list[Record] | None:
        """A node and all below it in key order, None where they do not all fit into one transaction, with the
        `ancestors` whose counts change and so many `item_changes`.

        Where the node was moved or removed since it was read, it comes alone, and the commit will fail.
        """
        limit, nodes = self.store.max_commit_changes, record.subtree_size
        changes = CHANGES_A_NODE * nodes + len(ancestors) + OTHER_CHANGES
        if nodes > MAX_NODES or (limit is not None and changes > limit):
            return None
        if nodes == 1:
            return [record] if limit is None or changes + item_changes([record]) <= limit else None
        records, size, units = [record], size_of(record.item()), self.reads.units
        async for page in self.pages(below(record.pk, record.sk)):
            records += map(Record.of, page)
            if self.reads.units - units > MAX_READ_UNITS:
                return None
            if limit is not None:
                self.overlay.add_read({key_of(item): item for item in page})
                size += sum(map(size_of, page))
        if limit is None:
            return records
        # DynamoDB counts the bytes of what a transaction removes as well, and each node is removed and written.
        size = 2 * size + sum(size_of(item) for key in ancestors if (item := read_set[key]) is not None)
        size += sum(size_of(redirect_item(one)) for one in records)
        return records if size <= MAX_BATCH_BYTES and changes + item_changes(records) <= limit else None

    async def check_fits(self, rewrite: SubtreeRewrite) -> None:
        """Raise BadPath where a key of a large subtree does not fit at the new place; read once in all attempts."""
        if rewrite in self._checked:
            return
        async for page in self.pages(subtree(*rewrite.source)):
            for item in page:
                rewrite.moved(Record.of(item))
        self._checked.append(rewrite)

    async def pages(self, key_range: KeyRange) -> AsyncIterator[list[Item]]:
        """The items of a range of the table, page by page; raises NotCombinable where changes are pending, which no
        range shows.
        """
        if self.overlay.is_pending:
            raise NotCombinable
        async for page in Pages(self.store, key_range, self.reads):
            yield page

    async def contents_of(self, records: Sequence[Record]) -> list[Record]:
        """Nodes with the names and attributes of their revisions, from their histories or from the table."""
        keys = [(revision_key(one.id, one.revision), id_key(one.id)) for one in records]
        read_set = await self.read([], [key for pair in keys for key in pair])
        own = [_content_key(read_set, *one) for one in zip(records, keys, strict=True)]
        await self.read_into(read_set, [], own)
        versions = [version for version, _ in keys]
        return [_with_content(read_set, *one) for one in zip(records, versions, own, strict=True)]


def _content_key(read_set: ReadSet, record: Record, keys: tuple[Key, Key]) -> Key:
    """Where the content of a node's revision is, which has the key of a revision and of the id record.

    Where the revision has it, there is a read of none: so none tells whether the node is hidden or gone.
    """
    version, own = keys
    if read_set[version] is not None:
        return revision_key(record.id, 0)
    gone = gone_of(read_set[own])
    is_waiting = gone is not None and gone.revision == record.revision - 1  # for a large restore, which repeats that
    return _revision_before(record) if is_waiting else current_key(read_set[own]) or revision_key(record.id, 0)


def _revision_before(record: Record) -> Key:
    return revision_key(record.id, record.revision - 1)


def _with_content(read_set: ReadSet, record: Record, version: Key, place: Key) -> Record:
    """A node with the content of its revision, which is at `version`, or at its `place`, or still that before it."""
    item, found = read_set[version], None
    if item is not None:
        return with_revision(record, item)
    if place == _revision_before(record):
        found = with_revision(record, before) if (before := read_set[place]) else None
    elif (found := read_set.record(place)) is not None and found.revision != record.revision:
        found = None
    if found is None:
        raise Conflict("The change was made, but its node is being changed again; read the node, or retry.")
    return replace(record, name=found.name, attributes=found.attributes)


class NotCombinable(Exception):
    """An edit cannot be part of the pending transaction; it can be built after that was committed."""


class WriteOverlay:
    """Items read, changes committed since, and pending changes, each by key."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[Key, Item | None] = {}
        self._committed: dict[Key, Change] = {}
        self._pending: dict[Key, Change] = {}
        self._bytes = 0  # of the pending changes, an upper bound; counted only for a store with a limit

    def __contains__(self, key: Key) -> bool:
        return key in self._pending or key in self._committed or key in self._read

    def item(self, key: Key) -> Item | None:
        """The item that will be at a key, which has to be read or changed before."""
        change = self._pending.get(key) or self._committed.get(key)
        if change is None:
            return self._read[key]
        return canonical_item(change.item) if isinstance(change, Put) else None

    async def read(self, keys: Iterable[Key], reads: ReadUsage) -> None:
        """Read the keys that were not read yet, strongly and in one request."""
        missing = [key for key in dict.fromkeys(keys) if key not in self]
        if missing:
            items = await self._store.get(missing, reads, strong=True)
            self._read.update(zip(missing, items, strict=True))

    def add_read(self, items: Mapping[Key, Item | None]) -> None:
        """Add items that were read elsewhere, strongly and after the tree versions, or of which that is no matter."""
        self._read.update(items)

    def forget(self, keys: Iterable[Key]) -> None:
        """Have keys read again."""
        for key in keys:
            self._read.pop(key, None)

    # -- changes -------------------------------------------------------------------------------------------------------

    @property
    def is_pending(self) -> bool:
        return bool(self._pending)

    @property
    def changes(self) -> Sequence[Change]:
        """All pending changes, for one commit."""
        return list(self._pending.values())

    def pending_ranks(self, parent: str) -> dict[Key, str | None]:
        """The pending ranks of siblings, by a partition of `by_parent`; None for a sibling that is removed."""
        ranks: dict[Key, str | None] = {}
        for key, change in self._pending.items():
            if isinstance(change, Put) and change.item.get("parent") == parent:
                ranks[key] = cast(str, change.item["rank"])
            elif isinstance(change, Delete) and key.sk.startswith("#") and parent_partition(*key) == parent:
                ranks[key] = None
        return ranks

    async def add(self, changes: Sequence[Change]) -> None:
        """Add the changes of an edit; raises NotCombinable where one transaction cannot hold them all."""
        limit = self._store.max_commit_changes
        size = 0 if limit is None else sum(map(self.size, changes))
        added = await self._merged(changes)
        if (self._pending and limit is not None) and (
            len(self._pending.keys() | added.keys()) > limit or self._bytes + size > MAX_BATCH_BYTES
        ):
            raise NotCombinable
        self._pending |= added
        self._bytes += size

    def mark_committed(self) -> None:
        """Take all pending changes for committed."""
        self._committed |= self._pending
        self.discard()

    def discard(self) -> None:
        """Drop all pending changes."""
        self._pending = {}
        self._bytes = 0

    def reset(self) -> None:
        """Drop everything, since another writer has changed the table."""
        self._read, self._committed = {}, {}
        self.discard()

    async def _merged(self, changes: Sequence[Change]) -> dict[Key, Change]:
        """Changes by key, over the pending ones."""
        added: dict[Key, Change] = {}
        async for some in in_chunks(changes):
            added |= {change.key: self._over(change) for change in some}
        return added

    def _over(self, change: Change) -> Change:
        """A change over the pending one at its key, with the condition of that, which is about the table."""
        pending = self._pending.get(change.key)
        if pending is None:
            return change
        if not condition_holds(change.when, self.item(change.key)):
            raise Conflict.over()
        return pending if isinstance(change, Check) else replace(change, when=pending.when)

    def size(self, change: Change) -> int:
        """The bytes of the item that a change writes, or of the one that it removes if that was read."""
        if isinstance(change, Put):
            return size_of(canonical_item(change.item))
        item = self.item(change.key) if isinstance(change, Delete) and change.key in self else None
        return 0 if item is None else size_of(item)
