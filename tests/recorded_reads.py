"""Recorded reads of another store."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from store.engine import ReadUsage, Store
from store.model.keys import Key, KeyRange
from store.model.records import Item, Record


class ReadRecorder:
    """Store that forwards every read and records its `keys` and `spans` in their order."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.keys: list[Key] = []
        self._gets: list[tuple[Key, bool]] = []
        self.spans: list[tuple[KeyRange, int | None, bool]] = []
        self.counts: list[KeyRange] = []

    @property
    def repeated(self) -> list[Any]:
        """The reads that were repeated; a strong read may follow a weak one that found nothing."""
        several = Counter[Any]([*self._gets, *self.spans, *self.counts])
        return [what for what, times in several.items() if times > 1]

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        self.keys += keys
        self._gets += [(key, strong) for key in keys]
        return await self._store.get(keys, reads, strong=strong)

    async def range(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False, strong: bool = False
    ) -> list[Item]:
        self.spans.append((span, limit, reverse))
        return await self._store.range(span, reads, limit=limit, reverse=reverse, strong=strong)

    async def nodes(
        self, span: KeyRange, reads: ReadUsage, *, limit: int | None = None, reverse: bool = False
    ) -> list[Record]:
        return [Record.of(item) for item in await self.range(span, reads, limit=limit, reverse=reverse)]

    async def count(self, span: KeyRange, reads: ReadUsage) -> int:
        self.counts.append(span)
        return await self._store.count(span, reads)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
