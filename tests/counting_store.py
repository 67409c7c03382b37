"""Counting store: counts the commits of another store, and can delay them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from store.engine import Store
from store.model.records import Change


class CountingStore:
    """`commits` has the number of changes of each commit; commits wait for `open`, and the first one sets `begun`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits: list[int] = []
        self.begun = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Sequence[Change]) -> None:
        self.begun.set()
        await self.open.wait()
        self.commits.append(len(changes))
        await self._store.commit(changes)
