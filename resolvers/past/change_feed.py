"""Change feed: the changes of a tree, in pages of whole transactions, up to the node budget of the request.

For callers with grants, a move out of their subtrees is a deletion and a move into them a creation, each with all
descendants of the node.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from resolvers.access.grants import Grants, Visibility, visibility_of
from resolvers.planning.cursors import CursorKind, decode_number, encode_cursor
from resolvers.session.request import Request
from store.concurrency import yield_to_loop
from store.engine import ReadUsage, Store
from store.errors import shorten
from store.metadata.tree_version import Event, LogEntry
from store.model.keys import Path, hierarchy_of, path_of, tree_key
from store.model.paths import format_path, parse_path
from store.reading import Transaction, expired, transactions, tree_version

PAGE_TRANSACTIONS = 100

Transactions = Callable[[Store, str, int | None, int, ReadUsage], Awaitable[list[Transaction]]]
"""Reads transactions as `transactions` does, with its arguments."""


@dataclass(frozen=True)
class Change:
    """One node's change. `source` and `target` are the paths of a move, `revision` is that after the change.

    `id` and `revision` are None for a redacted node. `with_descendants` is True if all nodes below changed as well.
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


async def current_page(request: Request, hierarchy: str, root: Path) -> ChangePage:
    """A page without changes, whose cursor is that of the last change so far."""
    tree, number = tree_key(hierarchy, root), 0  # that of a tree that does not exist
    if visibility_of(request.grants, hierarchy, root) is not Visibility.HIDDEN:
        number = (await tree_version(request.store, tree, request.reads)).number
    return ChangePage([], encode_cursor(CursorKind.CHANGES, tree, str(number)), False)


async def read_changes(
    request: Request,
    hierarchy: str,
    root: Path,
    since: str | None,
    under: Path | None,
    read: Transactions = transactions,
) -> ChangePage:
    """The changes of a tree after a cursor, or from the start of its log; with `under` of one subtree alone."""
    tree, grants, budget = tree_key(hierarchy, root), request.grants, request.budget
    after = None if since is None else decode_number(since, CursorKind.CHANGES, tree)
    if visibility_of(grants, hierarchy, root) is Visibility.HIDDEN:
        if after:  # a tree that does not exist has no changes to continue after
            raise expired()
        return ChangePage([], encode_cursor(CursorKind.CHANGES, tree, "0"), False)
    budget.spend_nodes(1, what := f"The changes of {shorten(format_path(root))}")
    found = await read(request.store, tree, after, PAGE_TRANSACTIONS, request.reads)
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
    own, hierarchy = path_of(tree, entry.sk), hierarchy_of(tree)
    if all(visibility_of(grants, hierarchy, path) is Visibility.FULL for path in places or [own]):
        yield Change(
            entry.event.value, entry.id, format_path(own), entry.level, entry.revision, at, entry.source, entry.target,
            entry.event in (Event.MOVED, Event.DELETED) and not entry.alone,
        )  # fmt: skip
    elif entry.event is Event.DELETED:
        yield from _change_at(grants, tree, entry, at, Event.DELETED, own)
    elif entry.event is Event.MOVED and places[0] != places[1]:
        yield from _change_at(grants, tree, entry, at, Event.DELETED, places[0])
        yield from _change_at(grants, tree, entry, at, Event.CREATED, places[1])


def _change_at(
    grants: Grants | None, tree: str, entry: LogEntry, at: str, event: Event, path: Path
) -> Iterator[Change]:
    """The creation or deletion of a path in this tree, for a caller who does not see the whole change."""
    hierarchy = hierarchy_of(tree)
    visibility = visibility_of(grants, hierarchy, path)
    if visibility is Visibility.HIDDEN or tree_key(hierarchy, path) != tree:
        return
    node_id, revision = (entry.id, entry.revision) if visibility is Visibility.FULL else (None, None)
    yield Change(event.value, node_id, format_path(path), entry.level, revision, at, None, None, not entry.alone)
