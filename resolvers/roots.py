"""Roots: from a hierarchy to the roots of its trees.

| field | index | key condition | requests |
| --- | --- | --- | --- |
| `locations` | `by_parent` | `parent = "location"` | one |
| `locations(level: COUNTRY)` | `by_parent` | the same, `begins_with(rank, "COUNTRY#")` | one |
| `locations(level: [COUNTRY, REGION])` | `by_parent` | the same of each level | one a level |
| `locations { totalCount }` | – | the version of the hierarchy, by key | one, in the same round |
| `locations { nodes { descendantCount } }` | – | the versions of all trees listed, by key | one more |
| `locations` of who may read a part | table | keys of her grant roots and of their trees' versions | one round |

Those by key are BatchGetItems of up to 100 keys. Lists below the roots read the same versions. Every list of all roots
reads the version of the hierarchy, which names the moves from and to roots: in the same round, on SQLite before it.

A caller who may read a part has her grant roots in place of the roots. Their keys follow from the grants, so no Query
reads what is beside them; and their order is by level, key and path, since an order that an editor has given to
siblings would disclose hidden ones.

No dataloader batches it: a hierarchy has one list of roots.
"""

from collections.abc import Awaitable, Container, Sequence
from dataclasses import replace
from typing import cast

from resolvers.access.grants import grant_roots
from resolvers.lists.arguments import CursorKind, ListCursors, Page, Relation, by_rank, page_of
from resolvers.session.budget import TooManyNodes, raise_first_error
from resolvers.session.reads import ReadState
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from resolvers.sorting.conditions import path_position
from resolvers.sorting.ordering import PlaceOrder
from store.engine import ReadUsage, Store
from store.metadata.tree_version import StoredVersion, by_level
from store.model.decoding import decoded
from store.model.keys import HIERARCHIES, Path, first_rank, last_segment, node_key, siblings
from store.model.records import Record


async def undefined_hierarchies(store: Store, defined: Container[str], reads: ReadUsage) -> list[str]:
    """The hierarchies that have nodes in the store and are not among the defined ones; one Query."""
    versions = [item for item in await store.range(HIERARCHIES, reads) if item["pk"] not in defined]
    return [cast(str, item["pk"]) for item in versions if any(decoded(item, StoredVersion).shape.values())]


async def read_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    """A page of a hierarchy's roots, neither sorted nor filtered, or of the caller's grant roots.

    One Query; `totalCount` is in the version of the hierarchy. Raises BadCursor, BudgetExceeded and the error of a
    failed read.
    """
    tops = grant_roots(request.grants, hierarchy)
    if tops is not None:
        return await _read_grant_roots(request, hierarchy, relation, tops)
    cache_key = "roots", hierarchy, relation.page_key
    page: Page | None = request.state.pages.get(None, cache_key)
    if page is not None:
        request.budget.spend_nodes(len(page.records), compared=relation.arguments.compared)
        request.state.partitions_read.update([hierarchy, *[record.pk for record in page.records]])
        if request.reads.trace is not None:
            request.reads.trace.pages += 1
        return page
    page = await _read(request, hierarchy, relation)
    request.state.pages.put(None, cache_key, page, len(page.records))
    return page


async def _read(request: Request, hierarchy: str, relation: Relation) -> Page:
    state, arguments = request.state, relation.arguments
    left = request.budget.left(compared=arguments.compared)
    limit = left + 2  # the number of roots is not known before they are read
    cursors = ListCursors(CursorKind.ROOTS, hierarchy, by_rank)
    # `parent = :hierarchy` in `by_parent`, with a level `begins_with(rank, "COUNTRY#")`, from cursor to cursor.
    spans = [
        arguments.between_cursors(siblings(hierarchy, level), cursors.decode) for level in arguments.levels or (None,)
    ]
    limit, reverse = min(arguments.limit or limit, limit), arguments.descending
    request.scheduler.expect(arguments.limit or 0)
    state.partitions_read.add(hierarchy)
    calls: list[Awaitable[object]] = [state.versions_of([hierarchy])] if relation.total else []
    if relation.nodes and state.records_read.in_ranges(spans, limit, reverse=reverse) is None:
        calls += [state.range(Read(span, limit, reverse)) for span in spans]
    await request.scheduler.gather_all(calls)
    total = None
    if relation.total:
        version = (await state.versions_of([hierarchy]))[hierarchy]
        if isinstance(version, Exception):
            raise version
        total = sum(count for level, count in by_level(version.shape).items() if arguments.has_level(level))
    if not relation.nodes:
        return Page([], total=total)
    records = state.records_read.in_ranges(spans, limit, reverse=reverse) or []
    state.partitions_read.update([record.pk for record in records])
    shown, what = len(records[: arguments.size]), f"The roots of {hierarchy}"
    if shown > left:
        raise TooManyNodes(what, None, left, compared=arguments.compared)
    request.budget.spend_nodes(shown, what, compared=arguments.compared)
    page = page_of(records, arguments, total, cursors)
    return replace(page, records=await with_counts(state, page.records)) if relation.counts else page


async def _read_grant_roots(request: Request, hierarchy: str, relation: Relation, tops: Sequence[Path]) -> Page:
    """A page of the caller's grant roots; the position in a cursor is by level, key and path, or by path alone."""
    arguments, by_path = relation.arguments, relation.arguments.ordering.place in (PlaceOrder.KEY, PlaceOrder.PATH)
    position = path_position if by_path else _level_key_path
    cursors = ListCursors(CursorKind.ROOTS, hierarchy, position)
    found = await request.state.nodes([node_key(hierarchy, top) for top in tops])
    raise_first_error(found.values())
    existing = [one for one in found.values() if isinstance(one, Record) and arguments.has_level(one.level)]
    lo, hi = arguments.positions(cursors.decode)
    page = [
        record
        for record in sorted(existing, key=position, reverse=arguments.descending)
        if (lo is None or lo < position(record)) and (hi is None or position(record) < hi)
    ][: arguments.limit]
    request.budget.spend_nodes(len(page[: arguments.size]), f"The roots of {hierarchy}", compared=arguments.compared)
    return page_of(page, arguments, len(existing) if relation.total else None, cursors)


def _level_key_path(record: Record) -> str:
    return first_rank(record.level, last_segment(*record.key)) + path_position(record)


async def with_counts(state: ReadState, records: list[Record]) -> list[Record]:
    """The same nodes, those that are roots out of a list with the counts of their descendants. Raises the error of a
    failed read.

    Every field that may lead to such roots calls this where `descendantCount` is selected.
    """
    roots = [one.pk for one in records if one.is_root and one.below is None]
    if not roots:
        return records
    raise_first_error((await state.versions_of(roots)).values())
    return [state.counted(one) for one in records]
