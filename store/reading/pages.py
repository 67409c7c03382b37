"""Pages of a key range: the one way to read more items than fit into memory or into one event-loop turn."""

import asyncio
from typing import Self, cast

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.items import Item
from store.model.ranges import KeyRange

PAGE_ITEMS = 1000
LOG_PAGE_ITEMS = 50  # a log item may have 300 KB


class Pages:
    """Async iterator over the items of a key range, `limit` items at a time (default `PAGE_ITEMS`); each page starts
    after the last key of the page before.

    Yields to the event loop after each page, since SQLite never waits: other requests and Ctrl-C are served there.
    A caller that has to do something before each read uses `has_next` and `next`. `limit` may be changed between pages.
    """

    def __init__(
        self,
        store: Store,
        key_range: KeyRange,
        reads: ReadUsage,
        *,
        limit: int | None = None,
        reverse: bool = False,
        strong: bool = True,
    ) -> None:
        self.limit = limit or PAGE_ITEMS
        self.has_next = True
        self._store = store
        self._rest = key_range
        self._reads = reads
        self._reverse = reverse
        self._strong = strong

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Item]:
        if self.has_next and (page := await self.next()):
            return page
        raise StopAsyncIteration

    async def next(self) -> list[Item]:
        """The next page; one with fewer than `limit` items, perhaps none, is the last."""
        page = await self._store.range(
            self._rest, self._reads, limit=self.limit, reverse=self._reverse, strong=self._strong
        )
        self.has_next = len(page) == self.limit
        if self.has_next:
            last = cast(str, page[-1][self._rest.index.sort])
            self._rest = self._rest.before(last) if self._reverse else self._rest.after(last)
        await asyncio.sleep(0)
        return page
