"""Export: the nodes of a hierarchy or a subtree as JSON lines, in path order, a page at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from typing import cast

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Unavailable
from store.metadata.change_log import Event, LogEntry
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.items import Item
from store.model.keys import Index, Key, Path, hierarchy_of, node_key
from store.model.paths import format_path, parse_path
from store.model.ranges import KeyRange, siblings, subtree
from store.model.records import Record
from store.model.undefined_values import Undefined
from store.reading.active_moves import ActiveMoves, active_moves
from store.reading.change_feed import transactions
from store.reading.pages import LOG_PAGE_ITEMS, Pages
from store.reading.tree_versions import tree_version, tree_versions
from store.text import shorten
from store.transfer.formats.jsonl import line_of

INDEX_WAITS = 20  # how often the list of roots is read again while the index is behind the table
INDEX_WAIT_SECONDS = 0.25


async def export(
    store: Store, hierarchy: Hierarchy, path: Path | None = None, *, undefined: Undefined | None = None
) -> AsyncIterator[bytes]:
    """The lines of all nodes of a hierarchy, or of a node and all below it; an import reads them.

    A line has all attributes of its node, with those apart that its level does not define (counted in `undefined`), and
    its rank if it was reordered. An export from SQLite is of one moment. Elsewhere each page is as the table is when it
    is read: concurrent writes may be in it or not, and what running moves hide is not. Raises Damaged where the engine
    finds the table damaged, BadInput where there is no node at the path, and at its end Unavailable where nodes were
    moved meanwhile, since they can be in it twice or not at all.
    """
    reads, undefined = ReadUsage(), undefined or Undefined(hierarchy)
    async with store.snapshot() or nullcontext(store) as source:
        await source.check_integrity()
        if path is not None:
            ranges = [await _subtree_at(source, hierarchy, path, reads)]
        else:
            ranges = [subtree(pk, "#") for pk in await _trees(source, hierarchy, reads)]
        trees = [key_range.partition for key_range in ranges]
        before = await tree_versions(source, trees, reads)
        for key_range in ranges:
            async for page in _visible_pages(source, key_range, reads):
                yield b"".join([_line(hierarchy, Record.of(item), undefined) for item in page])
        after = await tree_versions(source, trees, reads)
        for key_range, then, now in zip(ranges, before, after, strict=True):
            if now.number != then.number:
                await _check_moves(source, then, Key(key_range.partition, key_range.lo), reads)


async def count(store: Store, hierarchy: Hierarchy, path: Path | None = None) -> int:
    """The number of nodes of an export, by the stored counts; 0 where there is no such node."""
    reads = ReadUsage()
    if path is not None:
        (item,) = await store.get([node_key(hierarchy.name, path)], reads)
        return 1 + sum(Record.of(item).below.values()) if item else 0
    total = 0
    async for page in _visible_pages(store, siblings(hierarchy.name), reads):
        total += sum(1 + sum(Record.of(item).below.values()) for item in page)
    return total


async def _check_moves(store: Store, then: TreeVersion, top: Key, reads: ReadUsage) -> None:
    """Raise Unavailable where any move since a tree version began or ended at, above or below a node."""
    number = then.number
    while found := await transactions(store, then.partition, number, LOG_PAGE_ITEMS, reads):
        for entry in [entry for transaction in found for entry in transaction.entries]:
            if entry.event is Event.MOVED and entry.source != entry.target and _concerns(entry, top):
                raise Unavailable(
                    f"{shorten(str(entry.source))} was moved to {shorten(str(entry.target))} during the export, so it "
                    "can be in the export twice or not at all; export again."
                )
        number = found[-1].number


def _concerns(moved: LogEntry, top: Key) -> bool:
    """Whether a move began or ended at, above or below a node."""
    keys = [node_key(hierarchy_of(top.pk), parse_path(cast(str, path))) for path in (moved.source, moved.target)]
    return any(key.holds(top) or top.holds(key) for key in keys)


async def _subtree_at(store: Store, hierarchy: Hierarchy, path: Path, reads: ReadUsage) -> KeyRange:
    key = node_key(hierarchy.name, path)
    moves = await _moves(store, key.pk, reads)
    (item,) = await store.get([key], reads, strong=True)
    if item is None or moves.hide(key):
        raise BadInput(f'{hierarchy.name} has no node "{shorten(format_path(path), 200)}".')
    return subtree(key.pk, key.sk)


async def _trees(store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> list[str]:
    """The partitions of all trees in path order.

    Only an index lists the roots, and it may be behind the table, so the version of the roots has to agree with it.
    """
    for _ in range(INDEX_WAITS):
        expected = sum((await tree_version(store, hierarchy.name, reads)).shape.values())
        found = [
            cast(str, item["pk"])
            async for page in _visible_pages(store, siblings(hierarchy.name), reads)
            for item in page
        ]  # fmt: skip
        if len(found) == expected:
            return sorted(found)
        await asyncio.sleep(INDEX_WAIT_SECONDS)
    raise Unavailable(
        f"The index lists {len(found)} roots, expected {expected}; export again later, or run: clade check"
    )


async def _visible_pages(store: Store, key_range: KeyRange, reads: ReadUsage) -> AsyncIterator[Sequence[Item]]:
    """The items of a range without what moves hide; that is read before each page, since moves go on meanwhile."""
    pages = Pages(store, key_range, reads, strong=key_range.index is Index.TABLE)
    while pages.has_next:
        moves = await _moves(store, key_range.partition, reads)
        yield moves.visible(await pages.next())


async def _moves(store: Store, partition: str, reads: ReadUsage) -> ActiveMoves:
    """The running moves of a tree, or of the roots of a hierarchy."""
    return await active_moves(store, (await tree_version(store, partition, reads)).moves, reads)


def _line(hierarchy: Hierarchy, record: Record, undefined: Undefined) -> bytes:
    others = undefined.see(record.level, record.attributes)
    attributes = {name: value for name, value in record.attributes.items() if name not in others}
    is_defined = record.level in hierarchy.levels
    return line_of(record, attributes, None if is_defined and not others else others)
