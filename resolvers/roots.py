"""Roots: from a hierarchy to the roots of its trees.

| field | index | key condition | requests |
| --- | --- | --- | --- |
| `locations` | `by_parent` | `parent = "location"` | one |
| `locations(level: COUNTRY)` | `by_parent` | the same, `begins_with(rank, "COUNTRY#")` | one |
| `locations { totalCount }` | – | the version of the hierarchy, by key | one, in the same round |

No dataloader batches it: a hierarchy has one list of roots. For callers with grants see `restricted_lists.py`.
"""

from collections.abc import Awaitable
from dataclasses import dataclass

from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.cursors import CursorKind, ListCursors, decode_cursor
from resolvers.planning.page import Page, page_of
from resolvers.session.outcomes import gather_outcomes, raise_first_error
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from store.model.ranges import KeyRange, siblings


@dataclass(frozen=True)
class RootsRequest:
    """The roots of a hierarchy in their order, with the arguments of the field."""

    hierarchy: str
    window: ConnectionArguments
    nodes: bool
    total: bool

    def key_range(self) -> KeyRange:
        """`parent = :hierarchy` in `by_parent`, with a level `begins_with(rank, "COUNTRY#")`, from cursor to cursor."""
        span = siblings(self.hierarchy, self.window.level)
        return self.window.between_cursors(span, lambda cursor: decode_cursor(cursor, CursorKind.ROOTS, self.hierarchy))


async def read_roots(
    request: Request, hierarchy: str, window: ConnectionArguments, *, nodes: bool, total: bool
) -> Page:
    """A page of a hierarchy's roots: one Query; `totalCount` is in the version of the hierarchy."""
    requested = RootsRequest(hierarchy, window, nodes, total)
    page: Page | None = request.state.cached(requested)
    if page is not None:
        request.budget.spend_nodes(len(page.records))
        return page
    page = await _read(request, requested)
    request.state.cache(requested, page, len(page.records))
    return page


async def _read(request: Request, requested: RootsRequest) -> Page:
    state, hierarchy, window = request.state, requested.hierarchy, requested.window
    limit = request.budget.nodes_left + 2  # the number of roots is not known before they are read
    read = Read(requested.key_range(), min(window.limit or limit, limit), window.descending)
    request.slot.expect(window.limit or 0)
    state.partitions_read.add(hierarchy)
    calls: list[Awaitable[object]] = [state.versions_of([hierarchy])] if requested.total else []
    if requested.nodes and state.records_read.in_range(read.span, read.limit, reverse=read.reverse) is None:
        calls.append(state.range(read))
    raise_first_error(await gather_outcomes(calls))
    total = None
    if requested.total:
        version = (await state.versions_of([hierarchy]))[hierarchy]
        if isinstance(version, Exception):
            raise version
        total = sum(count for level, count in version.levels().items() if window.level in (None, level))
    if not requested.nodes:
        return Page([], total=total)
    records = state.records_read.in_range(read.span, read.limit, reverse=read.reverse) or []
    state.partitions_read.update([record.pk for record in records])
    request.budget.spend_nodes(len(records[: window.size]), f"The roots of {hierarchy}")
    return page_of(records, window, total, ListCursors(CursorKind.ROOTS, hierarchy, None))
