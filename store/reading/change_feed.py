"""The log of a tree, read in its order: what others follow to stay as the tree is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CursorExpired
from store.metadata.change_log import LogEntry, log_entries
from store.metadata.tree_version import TreeVersion
from store.model.items import Item
from store.model.keys import Index, log_key, tree_version_key
from store.model.ranges import KeyRange

LAST_NUMBER = 10**12 - 1


@dataclass(frozen=True)
class Transaction:
    """What one transaction changed: the stamp's number that it led to, and when it was made."""

    number: int
    at: str
    entries: Sequence[LogEntry]


async def transactions(store: Store, tree: str, since: int | None, limit: int, reads: ReadUsage) -> list[Transaction]:
    """The first so many transactions of a tree after a number, or of all that are kept; one range read.

    Raises CursorExpired where what followed the number is not kept any more. They follow one another without a gap:
    what is kept begins behind the last one.
    """
    # The read begins with the item of the number itself: as long as that is there, so is all that followed.
    start = max(1, since or 1)
    span = KeyRange(Index.TABLE, tree, log_key(tree, start).sk, log_key(tree, LAST_NUMBER).sk)
    found: list[Transaction] = []
    async for some in in_chunks(await store.range(span, reads, limit=limit + 1, strong=True), 4):  # they may be large
        found += map(_transaction, some)
    if since is None:
        return _without_gap(found)[:limit]
    if found and found[0].number == start:
        if len(_without_gap(found)) < len(found):
            raise expired()
    else:
        (stamp,) = await store.get([tree_version_key(tree)], reads, strong=True)
        if TreeVersion.of(tree, stamp).number != since:
            raise expired()
    return [one for one in found if one.number > since][:limit]


def _without_gap(found: list[Transaction]) -> list[Transaction]:
    """Those behind the last gap in their numbers."""
    gaps = [place for place, (one, next_one) in enumerate(pairwise(found), 1) if next_one.number != one.number + 1]
    return found[gaps[-1] :] if gaps else found


def expired() -> CursorExpired:
    """The error for a cursor of which it is not known what followed."""
    return CursorExpired("What followed this cursor is not kept any more; read the tree anew, then its changes.")


def _transaction(item: Item) -> Transaction:
    return Transaction(int(cast(str, item["sk"])[1:]), cast(str, item["at"]), log_entries(item))
