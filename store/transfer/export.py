"""Export: the nodes of a hierarchy or a subtree as JSON lines, in path order, a page at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext
from typing import cast

import orjson

from store.engine import ReadUsage, Store
from store.errors import BadInput, Unavailable, shorten
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy, Undefined
from store.model.keys import Index, Key, KeyRange, Path, hierarchy_of, node_key, siblings, subtree, tree_key
from store.model.names import NAMES, are_names
from store.model.paths import format_path, parse_path
from store.model.ranks import manual_part
from store.model.records import Item, Record, key_of
from store.model.values import Value
from store.reading import LOG_PAGE_ITEMS, ActiveMoves, Pages, active_moves, transactions, tree_version, tree_versions

INDEX_WAITS = 20  # how often the list of roots is read again while the index is behind the table
INDEX_WAIT_SECONDS = 0.25


def json_line(fields: dict[str, object]) -> bytes:
    """The line of JSON of a node."""
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


async def export(
    store: Store,
    hierarchy: Hierarchy,
    path: Path | None = None,
    *,
    undefined: Undefined | None = None,
    line: Callable[[dict[str, object]], bytes] = json_line,
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
        tops = await root_keys(source, hierarchy, reads) if path is None else [node_key(hierarchy.name, path)]
        trees = [top.pk for top in tops]
        if path is not None:
            moves = await _moves(source, tops[0].pk, reads)
            if await source.get(tops, reads, strong=True) == [None] or moves.hide(tops[0]):
                raise BadInput(f'{hierarchy.name} has no node "{shorten(format_path(path), 200)}".')
        before = await tree_versions(source, trees, reads)
        for top in tops:
            async for page in _visible_pages(source, subtree(*top), reads):
                yield b"".join([line(_fields(hierarchy, Record.of(item), undefined)) for item in page])
        after = await tree_versions(source, trees, reads)
        for top, then, now in zip(tops, before, after, strict=True):
            if now.number != then.number:
                await _check_moves(source, then, top, reads)


async def count(store: Store, hierarchy: Hierarchy, path: Path | None = None) -> int:
    """The number of nodes of an export, by the stored counts; 0 where there is no such node."""
    reads = ReadUsage()
    if path is not None and len(path) > 1:
        (item,) = await store.get([node_key(hierarchy.name, path)], reads)
        return Record.of(item).subtree_size if item else 0
    if path is None:
        pages = _visible_pages(store, siblings(hierarchy.name), reads)
        trees = [cast(str, item["pk"]) async for page in pages for item in page]
    else:
        trees = [tree_key(hierarchy.name, path)]
    return sum(sum(version.shape.values()) for version in await tree_versions(store, trees, reads))


async def _check_moves(store: Store, then: TreeVersion, top: Key, reads: ReadUsage) -> None:
    """Raise Unavailable where any move since a tree version began or ended at, above or below a node."""
    number = then.number
    while found := await transactions(store, then.partition, number, LOG_PAGE_ITEMS, reads):
        for entry in [entry for transaction in found for entry in transaction.entries]:
            ends = (entry.source, entry.target) if entry.source != entry.target else ()
            keys = [node_key(hierarchy_of(top.pk), parse_path(cast(str, path))) for path in ends]
            if any(key.holds(top) or top.holds(key) for key in keys):
                raise Unavailable(
                    f"{shorten(str(entry.source))} was moved to {shorten(str(entry.target))} during the export, so it "
                    "can be in the export twice or not at all; export again."
                )
        number = found[-1].number


async def root_keys(store: Store, hierarchy: Hierarchy, reads: ReadUsage) -> list[Key]:
    """The keys of all roots in path order.

    Only an index lists the roots, and it may be behind the table, so the version of the roots has to agree with it.
    """
    for _ in range(INDEX_WAITS):
        expected = sum((await tree_version(store, hierarchy.name, reads)).shape.values())
        pages = _visible_pages(store, siblings(hierarchy.name), reads)
        found = [key_of(item) async for page in pages for item in page]
        if len(found) == expected:
            return sorted(found)
        await asyncio.sleep(INDEX_WAIT_SECONDS)
    raise Unavailable(
        f"The index lists {len(found)} roots, expected {expected}; export again later, or run: clade check"
    )


async def _visible_pages(store: Store, key_range: KeyRange, reads: ReadUsage) -> AsyncIterator[Sequence[Item]]:
    """The items of a range without what moves hide; that is read before each page, since moves continue meanwhile."""
    pages = Pages(store, key_range, reads, strong=key_range.index is Index.TABLE)
    while pages.has_next:
        moves = await _moves(store, key_range.partition, reads)
        yield moves.visible(await pages.next())


async def _moves(store: Store, partition: str, reads: ReadUsage) -> ActiveMoves:
    """The running moves of a tree, or of the roots of a hierarchy."""
    return await active_moves(store, (await tree_version(store, partition, reads)).moves, reads)


def _fields(hierarchy: Hierarchy, record: Record, undefined: Undefined) -> dict[str, object]:
    """The fields of a node's line, with the attributes that its level does not define apart."""
    others = undefined.see(record.level, record.attributes)
    level = hierarchy.any_level(record.level)
    attributes = level.current(record.attributes)
    names = [*(name for name in level.attributes if name in attributes), *sorted({*attributes} - {*level.attributes})]
    fields: dict[str, object] = {
        "path": record.path, "level": level.label, "name": record.name,
        "id": record.id.removeprefix(f"{record.hierarchy}:"),
        **{name: _sorted(attributes[name]) for name in names if name not in others},
    }  # fmt: skip
    if are_names(translated := record.attributes.get(NAMES)):
        fields[NAMES] = _sorted(translated)
    if (rank := manual_part(record.level, record.rank)) is not None:
        fields["rank"] = rank
    if others or record.level not in hierarchy.levels:
        fields["undefined"] = _sorted(others)
    return fields


def _sorted(value: Value) -> Value:
    """A value whose objects have their fields in alphabetical order, since DynamoDB returns them in any order."""
    if isinstance(value, dict):
        return {name: _sorted(one) for name, one in sorted(value.items())}
    return [_sorted(one) for one in value] if isinstance(value, list) else value
