"""The changes of a tree, in pages of whole transactions, as many as the request's budget of nodes has room for.

Callers with grants follow what they may see: what is moved out of their sight is deleted for them, and what is moved
into it is created, each with all below it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from resolvers.access.grants import Grants, Visibility
from resolvers.planning.cursors import CursorKind, decode_number, encode_cursor
from resolvers.session.request import Request
from store.concurrency import yield_to_loop
from store.metadata.change_log import Event, LogEntry
from store.model.keys import (
    Path,
    hierarchy_of,
    path_of,
    tree_key,
)
from store.model.paths import format_path, parse_path
from store.reading.change_feed import expired, transactions
from store.text import shorten

PAGE_TRANSACTIONS = 100


@dataclass(frozen=True)
class Change:
    """One node's change; `source` and `target` are the paths of a move, `revision` is what the node has since.

    `id` and `revision` are None for a node above the caller's grants. `with_descendants` if it is about all below too.
    """

    event: str
    id: str | None
    path: str
    level: str
    revision: int | None
    at: str
    source: str | None = None
    target: str | None = None
    with_descendants: bool = False

    def is_in(self, under: Path) -> bool:
        """Whether it is about the subtree at a path, or about something above that it was changed with."""
        paths = [parse_path(text) for text in (self.path, self.source, self.target) if text is not None]
        return any(
            path[: len(under)] == under or (self.with_descendants and under[: len(path)] == path) for path in paths
        )


@dataclass(frozen=True)
class Feed:
    """Some changes in their order, the cursor to go on from, and whether there may be more already."""

    changes: list[Change]
    cursor: str
    has_more: bool


async def feed(request: Request, hierarchy: str, root: Path, since: str | None, under: Path | None) -> Feed:
    """What has changed in a tree since a cursor, or since all that is kept began; `under` leaves out other subtrees."""
    tree, grants = tree_key(hierarchy, root), request.grants
    seen = None if since is None else decode_number(since, CursorKind.CHANGES, tree)
    if grants is not None and grants.sight(hierarchy, root) is Visibility.NOTHING:
        if seen:  # nothing ever followed in a tree that is not there
            raise expired()
        return Feed([], encode_cursor(CursorKind.CHANGES, tree, "0"), False)
    request.spend(1, what := f"The changes of {shorten(format_path(root))}")
    found = await transactions(request.store, tree, seen, PAGE_TRANSACTIONS, request.reads)
    changes: list[Change] = []
    last, has_more = seen or 0, len(found) == PAGE_TRANSACTIONS
    for one in found:
        told = [change for entry in one.entries for change in _told(grants, tree, entry, one.at)]
        told = [change for change in told if under is None or change.is_in(under)]
        if changes and len(told) > request.nodes_left:
            has_more = True
            break
        request.spend(len(told), what)
        changes += told
        last = one.number
        await yield_to_loop()
    # What was read beyond that is spent as well, or one would read it again and again.
    unshown = sum([len(one.entries) for one in found]) - len(changes)
    request.spend(max(0, min(request.nodes_left, unshown)))
    return Feed(changes, encode_cursor(CursorKind.CHANGES, tree, str(last)), has_more)


def _told(grants: Grants | None, tree: str, entry: LogEntry, at: str) -> Iterator[Change]:
    """What a caller is told of one entry of the log."""
    places = [parse_path(text) for text in (entry.source, entry.target) if text is not None]
    own = path_of(tree, entry.sk)
    if grants is None or all(grants.sight(hierarchy_of(tree), path) is Visibility.WHOLE for path in places or [own]):
        yield Change(
            entry.event.value, entry.id, format_path(own), entry.level, entry.revision, at, entry.source, entry.target,
            entry.event in (Event.MOVED, Event.DELETED) and not entry.alone,
        )  # fmt: skip
    elif entry.event is Event.DELETED:
        yield from _in_part(grants, tree, entry, at, Event.DELETED, own)
    elif entry.event is Event.MOVED and places[0] != places[1]:
        yield from _in_part(grants, tree, entry, at, Event.DELETED, places[0])
        yield from _in_part(grants, tree, entry, at, Event.CREATED, places[1])


def _in_part(grants: Grants, tree: str, entry: LogEntry, at: str, event: Event, path: Path) -> Iterator[Change]:
    """What came to be or ceased to be at a path of this tree, for a caller who does not see all of the change."""
    hierarchy = hierarchy_of(tree)
    sight = grants.sight(hierarchy, path)
    if sight is Visibility.NOTHING or tree_key(hierarchy, path) != tree:
        return
    node_id, revision = (entry.id, entry.revision) if sight is Visibility.WHOLE else (None, None)
    yield Change(event.value, node_id, format_path(path), entry.level, revision, at, None, None, not entry.alone)
