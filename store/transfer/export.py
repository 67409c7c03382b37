"""Bringing nodes out of the table, in path order, a page at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from typing import cast

from store.edits.reader import Reader
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Unavailable
from store.metadata.change_log import Event, LogEntry
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.items import Item, key_of
from store.model.keys import (
    Index,
    Key,
    Path,
    hierarchy_of,
    node_key,
    tree_version_key,
)
from store.model.paths import format_path, parse_path
from store.model.ranges import KeyRange, siblings, subtree
from store.model.records import Record
from store.model.undefined_values import Undefined
from store.reading.change_feed import transactions
from store.text import shorten
from store.transfer.formats.jsonl import line_of

PAGE_ITEMS = 1000
LOG_PAGE_ITEMS = 50  # an item of the log may have 300 KB
INDEX_WAITS = 20  # how often the list of roots is read again while the index trails behind the table
INDEX_WAIT_SECONDS = 0.25


async def export(
    store: Store, hierarchy: Hierarchy, path: Path | None = None, *, undefined: Undefined | None = None
) -> AsyncIterator[bytes]:
    """The lines of all nodes of a hierarchy, or of a node and all below it; import takes them back.

    A node's line has all of its attributes, those apart that its level does not define; `undefined` counts them. It has
    its rank where a hand gave it one. From SQLite it is as of one moment. Elsewhere each
    page is as the table is when it is read, so what is written meanwhile may be in it or not, and what large moves hide
    is not. Raises Damaged where the store is not whole, BadInput where the path leads to no node, and at its end
    Unavailable where nodes of it were moved meanwhile, since they can be in it twice or not at all.
    """
    reads, lacking = ReadUsage(), undefined or Undefined(hierarchy)
    async with store.snapshot() or nullcontext(store) as seen:
        await seen.check_integrity()
        if path is not None:
            spans = [await _span_at(seen, hierarchy, path, reads)]
        else:
            spans = [subtree(pk, "#") for pk in await _trees(seen, hierarchy, reads)]
        trees = [span.partition for span in spans]
        before = await _stamps(seen, trees, reads)
        for span in spans:
            async for page in _pages(seen, span, reads):
                yield b"".join([_line(hierarchy, Record.of(item), lacking) for item in page])
        for span, then, now in zip(spans, before, await _stamps(seen, trees, reads), strict=True):
            if now.number != then.number:
                await _check_moves(seen, then, Key(span.partition, span.lo), reads)


async def count(store: Store, hierarchy: Hierarchy, path: Path | None = None) -> int:
    """How many nodes an export will have, by the counts that are kept; 0 where there is no such node."""
    reads = ReadUsage()
    if path is not None:
        (item,) = await store.get([node_key(hierarchy.name, path)], reads)
        return 1 + sum(Record.of(item).below.values()) if item else 0
    total = 0
    async for page in _pages(store, siblings(hierarchy.name), reads):
        total += sum(1 + sum(Record.of(item).below.values()) for item in page)
    return total


async def _stamps(store: Store, trees: Sequence[str], reads: ReadUsage) -> list[TreeVersion]:
    items = await store.get(list(map(tree_version_key, trees)), reads, strong=True)
    return [TreeVersion.of(*one) for one in zip(trees, items, strict=True)]


async def _check_moves(store: Store, then: TreeVersion, top: Key, reads: ReadUsage) -> None:
    """Raise Unavailable where anything was moved within, into, out of or with a subtree since its tree's stamp was
    read.
    """
    number = then.number
    while found := await transactions(store, then.partition, number, LOG_PAGE_ITEMS, reads):
        for entry in [entry for one in found for entry in one.entries]:
            if entry.event is Event.MOVED and entry.source != entry.target and _concerns(entry, top):
                raise Unavailable(
                    f"{shorten(str(entry.source))} was moved to {shorten(str(entry.target))} while it was exported, so "
                    "that it can be in the export twice or not at all; export again."
                )
        number = found[-1].number


def _concerns(moved: LogEntry, top: Key) -> bool:
    """Whether a move began or ended at, above or below a node."""
    places = [node_key(hierarchy_of(top.pk), parse_path(cast(str, path))) for path in (moved.source, moved.target)]
    return any(place.holds(top) or top.holds(place) for place in places)


async def _span_at(store: Store, hierarchy: Hierarchy, path: Path, reads: ReadUsage) -> KeyRange:
    key = node_key(hierarchy.name, path)
    hidden = await _hidden(store, key.pk, reads)
    (item,) = await store.get([key], reads, strong=True)
    if item is None or any(top.holds(key) for top in hidden):
        raise BadInput(f'{hierarchy.name} has no node "{shorten(format_path(path), 200)}".')
    return subtree(key.pk, key.sk)


async def _trees(store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> list[str]:
    """The partitions of all trees in path order.

    Only an index lists the roots, and it may trail behind, so the hierarchy's stamp must agree with what it lists.
    """
    for _ in range(INDEX_WAITS):
        (item,) = await store.get([tree_version_key(hierarchy.name)], reads, strong=True)
        expected = sum(TreeVersion.of(hierarchy.name, item).shape.values())
        found = [
            cast(str, item["pk"])
            async for page in _pages(store, siblings(hierarchy.name), reads)
            for item in page
        ]  # fmt: skip
        if len(found) == expected:
            return sorted(found)
        await asyncio.sleep(INDEX_WAIT_SECONDS)
    raise Unavailable(
        f"The list of roots shows {len(found)} while there are {expected}; export again later, or run: clade check"
    )


async def _pages(store: Store, span: KeyRange, reads: ReadUsage) -> AsyncIterator[list[Item]]:
    """All items of a span that are seen; as of now in the table's own order, the only one that can be read so.

    What moves hide is asked before each page, for they are begun and flip while pages are written out.
    """
    strong = span.index is Index.TABLE
    while True:
        hidden = await _hidden(store, span.partition, reads)
        page = await store.range(span, reads, limit=PAGE_ITEMS, strong=strong)
        yield [item for item in page if not any(top.holds(key_of(item)) for top in hidden)]
        if len(page) < PAGE_ITEMS:
            return
        span = span.after(cast(str, page[-1][span.index.sort]))


async def _hidden(store: Store, partition: str, reads: ReadUsage) -> frozenset[Key]:
    """The tops of what moves under way hide in a tree, or among the roots of a hierarchy."""
    reader = Reader(store, reads)
    return await reader.hidden(await reader.seen([partition], []), partition)


def _line(hierarchy: Hierarchy, record: Record, undefined: Undefined) -> bytes:
    others = undefined.see(record.level, record.attributes)
    attributes = {name: value for name, value in record.attributes.items() if name not in others}
    is_defined = record.level in hierarchy.levels
    return line_of(record, attributes, None if is_defined and not others else others)
