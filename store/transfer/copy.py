"""Copy of a whole store: every item, as it is, in a new store of either kind; and a backup that is put back.

A copy from SQLite is of one moment. DynamoDB has no such reads, so there the versions of all trees are read before and
after, and a copy during which one of them changed is rejected. An incomplete copy cannot be opened: an SQLite file gets
its name at the end, and a table has a layout of its own until then.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from store.api_keys import KEYS, ApiKey
from store.concurrency import task_group
from store.connect import SQLiteUrl, open_store, opened, parse_store_url
from store.engine import ReadUsage, Store
from store.errors import BadInput, CladeError, Conflict, DamagedItem, Unavailable, shorten
from store.metadata.tree_version import COPYING, LAYOUT_KEY, TreeVersion, layout_in, layout_item
from store.model.keys import path_of, tree_version_key
from store.model.paths import format_path
from store.model.records import Change, Delete, Item, Put, key_of, size_of
from store.reading import tree_versions
from store.sqlite.store import SQLiteStore
from store.writing.transaction import Step, in_transactions

COMMITS_AT_ONCE = 8
_VERSION_SORT_KEY = tree_version_key("").sk
_ID = "id#"

Versions = dict[str, object]  # the numbers of tree versions by partition


def new_store(url: str) -> AbstractAsyncContextManager[Store]:
    """A store to fill while the block runs, at an address with nothing but an incomplete copy.

    When the block ends without error, others can open it. Raises BadInput where the address is in use.
    """
    target = parse_store_url(url)
    if not isinstance(target, SQLiteUrl):
        return _table(url)
    if target.is_in_memory:
        raise BadInput("A copy in memory would be lost when the command ends; name a file: sqlite:///FILE.")
    return _file(Path(target.path))


@asynccontextmanager
async def _file(file: Path) -> AsyncIterator[Store]:
    """A new SQLite file, in a directory of its own until it is complete."""
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
    """A table that is empty or has an incomplete copy, marked as such until the copy is complete."""
    async with open_store(url) as store:
        (layout,) = await store.get([LAYOUT_KEY], ReadUsage(), strong=True)
        if layout_in(layout) != COPYING and await anext(store.scan(ReadUsage()), None) is not None:
            raise BadInput(f'"{url}" is not empty; a copy goes into a new table, made with: clade table create')
        await store.commit([Put(layout_item(COPYING))])
        yield store
        await store.commit([Put(layout_item())])


@dataclass
class Copy:
    """One copy from a store into another; `on_items` is called with each number of items read from the source.

    `items` and `nodes` are the numbers copied so far.
    """

    source: Store
    target: Store
    on_items: Callable[[int], None] = lambda _: None
    items: int = 0
    nodes: int = 0
    _reads: ReadUsage = field(default_factory=ReadUsage)

    async def run(self) -> None:
        """Copy everything; items of an incomplete copy that the source does not have are removed.

        Raises Conflict where a large move is running, and Unavailable where anything was written to the source
        meanwhile; then the copy is not complete.
        """
        is_resumed = await anext(self.target.scan(ReadUsage()), None) is not None
        async with self.source.snapshot() or nullcontext(self.source) as source:
            before: Versions = {}
            if is_live := source is self.source:
                async for page in source.scan(self._reads):
                    _note_versions(page, before)
            found = await self._copy(source, compare=is_resumed)
            if is_resumed:
                await self._remove_others(source)
            if is_live:
                await self._check_unchanged(before, found)
        # Those of now, not of the snapshot, since some may have been revoked meanwhile; no tree version has them.
        await self._write(await self.source.range(KEYS, self._reads, strong=True))

    async def _copy(self, source: Store, *, compare: bool) -> Versions:
        """Copy all items, or with `compare` those that differ; returns the tree versions among them."""
        versions: Versions = {}
        async for page in source.scan(self._reads):
            _note_versions(page, versions)
            items = page
            if compare:
                there = await self.target.get([key_of(item) for item in page], self._reads, strong=True)
                items = [item for item, other in zip(page, there, strict=True) if item != other]
            await self._write(items)
            self.items += len(page)
            self.nodes += sum("tier" in item for item in page)
            self.on_items(len(page))
            await asyncio.sleep(0)  # SQLite never waits, so Ctrl-C is served here
        return versions

    async def _remove_others(self, source: Store) -> None:
        async for page in self.target.scan(self._reads):
            there = await source.get([key_of(item) for item in page], self._reads, strong=True)
            gone = [item for item, other in zip(page, there, strict=True) if other is None]
            await self._write(gone, lambda item: Delete(key_of(item)))

    async def _write(self, items: Sequence[Item], change: Callable[[Item], Change] = Put) -> None:
        """Write one change for each item, in some transactions at a time."""
        permits = asyncio.Semaphore(COMMITS_AT_ONCE)

        async def commit(changes: Sequence[Change]) -> None:
            async with permits:
                await self.target.commit(changes)

        steps = (Step(None, [change(item)], size_of(item)) for item in items)
        async with task_group() as group:
            for changes, _ in in_transactions(steps, self.target.max_changes):
                group.create_task(commit(changes))

    async def _check_unchanged(self, before: Versions, found: Versions) -> None:
        """Raise Unavailable unless the tree versions are the same before, during and after the copy."""
        for version in await tree_versions(self.source, sorted({*before, *found}), self._reads):
            partition = version.partition
            if len({before.get(partition), found.get(partition), version.number or None}) > 1:
                name = format_path(path_of(partition, "#")) if "#" in partition else partition
                raise Unavailable(
                    f"{shorten(name)} was written to during the copy, so the copy is not complete. Copy again while "
                    "nobody writes (CLADE_WRITES=off), or copy a table that was restored to a point in time."
                )


def _note_versions(page: Sequence[Item], versions: Versions) -> None:
    """Note the tree versions on a page, and None for the hierarchies of ids, whose roots may have none.

    Raises Conflict where a version lists a running move.
    """
    for item in page:
        pk = cast(str, item["pk"])
        if item["sk"] == _VERSION_SORT_KEY:
            version = TreeVersion.of(pk, item)
            for move in version.moves:
                raise Conflict(f"{move.refusal(move.source)} clade repair finishes an abandoned move.")
            versions[pk] = version.number
        elif pk.startswith(_ID) and ":" in pk:
            versions.setdefault(pk[len(_ID) : pk.index(":")], None)


async def put_back(store: SQLiteStore, file: Path) -> list[ApiKey]:
    """Put a backup back, in which API keys that the store knows as revoked stay revoked.

    Returns the valid keys that the store did not know, so that they may have been revoked since. Raises BadInput,
    Damaged or WrongLayout for a file that is no backup, and then changes nothing.
    """
    async with AsyncExitStack() as stack, SQLiteStore(str(file)) as backup:
        keys, now = _keys(await _key_items(backup)).values(), store.now()
        valid = [key for key in keys if key.revoked_at is None and (key.until is None or now < key.until)]
        part = file
        while True:
            held = await _key_items(store)
            there = _keys(held)
            revoked = [there[key.id] for key in valid if key.id in there and there[key.id].revoked_at is not None]
            if revoked:
                if part == file:  # changed before it is put back: servers never accept these keys
                    part = await _copied(backup, stack, Path(store.path).parent)
                async with SQLiteStore(str(part)) as changed:
                    await changed.commit([Put(key.item()) for key in revoked])
            with suppress(Conflict):  # where keys were made or revoked meanwhile
                await store.put_back(part, None if held is None else (KEYS, held))
                return [key for key in valid if key.id not in there]


async def _copied(backup: SQLiteStore, stack: AsyncExitStack, folder: Path) -> Path:
    """A copy of a backup, which ends with the stack. Raises WrongLayout and Damaged."""
    await backup.health()
    part = Path(stack.enter_context(TemporaryDirectory(prefix=".clade-restore-", dir=folder))) / "backup.db"
    await backup.back_up(part)
    return part


async def _key_items(store: SQLiteStore) -> list[Item] | None:
    """The items of all API keys; None of a store that cannot be read, which may be why it is restored."""
    try:
        return await store.range(KEYS, ReadUsage(), strong=True)
    except CladeError:
        return None


def _keys(items: Sequence[Item] | None) -> dict[str, ApiKey]:
    """The keys in items, without damaged ones."""
    found: dict[str, ApiKey] = {}
    for item in items or ():
        with suppress(DamagedItem):
            key = ApiKey.of(item)
            found[key.id] = key
    return found
