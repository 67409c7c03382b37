"""Copies of whole stores: every item of one store, as it is, in a new one of either kind.

Out of SQLite a copy is of one moment. DynamoDB has no such reads, so there the stamps of all trees are read before and
after, and a copy during which one of them was raised is refused. Until a copy is whole nobody can open it: an SQLite
file gets its name at the end, and a table has a layout of its own until then.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from store.api_keys import find_keys
from store.connect import open_store, opened
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Conflict, Unavailable
from store.metadata.schema_version import (
    COPYING,
    LAYOUT_KEY,
    layout_in,
    layout_item,
)
from store.metadata.tree_version import decode_moves
from store.model.items import (
    MAX_BATCH_BYTES,
    Delete,
    Item,
    Put,
    key_of,
    size_of,
)
from store.model.keys import path_of, tree_version_key
from store.model.paths import format_path
from store.text import shorten

COMMITS_AT_ONCE = 8
STAMP = tree_version_key("").sk
ID = "id#"


@asynccontextmanager
async def new_store(url: str) -> AsyncIterator[Store]:
    """A store to be filled while the block runs, at an address where nothing lies but an unfinished copy.

    When the block ends well it is there for everybody. Raises BadInput where something lies there.
    """
    scheme, _, address = url.partition("://")
    if scheme == "sqlite" and address.endswith(":memory:"):
        raise BadInput("A copy in memory would be gone at once; name a file: sqlite:///FILE.")
    async with _file(address.removeprefix("/")) if scheme == "sqlite" else _table(url) as store:
        yield store


@asynccontextmanager
async def _file(name: str) -> AsyncIterator[Store]:
    """A new SQLite file, in a directory of its own until it is whole."""
    file = Path(name)
    _check_absent(file)
    try:
        folder = TemporaryDirectory(prefix=".clade-copy-", dir=file.parent)
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    with folder:
        part = Path(folder.name) / file.name
        async with opened(f"sqlite:///{part}", make=True) as store:
            yield store
        _check_absent(file)
        part.rename(file)


def _check_absent(file: Path) -> None:
    if os.path.lexists(file):
        raise BadInput(f'"{file}" exists; a copy goes into a new file.')


@asynccontextmanager
async def _table(url: str) -> AsyncIterator[Store]:
    """A table that is empty, or holds an unfinished copy, and says so until the copy is whole."""
    async with open_store(url) as store:
        (layout,) = await store.get([LAYOUT_KEY], ReadUsage(), strong=True)
        if layout_in(layout) != COPYING and not await is_empty(store):
            raise BadInput(f'"{url}" is not empty; a copy goes into a new table, made with: clade table create')
        await store.commit([Put(layout_item(COPYING))])
        yield store
        await store.commit([Put(layout_item())])


async def is_empty(store: Store) -> bool:
    async for _ in store.scan(ReadUsage()):
        return False
    return True


class Copy:
    """One copy from a store into another; `met` hears of so many items more of the source.

    `items` and `nodes` are how many it has copied.
    """

    def __init__(self, source: Store, target: Store, met: Callable[[int], None] = lambda _: None) -> None:
        self._source = source
        self._target = target
        self._met = met
        self._reads = ReadUsage()
        self._room = asyncio.Semaphore(COMMITS_AT_ONCE)
        self.items = 0
        self.nodes = 0

    async def run(self) -> None:
        """Copy everything; what an unfinished copy has that the source has not is removed.

        Raises Conflict where a large move is under way, and Unavailable where anything was written to the source
        meanwhile; then the copy is not whole.
        """
        goes_on = not await is_empty(self._target)
        async with self._source.snapshot() or nullcontext(self._source) as seen:
            is_still = seen is not self._source
            before = {} if is_still else await self._stamps(seen)
            found = await self._copy(seen, compare=goes_on)
            if goes_on:
                await self._remove_others(seen)
            if not is_still:
                await self._check_unchanged(before, found)
                await self._put([key.item() for key in await find_keys(seen, self._reads)])  # which no stamp counts

    async def _stamps(self, source: Store) -> dict[str, object]:
        """The numbers of all stamps by their partitions."""
        found: dict[str, object] = {}
        async for page in source.scan(self._reads):
            found |= _stamped(page)
        return found

    async def _copy(self, source: Store, *, compare: bool) -> dict[str, object]:
        """Copy all items, or with `compare` those that differ; the numbers of the stamps among them.

        For hierarchies of which only ids were met, None.
        """
        stamps: dict[str, object] = {}
        async for page in source.scan(self._reads):
            stamps |= _stamped(page)
            for name in {hierarchy for item in page if (hierarchy := _hierarchy_of_id(item))}:
                stamps.setdefault(name, None)
            await self._put(await self._differing(page) if compare else page)
            self.items += len(page)
            self.nodes += sum("tier" in item for item in page)
            self._met(len(page))
            await asyncio.sleep(0)  # SQLite never waits, so this is where a Ctrl-C is heard
        return stamps

    async def _differing(self, page: Sequence[Item]) -> list[Item]:
        there = await self._target.get([key_of(item) for item in page], self._reads, strong=True)
        return [item for item, other in zip(page, there, strict=True) if item != other]

    async def _remove_others(self, source: Store) -> None:
        async for page in self._target.scan(self._reads):
            keys = [key_of(item) for item in page]
            there = await source.get(keys, self._reads, strong=True)
            gone = [Delete(key) for key, item in zip(keys, there, strict=True) if item is None]
            for start in range(0, len(gone), self._target.max_changes):
                await self._target.commit(gone[start : start + self._target.max_changes])

    async def _put(self, items: Sequence[Item]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for batch in _batches(items, self._target.max_changes):
                    group.create_task(self._commit(batch))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _commit(self, batch: list[Put]) -> None:
        async with self._room:
            await self._target.commit(batch)

    async def _check_unchanged(self, before: dict[str, object], found: dict[str, object]) -> None:
        """Raise Unavailable unless the stamps are what they were before and while all was copied."""
        partitions = sorted({*before, *found})
        items = await self._source.get([tree_version_key(one) for one in partitions], self._reads, strong=True)
        for partition, item in zip(partitions, items, strict=True):
            numbers = {before.get(partition), found.get(partition), (item or {}).get("n")}
            if len(numbers) > 1:
                name = format_path(path_of(partition, "#")) if "#" in partition else partition
                raise Unavailable(
                    f"{shorten(name)} was written to while it was copied, so the copy is not whole. Copy again while "
                    "nobody writes (CLADE_WRITES=off), or copy a table that was restored to a point in time."
                )


def _stamped(page: Sequence[Item]) -> dict[str, object]:
    """The numbers of the stamps on a page; raises Conflict where one tells of a move under way."""
    stamps = [item for item in page if item["sk"] == STAMP]
    for item in stamps:
        for move in decode_moves(item):
            raise Conflict(f"{move.refusal(move.source)} One that nobody works on is ended by clade repair.")
    return {cast(str, item["pk"]): item["n"] for item in stamps}


def _hierarchy_of_id(item: Item) -> str:
    """The hierarchy of an id's item, of any other an empty text."""
    pk = cast(str, item["pk"])
    return pk[len(ID) : pk.index(":")] if pk.startswith(ID) and ":" in pk else ""


def _batches(items: Sequence[Item], most: int) -> Iterator[list[Put]]:
    """Items cut into commits that any store can hold."""
    batch: list[Put] = []
    size = 0
    for item in items:
        size += size_of(item)
        if len(batch) == most or (batch and size > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], size_of(item)
        batch.append(Put(item))
    if batch:
        yield batch
