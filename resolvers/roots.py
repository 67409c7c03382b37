"""Roots: from a hierarchy to the roots of its trees.

| field | index | key condition | requests |
| --- | --- | --- | --- |
| `locations` | `by_parent` | `parent = "location"` | one |
| `locations(level: COUNTRY)` | `by_parent` | the same, `begins_with(rank, "COUNTRY#")` | one |
| `locations(level: [COUNTRY, REGION])` | `by_parent` | the same of each level | one a level |
| `locations { totalCount }` | – | the version of the hierarchy, by key | one, in the same round |
| `locations { nodes { descendantCount } }` | – | the versions of all trees listed, by key | one more |

That one is a BatchGetItem of up to 100 keys. Lists below the roots read the same versions. Every list of roots reads
the version of the hierarchy, which names the moves from and to roots: in the same round, on SQLite before it.

No dataloader batches it: a hierarchy has one list of roots. For callers with grants see `restricted_lists.py`.
"""

from collections.abc import Awaitable
from dataclasses import replace

from resolvers.access.grants import RedactedNode
from resolvers.lists.arguments import CursorKind, ListCursors, Page, Relation, by_rank, page_of
from resolvers.session.budget import TooManyNodes, gather_all, raise_first_error
from resolvers.session.reads import ReadState
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from store.metadata.tree_version import by_level
from store.model.keys import siblings
from store.model.records import Record


async def read_roots(request: Request, hierarchy: str, relation: Relation) -> Page:
    """A page of a hierarchy's roots: one Query; `totalCount` is in the version of the hierarchy."""
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
    await gather_all(calls)
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


async def with_counts(state: ReadState, records: list[Record]) -> list[Record]:
    """The same nodes, those that are roots out of a list with the counts of their descendants. Raises the error of a
    failed read.

    Every field that may lead to such roots calls this where `descendantCount` is selected.
    """
    roots = [one.pk for one in records if one.is_root and not isinstance(one, RedactedNode) and one.below is None]
    if not roots:
        return records
    raise_first_error((await state.versions_of(roots)).values())
    return [state.counted(one) for one in records]
