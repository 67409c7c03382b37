"""Change follower: the versions of the trees that event streams follow, read for all streams of a process together.

One BatchGetItem every few moments reads the versions of all followed trees, with eventual consistency: half a read unit
for each tree. Nothing is read while there is no stream. A listener waits until its tree has another version, then reads
the changes after its cursor; reads of the same changes are shared. So a stream that waits costs nothing, and a change
costs one Query for all streams of its tree.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from resolvers.past.change_feed import ChangePage, current_page, read_changes
from resolvers.planning.cursors import CursorKind, decode_number
from resolvers.session.request import Request
from store.engine import ReadUsage, Store
from store.errors import CladeError
from store.model.keys import Path, tree_key, tree_version_key
from store.reading import Transaction, transactions

POLL_SECONDS = 1.0  # the delay of an event; a poll costs half a read unit for each followed tree
MAX_SHARED_READS = 16  # of one tree between two polls: most streams continue after the same transaction

logger = logging.getLogger("clade")


class FollowedTree:
    """One tree with listeners. `number` is that of its version at the last poll, None before the first one."""

    def __init__(self, key: str, reads: ReadUsage) -> None:
        """`reads` is charged for shared reads."""
        self.key = key
        self.listeners = 0
        self.number: int | None = None
        self._reads = reads
        self._changed = asyncio.Event()
        self._shared: dict[int | None, asyncio.Task[list[Transaction]]] = {}

    def polled(self, number: int) -> None:
        """Take the number that a poll has read, and wake the listeners if it differs from the one before."""
        self._shared.clear()
        if number != self.number:
            self.number = number
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def has_other_version(self, seen: int) -> None:
        """Wait until the tree has another version than the number `seen`.

        An older one counts if it is polled from now on: the table was restored, or a replica lags behind.
        """
        if self.number is not None and self.number > seen:
            return
        while True:
            await self._changed.wait()
            if self.number != seen:
                return

    async def transactions(
        self, store: Store, tree: str, since: int | None, limit: int, _: ReadUsage
    ) -> list[Transaction]:
        """As `store.reading.transactions`, shared until the next poll by all who continue after `since`.

        A shared read began after the last poll, so it has all changes up to `number`.
        """
        read = self._shared.get(since)
        if read is None or (read.done() and read.exception()):
            read = self._shared[since] = asyncio.create_task(transactions(store, tree, since, limit, self._reads))
            while len(self._shared) > MAX_SHARED_READS:
                del self._shared[next(iter(self._shared))]
        return await asyncio.shield(read)  # others wait for it


class ChangeFollower:
    """The followed trees of one process, by their keys."""

    def __init__(self, store: Store, poll_seconds: float = POLL_SECONDS) -> None:
        """`poll_seconds` is the time between two polls."""
        self.reads = ReadUsage()
        """The read consumption of polls and of shared reads."""
        self._store = store
        self._poll_seconds = poll_seconds
        self._trees: dict[str, FollowedTree] = {}
        self._is_wanted = asyncio.Event()

    @property
    def trees(self) -> int:
        """The number of followed trees."""
        return len(self._trees)

    async def watch(self) -> None:
        """Poll while there are listeners, until cancelled."""
        is_failing = False
        while True:
            await self._is_wanted.wait()
            try:
                await self._poll()
                is_failing = False
            except CladeError as error:
                if not is_failing:
                    logger.warning("The versions of followed trees cannot be read, which is repeated: %s", error)
                is_failing = True
            except Exception:
                logger.exception("The versions of followed trees cannot be read.")
            await asyncio.sleep(self._poll_seconds)

    async def _poll(self) -> None:
        trees = list(self._trees.values())
        items = await self._store.get([tree_version_key(tree.key) for tree in trees], self.reads)
        for tree, item in zip(trees, items, strict=True):
            tree.polled(cast(int, item["n"]) if item else 0)

    @contextmanager
    def listening(self, cursor: str | None) -> Iterator["ChangeListener"]:
        """A listener for the length of the block, which continues after a cursor if it has one."""
        listener = ChangeListener(self, cursor)
        try:
            yield listener
        finally:
            if listener.tree is not None:
                self._leave(listener.tree)

    def join(self, key: str) -> FollowedTree:
        """The tree with this key, followed until everyone who joined has left."""
        tree = self._trees.setdefault(key, FollowedTree(key, self.reads))
        tree.listeners += 1
        self._is_wanted.set()
        return tree

    def _leave(self, tree: FollowedTree) -> None:
        tree.listeners -= 1
        if not tree.listeners:
            del self._trees[tree.key]
            if not self._trees:
                self._is_wanted.clear()


class ChangeListener:
    """The place of one stream in the changes of its tree.

    `cursor` is that of the last page that was taken, or the one to resume after; `page` is the one that was read and is
    not taken yet, and `tree` the tree once a page was read.
    """

    def __init__(self, follower: ChangeFollower, cursor: str | None) -> None:
        self.cursor = cursor
        self.page: ChangePage | None = None
        self.tree: FollowedTree | None = None
        self._follower = follower
        self._seen = -1  # the newest version whose changes were taken
        self._reading = -1

    async def read(
        self, request: Request, hierarchy: str, root: Path, after: str | None, under: Path | None
    ) -> ChangePage:
        """The page after the listener's cursor, else after the cursor `after`; without both an empty one of now."""
        self.page = None
        tree = self.tree = self.tree or self._follower.join(tree_key(hierarchy, root))
        polled, since = tree.number, self.cursor or after
        if since is None:
            page = await current_page(request, hierarchy, root)
        else:
            page = await read_changes(request, hierarchy, root, since, under, tree.transactions)
        self._reading = max(polled or 0, decode_number(page.cursor, CursorKind.CHANGES, tree.key))
        self.page = page
        return page

    def take(self) -> None:
        """The last page was sent, or needs no sending: continue after it."""
        assert self.page is not None  # noqa: S101 - it was read
        self.cursor = self.page.cursor
        self._seen = -1 if self.page.has_more else self._reading
        self.page = None

    async def has_news(self) -> None:
        """Wait until there may be changes after the cursor."""
        if self.tree is not None and self._seen >= 0:
            await self.tree.has_other_version(self._seen)
