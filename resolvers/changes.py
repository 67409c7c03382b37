"""Change feed: the changes of a tree, in pages of whole transactions, up to the node budget of the request; and the
trees that event streams follow, whose versions are read for all streams of a process together.

For callers with grants, a move out of their subtrees is a deletion and a move into them a creation, each with all
descendants of the node. A move or deletion of a node above their grant roots is one of these.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from resolvers.access.grants import Grants
from resolvers.lists.arguments import CursorKind, check_cursor, decode_number, encode_cursor
from resolvers.session.request import Request
from store.concurrency import yield_to_loop
from store.engine import ReadUsage, Store
from store.errors import CladeError, DamagedItem, shorten
from store.metadata.tree_version import Event, LogEntry, Transaction, TreeVersion
from store.model.keys import Path, hierarchy_of, log_partition, path_of, tree_key, tree_version_key
from store.model.paths import format_path, parse_path
from store.reading import expired, logged_key, transactions, tree_version

PAGE_TRANSACTIONS = 100
POLL_SECONDS = 1.0  # the delay of an event; a poll costs half a read unit for each followed tree
MAX_SHARED_READS = 16  # of one tree between two polls: most streams continue after the same transaction

logger = logging.getLogger("clade")

Transactions = Callable[[Store, str, int | None, int, ReadUsage], Awaitable[list[Transaction]]]
"""Reads transactions as `transactions` does, with its arguments."""


@dataclass(frozen=True)
class Change:
    """One node's change. `source` and `target` are the paths of a move, `revision` is that after the change.

    `id`, `level` and `revision` are None where a node above a grant root has changed. `with_descendants` is True if all
    nodes below changed as well.
    """

    event: str
    id: str | None
    path: str
    level: str | None
    revision: int | None
    at: str
    source: str | None = None
    target: str | None = None
    with_descendants: bool = False

    def concerns(self, under: Path) -> bool:
        """Whether a node of the subtree at a path has changed, by itself or with a node above the path."""
        paths = [parse_path(text) for text in (self.path, self.source, self.target) if text is not None]
        return any(
            path[: len(under)] == under or (self.with_descendants and under[: len(path)] == path) for path in paths
        )


@dataclass(frozen=True)
class ChangePage:
    """Changes in their order, the cursor to continue with, and whether there may be more by now."""

    changes: list[Change]
    cursor: str
    has_more: bool


async def _current_page(request: Request, hierarchy: str, root: Path) -> ChangePage:
    """A page without changes, whose cursor is that of the last change so far."""
    tree, number = log_partition(hierarchy, root), 0  # that of a tree that does not exist
    if _may_follow(request.grants, hierarchy, root):
        read = partial(tree_version, request.store, tree, request.reads)
        number = (await request.scheduler.run(read)).number
    return ChangePage([], encode_cursor(CursorKind.CHANGES, tree, str(number)), False)


def _may_follow(grants: Grants | None, hierarchy: str, root: Path) -> bool:
    """Whether anything of a tree is visible; the list of roots is for those who see the whole hierarchy."""
    return (
        grants is None or grants.may_read(hierarchy, root) or (root != () and bool(grants.roots_below(hierarchy, root)))
    )


async def read_changes(
    request: Request,
    hierarchy: str,
    root: Path,
    since: str | None,
    under: Path | None,
    read: Transactions | None = None,
) -> ChangePage:
    """The changes of a tree after a cursor, or from the start of its log; with `under` of one subtree alone.

    Without `root` they are those of the hierarchy's list of roots: roots that came, went or changed their place.
    `read` reads them at the expense of others.
    """
    tree, grants, budget = log_partition(hierarchy, root), request.grants, request.budget
    check_cursor("after", since)
    after = None if since is None else decode_number(since, CursorKind.CHANGES, tree)
    if not _may_follow(grants, hierarchy, root):
        if after:  # a tree that does not exist has no changes to continue after
            raise expired()
        return ChangePage([], encode_cursor(CursorKind.CHANGES, tree, "0"), False)
    budget.spend_nodes(1, what := f"The changes of {shorten(format_path(root)) or hierarchy}")
    request.state.begin_log(tree)
    own = partial(read or transactions, request.store, tree, after, PAGE_TRANSACTIONS, request.reads)
    found = await (own() if read else request.scheduler.run(own))
    changes: list[Change] = []
    last, has_more = after or 0, len(found) == PAGE_TRANSACTIONS
    for transaction in found:
        visible = [change for entry in transaction.entries for change in _changes(grants, tree, entry, transaction.at)]
        visible = [change for change in visible if under is None or change.concerns(under)]
        if changes and len(visible) > budget.nodes_left:
            has_more = True
            break
        budget.spend_nodes(len(visible), what)
        changes += visible
        last = transaction.number
        await yield_to_loop()
    # Entries that were read and not returned are spent as well, or they could be read again and again.
    unreturned = sum([len(transaction.entries) for transaction in found]) - len(changes)
    budget.spend_nodes(max(0, min(budget.nodes_left, unreturned)))
    return ChangePage(changes, encode_cursor(CursorKind.CHANGES, tree, str(last)), has_more)


def _changes(grants: Grants | None, tree: str, entry: LogEntry, at: str) -> Iterator[Change]:
    """The changes that a caller sees in one entry of the log."""
    places = [parse_path(text) for text in (entry.source, entry.target) if text is not None]
    key = logged_key(tree, entry.sk)
    own, hierarchy = path_of(*key), hierarchy_of(key.pk)
    is_reordered = entry.event is Event.MOVED and places[0] == places[1]
    # Another place among hidden siblings would tell of them.
    seen = [own[:-1]] if is_reordered else places or [own]
    if grants is None or all(grants.may_read(hierarchy, path) for path in seen):
        yield Change(
            entry.event.value, entry.id, format_path(own), entry.level, entry.revision, at, entry.source, entry.target,
            entry.event in (Event.MOVED, Event.DELETED, Event.RESTORED) and not entry.alone,
        )  # fmt: skip
    elif entry.event in (Event.DELETED, Event.RESTORED):
        yield from _change_at(grants, tree, entry, at, entry.event, own)
    elif entry.event is Event.MOVED and not is_reordered:
        yield from _change_at(grants, tree, entry, at, Event.DELETED, places[0])
        yield from _change_at(grants, tree, entry, at, Event.CREATED, places[1])


def _change_at(grants: Grants, tree: str, entry: LogEntry, at: str, event: Event, path: Path) -> Iterator[Change]:
    """The creation or deletion of a path in this tree, for a caller who does not see the whole change."""
    hierarchy, with_descendants = hierarchy_of(tree), not entry.alone
    if tree_key(hierarchy, path) != tree:
        return
    if grants.may_read(hierarchy, path):
        place = format_path(path)
        yield Change(event.value, entry.id, place, entry.level, entry.revision, at, None, None, with_descendants)
    elif with_descendants:
        for top in grants.roots_below(hierarchy, path):
            yield Change(event.value, None, format_path(top), None, None, at, None, None, with_descendants)


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
    """The followed trees of one process, by their keys.

    One BatchGetItem every few moments reads the versions of all followed trees, with eventual consistency: half a read
    unit for each tree. Nothing is read while there is no stream. A listener waits until its tree has another version,
    then reads the changes after its cursor; reads of the same changes are shared. So a stream that waits costs nothing,
    and a change costs one Query for all streams of its tree.
    """

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
            try:
                number = TreeVersion.of(tree.key, item).number
            except DamagedItem:
                number = -1  # so that its listeners read, and meet the error
            tree.polled(number)

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
        tree = self.tree = self.tree or self._follower.join(log_partition(hierarchy, root))
        polled, since = tree.number, self.cursor or after
        if since is None:
            page = await _current_page(request, hierarchy, root)
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
