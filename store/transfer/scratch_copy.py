"""A copy of the trees that a file is about, where its moves are tried, since each changes what the next one meets."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from store.connect import opened
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.history import current_key, id_item
from store.model.items import Item, Put
from store.model.keys import id_key, tree_version_key
from store.model.ranges import subtree
from store.model.records import Record
from store.reading.active_moves import wait_for_moves
from store.transfer.rows import ImportPlan

PAGE_ITEMS = 1000


@asynccontextmanager
async def trial(store: Store, wanted: ImportPlan) -> AsyncIterator[Store]:
    """A store of its own while the block runs, with the nodes of the trees that the file names or takes nodes from.

    It lies in a file, since trees may be larger than the memory; histories and aliases are not in it.
    """
    with TemporaryDirectory(prefix="clade-") as folder:
        async with opened(f"sqlite:///{Path(folder) / 'trial.db'}", make=True) as copy:
            await _copy(store, wanted, copy)
            yield copy


async def _copy(store: Store, wanted: ImportPlan, copy: Store) -> None:
    reads, name = ReadUsage(), wanted.hierarchy.name
    trees = {f"{name}#{root}" for root in wanted.trees}
    ids = [id_key(f"{name}:{one}") for one in wanted.ids]
    for first in range(0, len(ids), PAGE_ITEMS):
        items = await store.get(ids[first : first + PAGE_ITEMS], reads, strong=True)
        await _put(copy, items)
        trees |= {place.pk for item in items if (place := current_key(item))}
    await _put(copy, await store.get([tree_version_key(name)], reads, strong=True))
    for pk in trees:
        await wait_for_moves(store, pk, reads)
        await _put(copy, await store.get([tree_version_key(pk)], reads, strong=True))
        span = subtree(pk, "#")
        while nodes := await store.range(span, reads, limit=PAGE_ITEMS, strong=True):
            await _put(copy, [*nodes, *(id_item(Record.of(item)) for item in nodes)])
            span = span.after(str(nodes[-1]["sk"]))


async def _put(copy: Store, items: Sequence[Item | None]) -> None:
    await copy.commit([Put(item) for item in items if item is not None])
