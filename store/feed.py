"""The log of a tree, read in its order: what others follow to stay as the tree is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from store.errors import CursorExpired
from store.items import Item
from store.keys import Index, Span, log_key, stamp_key
from store.reads import Reads
from store.stamps import Event, LogEntry, Stamp
from store.stores import Store

LAST_NUMBER = 10**12 - 1


@dataclass(frozen=True)
class Transaction:
    """What one transaction changed: the stamp's number that it led to, and when it was made."""

    number: int
    at: str
    entries: Sequence[LogEntry]


async def transactions(store: Store, tree: str, since: int | None, limit: int, reads: Reads) -> list[Transaction]:
    """The first so many transactions of a tree after a number, or of all that are kept; one range read.

    Raises CursorExpired where what followed the number is not kept any more.
    """
    # The read begins with the item of the number itself: as long as that is there, so is all that followed.
    start = max(1, since or 1)
    span = Span(Index.TABLE, tree, log_key(tree, start).sk, log_key(tree, LAST_NUMBER).sk)
    found = list(map(_transaction, await store.range(span, reads, limit=limit + 1, strong=True)))
    if since is not None and not (found and found[0].number == start):
        (stamp,) = await store.get([stamp_key(tree)], reads, strong=True)
        if Stamp.of(tree, stamp).n != since:
            raise expired()
    return [one for one in found if one.number > (since or 0)][:limit]


def expired() -> CursorExpired:
    """The error for a cursor of which it is not known what followed."""
    return CursorExpired("What followed this cursor is not kept any more; read the tree anew, then its changes.")


def _transaction(item: Item) -> Transaction:
    found = cast(dict[str, Any], item)
    entries = [LogEntry(Event(event), *rest) for event, *rest in found["changes"]]
    return Transaction(int(found["sk"][1:]), found["at"], entries)
