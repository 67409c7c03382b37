"""Write overlay: uncommitted changes over the items that were read.

Edits that are committed together are built over it one after another, so each reads what those before it leave.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.model.items import (
    MAX_BATCH_BYTES,
    Change,
    Check,
    Delete,
    Item,
    Put,
    canonical_item,
    condition_holds,
    key_of,
    size_of,
)
from store.model.keys import Key, parent_partition


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

    def add_read(self, items: Iterable[Item]) -> None:
        """Add items that were read elsewhere, strongly and after the tree versions."""
        self._read.update({key_of(item): item for item in items})

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
        size = 0 if self._store.max_commit_changes is None else sum(map(self._size, changes))
        added: dict[Key, Change] = {}
        async for some in in_chunks(changes):
            added |= {change.key: self._over(change) for change in some}
        if self._pending and not self._fits(added, size):
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

    def _over(self, change: Change) -> Change:
        """A change over the pending one at its key, with the condition of that, which is about the table."""
        pending = self._pending.get(change.key)
        if pending is None:
            return change
        if not condition_holds(change.when, self.item(change.key)):
            raise Conflict.over()
        return pending if isinstance(change, Check) else replace(change, when=pending.when)

    def _size(self, change: Change) -> int:
        """The bytes of the item that a change writes, or of the one that it removes if that was read."""
        if isinstance(change, Put):
            return size_of(canonical_item(change.item))
        item = self.item(change.key) if isinstance(change, Delete) and change.key in self else None
        return 0 if item is None else size_of(item)

    def _fits(self, added: dict[Key, Change], size: int) -> bool:
        limit = self._store.max_commit_changes
        if limit is None:
            return True
        return len(self._pending.keys() | added.keys()) <= limit and self._bytes + size <= MAX_BATCH_BYTES
