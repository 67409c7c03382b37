"""Shared reads: the reads of one attempt at a response, each started once and awaited by everyone who needs it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

from resolvers.session.coalesced_reads import CoalescedReads
from resolvers.session.outcomes import gather_all
from resolvers.session.read_concurrency import ReadScheduler
from store.engine import LEAST_UNITS, ReadUsage, Store, units_of
from store.errors import CladeError
from store.model.keys import Key, tree_version_key
from store.model.records import Item

T = TypeVar("T")
Items = dict[Key, Item | Exception | None]

BATCH_KEYS = 100  # DynamoDB's limit of one BatchGetItem, which fails as a whole


class SharedReads:
    """Reads of a store, by key (of items) or by any other value that identifies them.

    `coalesced` are the reads of the process that are shared between requests: of tree versions, and of ranges. After
    `end`, running reads are cancelled, their results are dropped, and no read begins.
    """

    def __init__(self, store: Store, usage: ReadUsage, scheduler: ReadScheduler, coalesced: CoalescedReads) -> None:
        self._store, self._usage, self._scheduler, self._coalesced = store, usage, scheduler, coalesced
        self._reads: dict[Hashable, asyncio.Future[Any]] = {}
        self._strong: set[Key] = set()
        self._has_ended = False

    def end(self) -> None:
        self._has_ended = True
        for read in self._reads.values():
            read.cancel()
        self._reads = {}

    async def run(self, read: Callable[[], Awaitable[T]], units: float = LEAST_UNITS) -> T:
        """The result of a read that is not shared, as from `ReadScheduler.run`; raises CancelledError after the end."""
        result = await self._scheduler.run(read, units)
        if self._has_ended:
            raise asyncio.CancelledError
        return result

    def once(self, identity: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Future[T]":
        """The read of this identity: the one that was started before, or else a new one, started at once."""
        return self._reads.get(identity) or self._start(identity, read)

    def _start(self, identity: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Future[T]":
        if self._has_ended:
            raise asyncio.CancelledError
        started = self._reads[identity] = asyncio.ensure_future(read())
        return started

    def has_read(self, key: Key) -> bool:
        """Whether the read of an item was started before."""
        return key in self._reads

    def forget_items(self, is_outdated: Callable[[Key], bool]) -> None:
        """Let the items at these keys be read again."""
        self._reads = {
            identity: read
            for identity, read in self._reads.items()
            if not (isinstance(identity, Key) and is_outdated(identity))
        }

    async def items(self, keys: Sequence[Key], needs_strong: Callable[[Key], bool]) -> Items:
        """The items at these keys in their order, None where there is none, or the error of a failed read.

        Each key is read once, or twice if the first read was weak and the key now `needs_strong` consistency.
        """
        if not keys:
            return {}
        new = [key for key in keys if key not in self._reads or (needs_strong(key) and key not in self._strong)]
        for start in range(0, len(new), BATCH_KEYS):
            batch = new[start : start + BATCH_KEYS]
            strong = any(map(needs_strong, batch))
            if strong:
                self._strong.update(batch)
            read = self._start(batch[0], partial(self._read_batch, batch, strong=strong))
            self._reads.update(dict.fromkeys(batch, read))
        found: Items = {}
        for outcomes in await asyncio.gather(*dict.fromkeys([self._reads[key] for key in keys])):
            found.update(outcomes)
        return {key: found[key] for key in keys}

    async def _read_batch(self, keys: list[Key], *, strong: bool) -> Items:
        try:
            return await self.run(partial(self._get, keys, strong=strong), len(keys) * units_of(0, strong=strong))
        except CladeError as error:
            return dict.fromkeys(keys, error.bare())
        except Exception as error:  # raised by everyone who needs one of these keys
            return dict.fromkeys(keys, error)

    async def _get(self, keys: list[Key], *, strong: bool) -> Items:
        """The items at these keys in one request, and in others the tree versions that are being read by too many."""
        versions = [key for key in keys if strong and key == tree_version_key(key.pk)]
        begun = [key for key in versions if self._coalesced.begin(key)]
        try:
            shared = [key for key in versions if key not in begun]
            own = [key for key in keys if key not in shared]
            calls: list[Awaitable[list[Item | None]]] = [
                self._coalesced.next(key, partial(self._store.get, [key], strong=True), self._usage) for key in shared
            ]
            if own:
                calls.append(self._store.get(own, self._usage, strong=strong))
            items = [item for some in await gather_all(calls) for item in some]
            return dict(zip([*shared, *own], items, strict=True))
        finally:
            for key in begun:
                self._coalesced.end(key)
