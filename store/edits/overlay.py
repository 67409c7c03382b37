"""What lies in the table, and what will lie there when changes that are not committed yet are.

Edits that are committed together are drafted one after another over it, so each finds what those before it leave.
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
    """An edit cannot be part of the transaction that is pending; nothing is wrong with it after that one."""


class WriteOverlay:
    """What was read, what was committed since, and the changes that are pending."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[Key, Item | None] = {}
        self._made: dict[Key, Change] = {}
        self._pending: dict[Key, Change] = {}
        self._bytes = 0  # of the pending changes at most, and of a bounded store alone

    def __contains__(self, key: Key) -> bool:
        return key in self._pending or key in self._made or key in self._read

    def item(self, key: Key) -> Item | None:
        """What will lie at a key, which has to be read or changed before."""
        change = self._pending.get(key) or self._made.get(key)
        if change is None:
            return self._read[key]
        return canonical_item(change.item) if isinstance(change, Put) else None

    async def read(self, keys: Iterable[Key], reads: ReadUsage) -> None:
        """Read what is not known yet, strongly and in one go."""
        missing = [key for key in dict.fromkeys(keys) if key not in self]
        if missing:
            items = await self._store.get(missing, reads, strong=True)
            self._read.update(zip(missing, items, strict=True))

    def learn(self, items: Iterable[Item]) -> None:
        """Take what was read strongly elsewhere, after the stamps."""
        self._read.update({key_of(item): item for item in items})

    # -- changes -------------------------------------------------------------------------------------------------------

    @property
    def is_pending(self) -> bool:
        return bool(self._pending)

    @property
    def changes(self) -> Sequence[Change]:
        """All that is pending, as one commit takes it."""
        return list(self._pending.values())

    def pending_ranks(self, parent: str) -> dict[Key, str | None]:
        """The ranks of the siblings of a partition among what is pending, None of one that is removed."""
        ranks: dict[Key, str | None] = {}
        for key, change in self._pending.items():
            if isinstance(change, Put) and change.item.get("parent") == parent:
                ranks[key] = cast(str, change.item["rank"])
            elif isinstance(change, Delete) and key.sk.startswith("#") and parent_partition(*key) == parent:
                ranks[key] = None
        return ranks

    async def take(self, changes: Sequence[Change]) -> None:
        """Have the changes of an edit pending too; raises Later where one transaction cannot hold them all."""
        size = 0 if self._store.most_changes is None else sum(map(self._size, changes))
        more: dict[Key, Change] = {}
        async for some in in_chunks(changes):
            more |= {change.key: self._over(change) for change in some}
        if self._pending and not self._fits(more, size):
            raise NotCombinable
        self._pending |= more
        self._bytes += size

    def keep(self) -> None:
        """What was pending is committed."""
        self._made |= self._pending
        self.drop()

    def drop(self) -> None:
        """Nothing of what was pending will be committed."""
        self._pending = {}
        self._bytes = 0

    def forget(self) -> None:
        """Somebody else has written, so that nothing is known any more."""
        self._read, self._made = {}, {}
        self.drop()

    def _over(self, change: Change) -> Change:
        """A change on top of what is pending at its key, whose condition stays: that one speaks of the table."""
        below = self._pending.get(change.key)
        if below is None:
            return change
        if not condition_holds(change.when, self.item(change.key)):
            raise Conflict.over()
        return below if isinstance(change, Check) else replace(change, when=below.when)

    def _size(self, change: Change) -> int:
        """The bytes of what a change writes, and of what it removes, as far as that is known."""
        if isinstance(change, Put):
            return size_of(canonical_item(change.item))
        item = self.item(change.key) if isinstance(change, Delete) and change.key in self else None
        return 0 if item is None else size_of(item)

    def _fits(self, more: dict[Key, Change], size: int) -> bool:
        most = self._store.most_changes
        if most is None:
            return True
        return len(self._pending.keys() | more.keys()) <= most and self._bytes + size <= MAX_BATCH_BYTES
