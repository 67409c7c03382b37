"""Scratch copy: the trees that a file is about in a temporary store, for a dry run of moves, which depend on each
other.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from store.concurrency import in_chunks
from store.connect import opened
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import current_key, id_item
from store.model.items import Item, Put
from store.model.keys import id_key, tree_version_key
from store.model.ranges import subtree
from store.model.records import Record
from store.reading.active_moves import wait_for_moves
from store.reading.pages import PAGE_ITEMS, Pages
from store.transfer.rows import ImportPlan


@asynccontextmanager
async def scratch_copy(store: Store, plan: ImportPlan) -> AsyncIterator[Store]:
    """A temporary store while the block runs, with the nodes of the trees that the file names or moves nodes from.

    It is a file, since trees may be larger than the memory; histories and redirects are not in it.
    """
    with TemporaryDirectory(prefix="clade-") as folder:
        async with opened(f"sqlite:///{Path(folder) / 'trial.db'}", make=True) as copy:
            await _copy(store, plan, copy)
            yield copy


async def _copy(store: Store, plan: ImportPlan, copy: Store) -> None:
    reads, name = ReadUsage(), plan.hierarchy.name
    trees = {f"{name}#{root}" for root in plan.trees}
    async for ids in in_chunks(list(plan.ids), PAGE_ITEMS):
        items = await store.get([id_key(f"{name}:{node_id}") for node_id in ids], reads, strong=True)
        await _put(copy, items)
        trees |= {place.pk for item in items if (place := current_key(item))}
    await _put(copy, await store.get([tree_version_key(name)], reads, strong=True))
    for pk in trees:
        await wait_for_moves(store, pk, reads)
        await _put(copy, await store.get([tree_version_key(pk)], reads, strong=True))
        async for nodes in Pages(store, subtree(pk, "#"), reads):
            await _put(copy, [*nodes, *(id_item(Record.of(item)) for item in nodes)])


async def _put(copy: Store, items: Sequence[Item | None]) -> None:
    await copy.commit([Put(item) for item in items if item is not None])
