"""Migration: brings the items of a table to the layout of this Clade.

The table is marked with its new layout first, so older servers reject it from then on. Servers of this version ignore
what the migration removes, so they may run meanwhile. A second run skips everything that is done.
"""

import asyncio

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.model.items import Item, Put, key_of
from store.retry import RetryPolicy

ROOTS_AT_ONCE = 8
RETRIES = RetryPolicy(0.02, 0.25, attempts=20)  # of one root while others write to it
CHANGED = ("id", "kids", "below", "revision", "rank")  # one of these differs after any write to a root


async def migrate(store: Store) -> tuple[object, int]:
    """Migrate a table; returns the layout that it had, and the number of roots that were rewritten.

    Raises as `Store.migrate` does, and Conflict where other writes to a root do not stop.
    """
    before, reads, written = await store.migrate(), ReadUsage(), 0
    async for page in store.scan(reads):
        roots = [item for item in page if _has_counts(item)]
        for start in range(0, len(roots), ROOTS_AT_ONCE):
            calls = [_drop_counts(store, root) for root in roots[start : start + ROOTS_AT_ONCE]]
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                written += outcome
    return before, written


def _has_counts(item: Item | None) -> bool:
    """Whether an item is that of a root of layout 1, which has the counts of its descendants."""
    return item is not None and item["sk"] == "#" and "tier" in item and "below" in item


async def _drop_counts(store: Store, item: Item | None) -> bool:
    """Write a root without its counts, unless another write was first; whether that was necessary."""
    reads = ReadUsage()
    for delay in RETRIES.delays():
        await asyncio.sleep(delay)
        if item is None or not _has_counts(item):
            return False
        rest = {name: value for name, value in item.items() if name != "below"}
        try:
            await store.commit([Put(rest, {name: item.get(name) for name in CHANGED})])
        except Conflict:
            (item,) = await store.get([key_of(item)], reads, strong=True)
        else:
            return True
    raise Conflict("Other writes to a root prevented the migration; the same command continues it.")
