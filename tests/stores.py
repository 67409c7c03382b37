"""Stores that pass their calls on to another: they record, count or delay them, or do something else before them."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from store.engine import ReadUsage, Store
from store.model.keys import Key, KeyRange
from store.model.records import Change, Item, Record

READS = ("get", "range", "nodes", "count")


class StoreProxy:
    """Store that passes on what its subclasses do not define."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Interrupted(StoreProxy):
    """Store that awaits `before` with their number before each of its calls of these methods, and `after` after it."""

    def __init__(
        self,
        store: Store,
        *methods: str,
        before: Callable[[int], Awaitable[object]] | None = None,
        after: Callable[[int], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__(store)
        self._methods, self._before, self._after = methods, before, after
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in self._methods:
            return found

        async def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            number = self.calls
            if self._before is not None:
                await self._before(number)
            result = await found(*arguments, **options)
            if self._after is not None:
                await self._after(number)
            return result

        return call


def once(number: int, do: Callable[[], Awaitable[object]]) -> Callable[[int], Awaitable[object]]:
    """What is done at the call with this number alone."""

    async def at(call: int) -> None:
        if call == number:
            await do()

    return at


class CountingStore(StoreProxy):
    """`commits` has the number of changes of each commit; commits wait for `open`, and the first one sets `begun`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.commits: list[int] = []
        self.begun = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def commit(self, changes: Sequence[Change]) -> None:
        self.begun.set()
        await self.open.wait()
        self.commits.append(len(changes))
        await self._store.commit(changes)


class ReadRecorder(StoreProxy):
    """Store that records its `keys`, `spans` and `counts` in their order."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
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

    async def nodes(self, span: KeyRange, reads: ReadUsage, **how: Any) -> list[Record]:
        return [Record.of(item) for item in await self.range(span, reads, **how)]

    async def count(self, span: KeyRange, reads: ReadUsage) -> int:
        self.counts.append(span)
        return await self._store.count(span, reads)
