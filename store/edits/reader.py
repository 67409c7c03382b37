"""Strong reads of an edit: the tree versions first, then the items.

Items that are read in one request are not read at one moment. Since the versions are read first, a transaction that
requires them is committed only if nothing that was read after them has changed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from msgspec.structs import replace

from store.edits.overlay import NotCombinable, WriteOverlay
from store.edits.read_set import ReadSet
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.history import current_key, with_revision
from store.metadata.redirects import redirect_item
from store.model.items import MAX_BATCH_BYTES, size_of
from store.model.key_rewrite import SubtreeRewrite
from store.model.keys import Key, depth_of, id_key, revision_key, tree_version_key
from store.model.ranges import KeyRange, below, subtree
from store.model.records import Record
from store.reading.active_moves import ActiveMoves, active_moves
from store.reading.pages import Pages
from store.reading.recent_changes import RecentChange, RecentChanges

CHANGES_A_NODE = 4  # of one that is moved or removed: its old item, its new one or last state, id record, redirect
OTHER_CHANGES = 7  # besides those of ancestors: three tree versions with their log items, an idempotency key

# Limits of a move or deletion in one transaction where the store has none (SQLite): half a second, and its memory.
MAX_NODES = 10_000
MAX_READ_UNITS = 5_000  # of 4 KB each


class Reader:
    """The reads of one edit, in all attempts at its transaction; what the overlay has is not read again."""

    def __init__(
        self, store: Store, reads: ReadUsage, overlay: WriteOverlay | None = None, recent: RecentChanges | None = None
    ) -> None:
        self._store = store
        self._reads = reads
        self._overlay = overlay or WriteOverlay(store)
        self._recent = recent or RecentChanges(store)
        self._checked: list[SubtreeRewrite] = []

    @property
    def is_limited(self) -> bool:
        """Whether a transaction of the store has a limit of changes."""
        return self._store.max_commit_changes is not None

    async def read(self, partitions: Iterable[str], keys: Iterable[Key]) -> ReadSet:
        """The versions of these trees and hierarchies, and then the items at these keys."""
        read_set = ReadSet()
        await self.read_into(read_set, partitions, keys)
        return read_set

    async def read_into(self, read_set: ReadSet, partitions: Iterable[str], keys: Iterable[Key]) -> None:
        """Read what the read set does not have yet."""
        for wanted in (map(tree_version_key, partitions), keys):
            missing = [key for key in wanted if key not in read_set]
            await self._overlay.read(missing, self._reads)
            read_set.add({key: self._overlay.item(key) for key in missing})

    async def subtree(
        self,
        read_set: ReadSet,
        record: Record,
        ancestors: Sequence[Key],
        search_changes: Callable[[Sequence[Record]], int],
    ) -> list[Record] | None:
        """A node and all below it in key order, None where they do not all fit into one transaction, with the
        `ancestors` whose counts change and so many `search_changes`.

        Where the node was moved or removed since it was read, it comes alone, and the commit will fail.
        """
        limit, nodes = self._store.max_commit_changes, record.subtree_size
        changes = CHANGES_A_NODE * nodes + len(ancestors) + OTHER_CHANGES
        if nodes > MAX_NODES or (limit is not None and changes > limit):
            return None
        if nodes == 1:
            return [record] if limit is None or changes + search_changes([record]) <= limit else None
        records, size, units = [record], size_of(record.item()), self._reads.units
        async for page in self._pages(below(record.pk, record.sk)):
            records += map(Record.of, page)
            if self._reads.units - units > MAX_READ_UNITS:
                return None
            if limit is not None:
                self._overlay.add_read(page)
                size += sum(map(size_of, page))
        if limit is None:
            return records
        # DynamoDB counts the bytes of what a transaction removes as well, and each node is removed and written.
        size = 2 * size + sum(size_of(item) for key in ancestors if (item := read_set.item(key)) is not None)
        size += sum(size_of(redirect_item(one)) for one in records)
        return records if size <= MAX_BATCH_BYTES and changes + search_changes(records) <= limit else None

    async def check_fits(self, rewrite: SubtreeRewrite) -> None:
        """Raise BadPath where a key of a large subtree does not fit at the new place; read once in all attempts."""
        if rewrite in self._checked:
            return
        async for page in self._pages(subtree(*rewrite.source)):
            for item in page:
                rewrite.moved(Record.of(item))
        self._checked.append(rewrite)

    def _pages(self, key_range: KeyRange) -> Pages:
        """The items of a range of the table; raises NotCombinable where changes are pending, which no range shows."""
        if self._overlay.is_pending:
            raise NotCombinable
        return Pages(self._store, key_range, self._reads)

    async def active_moves(self, read_set: ReadSet, partition: str) -> ActiveMoves:
        """The running moves of a tree, or of the roots of a hierarchy, whose version was read."""
        return await active_moves(self._store, read_set.version(partition).moves, self._reads)

    async def index(self, key_range: KeyRange, *, limit: int | None = None, reverse: bool = False) -> list[Record]:
        """The nodes in a range of an index, which may be behind the table and has no pending changes."""
        return await self._store.nodes(key_range, self._reads, limit=limit, reverse=reverse)

    def pending_ranks(self, parent: str) -> dict[Key, str | None]:
        """The pending ranks of siblings, None for a sibling that is removed."""
        return self._overlay.pending_ranks(parent)

    async def children(self, parent: Key) -> list[Record]:
        """The children of a node, read strongly from the table, which reads all below it."""
        depth = depth_of(parent.sk) + 1
        return [
            Record.of(item)
            async for page in self._pages(below(*parent))
            for item in page
            if depth_of(cast(str, item["sk"])) == depth
        ]

    async def content_of(self, record: Record) -> Record:
        """A node with the name and attributes of its revision, from its history or from the table."""
        keys = [revision_key(record.id, record.revision), id_key(record.id)]
        read_set = await self.read([], keys)
        if (version := read_set.item(keys[0])) is not None:
            return with_revision(record, version)
        place = current_key(read_set.item(keys[1]))
        await self.read_into(read_set, [], [] if place is None else [place])
        found = None if place is None else read_set.record(place)
        if found is None or found.revision != record.revision:
            raise Conflict("The change was made, but its node is being changed again; read the node, or retry.")
        return replace(record, name=found.name, attributes=found.attributes)

    async def recent(self, partition: str, since: float) -> list[RecentChange]:
        """The changes in a log from a time on, in seconds since 1970."""
        return await self._recent.since(partition, since, self._reads)
