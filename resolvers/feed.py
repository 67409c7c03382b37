"""The changes of a tree, in pages of whole transactions."""

from collections.abc import Iterator
from dataclasses import dataclass

from resolvers.request import Request
from resolvers.window import Order, decode_cursor, encode_cursor
from store.feed import transactions
from store.keys import Path, format_path, parse_path, path_of, tree_key
from store.stamps import Event, LogEntry

PAGE_TRANSACTIONS = 100


@dataclass(frozen=True)
class Change:
    """One node's change: `source` and `target` are the paths of a move; `revision` is what the node has since."""

    event: str
    id: str
    path: str
    level: str
    revision: int
    at: str
    source: str | None
    target: str | None


@dataclass(frozen=True)
class Feed:
    """Some changes in their order, the cursor to go on from, and whether there may be more already."""

    changes: list[Change]
    cursor: str
    has_more: bool


async def feed(request: Request, hierarchy: str, root: Path, since: str | None, under: Path | None) -> Feed:
    """What has changed in a tree since a cursor, or since all that is kept began; `under` leaves out other subtrees."""
    tree = tree_key(hierarchy, root)
    seen = None if since is None else int(decode_cursor(since, Order.CHANGES, tree))
    found = await transactions(request.store, tree, seen, PAGE_TRANSACTIONS, request.reads)
    changes = [
        _change(tree, entry, one.at)
        for one in found
        for entry in one.entries
        if under is None or _is_in(tree, entry, under)
    ]
    request.spend(len(changes))
    last = found[-1].number if found else seen or 0
    return Feed(changes, encode_cursor(Order.CHANGES, tree, str(last)), len(found) == PAGE_TRANSACTIONS)


def _change(tree: str, entry: LogEntry, at: str) -> Change:
    path = format_path(path_of(tree, entry.sk))
    event = entry.event.value
    return Change(event, entry.id, path, entry.level, entry.revision, at, entry.source, entry.target)


def _is_in(tree: str, entry: LogEntry, under: Path) -> bool:
    """Whether a change is about the subtree at a path, or about something above that it was changed with."""
    spreads = entry.event in (Event.MOVED, Event.DELETED)
    return any(path[: len(under)] == under or (spreads and under[: len(path)] == path) for path in _paths(tree, entry))


def _paths(tree: str, entry: LogEntry) -> Iterator[Path]:
    yield path_of(tree, entry.sk)
    yield from [parse_path(text) for text in (entry.source, entry.target) if text is not None]
