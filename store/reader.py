"""What a writer reads before it drafts a transaction: strongly, and the stamps before all else.

Several items that are read in one go are not read at one moment. With its stamps read first, a transaction that
requires them is made only if nothing that was read after them has changed.
"""

from collections.abc import Iterable

from store.draft import Seen
from store.errors import TooLarge
from store.keys import Key, Span, format_path, shorten, stamp_key, subtree
from store.reads import Reads
from store.records import Record
from store.stores import Store

CHANGES_A_NODE = 3  # of one that is moved or removed: its old item, its new one or last state, its id's record
OTHER_CHANGES = 5  # at least: two stamps, a log item, an alias, a parent


class Reader:
    """The reads for one attempt at a transaction."""

    def __init__(self, store: Store, reads: Reads) -> None:
        self._store = store
        self._reads = reads

    async def seen(self, partitions: Iterable[str], keys: Iterable[Key]) -> Seen:
        """The stamps of these trees and hierarchies, and then the items at these keys."""
        seen = Seen({})
        await self.add(seen, partitions, keys)
        return seen

    async def add(self, seen: Seen, partitions: Iterable[str], keys: Iterable[Key]) -> None:
        """Read what is not among the seen yet."""
        for wanted in (map(stamp_key, partitions), keys):
            missing = [key for key in dict.fromkeys(wanted) if key not in seen]
            if missing:
                items = await self._store.get(missing, self._reads, strong=True)
                seen.add(dict(zip(missing, items, strict=True)))

    async def subtree(self, record: Record) -> list[Record]:
        """A node and all below it; raises TooLarge where they cannot all change in one transaction."""
        most, nodes = self._store.most_changes, 1 + sum(record.below.values())
        if most is not None and CHANGES_A_NODE * nodes + OTHER_CHANGES > most:
            raise TooLarge(
                f"{shorten(format_path(record.path))} and all below it are {nodes:,} nodes; one transaction of "
                f"DynamoDB holds some {(most - OTHER_CHANGES) // CHANGES_A_NODE}. Move or delete smaller parts of it."
            )
        items = await self._store.range(subtree(record.pk, record.sk), self._reads, strong=True)
        return [Record.of(item) for item in items]

    async def range(self, span: Span, *, limit: int | None = None, reverse: bool = False) -> list[Record]:
        """The nodes of a span of an index, which may trail behind what is told strongly."""
        items = await self._store.range(span, self._reads, limit=limit, reverse=reverse)
        return [Record.of(item) for item in items]
