"""Change feed: the transactions on a tree in order, for consumers that keep a copy of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CursorExpired
from store.metadata.change_log import LogEntry, log_entries
from store.model.keys import Index, log_key
from store.model.ranges import KeyRange
from store.reading.tree_versions import tree_version

LAST_NUMBER = 10**12 - 1


@dataclass(frozen=True)
class Transaction:
    """One transaction: the number of the tree version after it, its time (RFC 3339, UTC) and what it changed."""

    number: int
    at: str
    entries: Sequence[LogEntry]


async def transactions(store: Store, tree: str, since: int | None, limit: int, reads: ReadUsage) -> list[Transaction]:
    """The first `limit` transactions after a number, or of all that are stored; one range read.

    Their numbers have no gap: without `since` the list begins after the last gap that expiry has left. Raises
    CursorExpired where transactions after `since` have expired.
    """
    # The read begins with the log item of `since` itself: as long as that exists, so do all after it.
    start = max(1, since or 1)
    key_range = KeyRange(Index.TABLE, tree, log_key(tree, start).sk, log_key(tree, LAST_NUMBER).sk)
    items = await store.range(key_range, reads, limit=limit + 1, strong=True)
    found: list[Transaction] = []
    async for some in in_chunks(items, 4):  # log items may be large
        found += [
            Transaction(int(cast(str, item["sk"])[1:]), cast(str, item["at"]), log_entries(item)) for item in some
        ]
    if since is None:
        return _without_gap(found)[:limit]
    if found and found[0].number == start:
        if len(_without_gap(found)) < len(found):
            raise expired()
    elif (await tree_version(store, tree, reads)).number != since:
        raise expired()
    return [transaction for transaction in found if transaction.number > since][:limit]


def _without_gap(found: list[Transaction]) -> list[Transaction]:
    """The transactions after the last gap in the numbers."""
    gaps = [index for index, (one, following) in enumerate(pairwise(found), 1) if following.number != one.number + 1]
    return found[gaps[-1] :] if gaps else found


def expired() -> CursorExpired:
    """The error for a cursor after which transactions may be missing."""
    return CursorExpired("The changes after this cursor have expired; read the tree again, then its changes.")
