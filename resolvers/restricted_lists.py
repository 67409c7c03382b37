"""Lists of nodes that are seen only in part: what is in them follows from the grants, by lookups of keys.

Below a node that is granted everything is, so its lists are read like any. Above the grants a list holds stubs and the
tops of what is granted, and no query is made that would meet their neighbours. Cursors and order tell nothing of these
either: the order is that of levels and keys, never where a hand has put a node among its siblings.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from resolvers import pages as whole
from resolvers.access.grants import Grants, Visibility, highest
from resolvers.access.redacted_node import RedactedNode
from resolvers.pages import Page, paged
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.cursors import (
    CursorKind,
    ListCursors,
    decode_cursor,
    encode_cursor,
)
from resolvers.planning.list_request import ListRequest
from resolvers.planning.relations import Relation, RelationKind
from resolvers.session.request import Request
from store.errors import Forbidden
from store.model.keys import (
    Index,
    Path,
    first_rank,
    last_segment,
    node_key,
)
from store.model.paths import format_path
from store.model.ranges import KeyRange, segments_between, subtree
from store.model.records import Record
from store.text import shorten


def have_lists(request: Request, owners: Sequence[Record]) -> Sequence[object]:
    """For each node whether anything may lie below it; of the others their own counts tell that nothing does."""
    if request.version is not None and request.grants is None:
        return [owner.kids for owner in owners]
    # Of a stub nothing is told, and where indexes trail behind a move's flip a root's counts need its tree's stamp.
    return [isinstance(owner, RedactedNode) or owner.is_root or owner.kids for owner in owners]


async def lists(request: Request, jobs: Sequence[ListRequest]) -> list[Page | Exception]:
    """The pages of many lists, in order, of what the request's grants let see; what fails is an error in its place."""
    grants = request.grants
    partial = [] if grants is None else [job for job in jobs if _is_partial(grants, job)]
    if not partial or grants is None:
        return await whole.lists(request, jobs)
    results: dict[ListRequest, Page | Exception] = {}
    families = _Families(request, grants)
    calls = [_partly(families, job) for job in partial]
    for job, outcome in zip(partial, await request.together(calls), strict=True):
        if not isinstance(outcome, Page | Exception):
            raise outcome
        results[job] = outcome
    rest = [job for job in jobs if job not in results]
    results.update(zip(rest, await whole.lists(request, rest), strict=True))
    return [results[job] for job in jobs]


async def roots(request: Request, hierarchy: str, window: ConnectionArguments, *, nodes: bool, total: bool) -> Page:
    """A hierarchy's roots in their order, of those that the request's grants let see."""
    if request.grants is None or () in request.grants.tops(hierarchy):
        return await whole.roots(request, hierarchy, window, nodes=nodes, total=total)
    family = await _Families(request, request.grants).of(hierarchy, ())
    return _family_page(request, family, _Family(window, hierarchy))


def _is_partial(grants: Grants, job: ListRequest) -> bool:
    """Whether a list may hold what is not granted, or is that of a stub."""
    is_beside = job.relation.kind is RelationKind.SIBLINGS
    return isinstance(job.owner, RedactedNode) or (
        is_beside and grants.sight(job.owner.hierarchy, job.owner.path[:-1]) is not Visibility.WHOLE
    )


async def _partly(families: "_Families", job: ListRequest) -> Page:
    request, owner = families.request, job.owner
    if job.relation.total and isinstance(owner, RedactedNode):
        raise Forbidden(f"Only what lies below {shorten(format_path(owner.path))} may be read, so nothing is counted.")
    if job.relation.kind is RelationKind.DESCENDANTS:
        return await _descendants(request, families.grants, job)
    is_beside = job.relation.kind is RelationKind.SIBLINGS
    family = await families.of(owner.hierarchy, owner.path[:-1] if is_beside else owner.path)
    others = [record for record in family if record.key != owner.key]
    return _family_page(request, others, _Family(job.window, format_path(owner.path), job.order, owner.sk))


# -- the children of one node, or the roots ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Family:
    """A list of siblings: its cursors are places in the order of levels and keys, or of keys alone."""

    window: ConnectionArguments
    owner: str
    order: CursorKind = CursorKind.ROOTS
    sk: str = ""

    def position(self, record: Record) -> str:
        if self.order is CursorKind.CHILDREN_BY_KEY:
            return record.sk[len(self.sk) :]
        return _rank(record)

    def cursor(self, record: Record) -> str:
        return encode_cursor(self.order, self.owner, self.position(record))

    def holds(self, record: Record) -> bool:
        """Whether a record is in the list, whatever its page."""
        window = self.window
        if window.is_bounded:
            lo, hi = segments_between(self.sk, window.start, window.end)
            if not lo <= record.sk < hi:
                return False
        return window.level in (None, record.level)

    def bounds(self) -> tuple[str | None, str | None]:
        """The positions between which the page lies; raises BadCursor."""
        return _bounds(self.window, lambda cursor: decode_cursor(cursor, self.order, self.owner))


def _rank(record: Record) -> str:
    """The place that a node has among its siblings as long as no hand has given it another."""
    return first_rank(record.level, last_segment(record.pk, record.sk))


@dataclass
class _Families:
    """What is seen of the children of nodes that are not granted themselves, and of roots; each family is found once,
    for many may ask for the same.
    """

    request: Request
    grants: Grants
    _found: dict[tuple[str, Path], asyncio.Future[list[Record]]] = field(default_factory=dict)

    async def of(self, hierarchy: str, parent: Path) -> list[Record]:
        """A node's children, or a hierarchy's roots, in the order of levels and keys."""
        place = hierarchy, parent
        if place not in self._found:
            self._found[place] = asyncio.ensure_future(self._read(*place))
        return await self._found[place]

    async def _read(self, hierarchy: str, parent: Path) -> list[Record]:
        depth, tops = len(parent), self.grants.tops(hierarchy)
        below = {top[: depth + 1] for top in tops if len(top) > depth and top[:depth] == parent}
        found = await self.request.records([node_key(hierarchy, path) for path in sorted(below)])
        return sorted([record for record in found.values() if record is not None], key=_rank)


def _family_page(request: Request, records: Iterable[Record], family: _Family) -> Page:
    found = [record for record in records if family.holds(record)]
    if family.order is CursorKind.CHILDREN_BY_KEY:
        found.sort(key=family.position)
    lo, hi = family.bounds()
    window = family.window
    page = [
        record
        for record in (reversed(found) if window.descending else found)
        if (lo is None or lo < family.position(record)) and (hi is None or family.position(record) < hi)
    ][: window.limit]
    request.spend(len(page[: window.size]))
    return paged(page, window, len(found), family)


def _bounds(window: ConnectionArguments, position: Callable[[str], str]) -> tuple[str | None, str | None]:
    """Where a page begins and ends in the order of its list, as its cursors say."""
    after, before = [None if one is None else position(one) for one in (window.after, window.before)]
    return (before, after) if window.reverse else (after, before)


# -- the descendants of a stub -----------------------------------------------------------------------------------------


async def _descendants(request: Request, grants: Grants, job: ListRequest) -> Page:
    """The stubs below a stub, and what is granted with all below it, in path order."""
    listing = _Below(job)
    lines = [top for top in highest(grants.tops(job.owner.hierarchy)) if top[: len(job.owner.path)] == job.owner.path]
    paths = {top[:length] for top in lines for length in range(len(job.owner.path) + 1, len(top) + 1)}
    found = await request.records([node_key(job.owner.hierarchy, path) for path in paths])
    seen = sorted([record for record in found.values() if record is not None], key=lambda record: record.sk)
    parts = [part for record in seen for part in listing.parts(record)]
    records = await _read(request, parts[::-1] if job.window.descending else parts, job.window)
    return paged(records, job.window, None, ListCursors(CursorKind.DESCENDANTS, listing.name, len(job.owner.sk)))


async def _read(request: Request, parts: Sequence[Record | ListRequest], window: ConnectionArguments) -> list[Record]:
    """Nodes, and the lists between them, in reading order: all, or up to the limit and then nothing more."""
    if window.limit is None:
        jobs = [part for part in parts if isinstance(part, ListRequest)]
        pages = dict(zip(jobs, await whole.lists(request, jobs), strict=True))
        records = [one for part in parts for one in ([part] if isinstance(part, Record) else _all(pages[part], window))]
        request.spend(len(parts) - len(jobs))
        return records
    records = []
    for part in parts:
        if (rest := window.limit - len(records)) <= 0:
            break
        if isinstance(part, Record):
            request.spend(1)
            records.append(part)
        else:
            (page,) = await whole.lists(request, [_up_to(part, rest, window)])
            records += _all(page, window)
    return records


def _up_to(job: ListRequest, size: int, window: ConnectionArguments) -> ListRequest:
    """The first so many of a list, or the last where the page is read from its end."""
    asked = job.window
    first, last = (None, size) if window.descending else (size, None)
    cut = ConnectionArguments(first, asked.after, last, asked.before, asked.level, max_depth=asked.max_depth)
    return ListRequest(job.owner, Relation(RelationKind.DESCENDANTS, cut, job.relation.selection))


def _all(page: Page | Exception, window: ConnectionArguments) -> list[Record]:
    """A page's records in reading order; raises what stands in its place."""
    if isinstance(page, Exception):
        raise page
    return page.records[::-1] if window.descending else page.records


class _Below:
    """The list of a stub's descendants: which of them it holds, between its bounds and cursors."""

    def __init__(self, job: ListRequest) -> None:
        owner, window = job.owner, job.window
        self._job = job
        self.name = format_path(owner.path)
        after, before = _bounds(window, lambda cursor: decode_cursor(cursor, CursorKind.DESCENDANTS, self.name))
        span = KeyRange(Index.TABLE, owner.pk, *segments_between(owner.sk, window.start, window.end))
        span = span if after is None else span.after(owner.sk + after)
        self._span = span if before is None else span.before(owner.sk + before)

    def parts(self, record: Record) -> list[Record | ListRequest]:
        """What is in the list of a node below, which is a stub or granted: itself, and the list of all below it."""
        window, span, depth = self._job.window, self._span, record.depth - self._job.owner.depth
        parts: list[Record | ListRequest] = []
        is_there = span.lo <= record.sk < span.hi and window.level in (None, record.level)
        if is_there and (window.max_depth is None or depth <= window.max_depth):
            parts.append(record)
        deeper = None if window.max_depth is None else window.max_depth - depth
        whole = subtree(record.pk, record.sk)
        if (
            not isinstance(record, RedactedNode)
            and (deeper is None or deeper > 0)
            and span.lo < whole.hi
            and whole.lo < span.hi
        ):
            parts.append(ListRequest(record, self._relation(record, deeper)))
        return parts

    def _relation(self, top: Record, deeper: int | None) -> Relation:
        """What of the list lies below a node, as a list of its own. A bound inside its subtree is that of a cursor."""
        lo, hi, size = self._span.lo, self._span.hi, len(top.sk)
        after = lo[size:-1] if lo.startswith(top.sk) else ""
        before = hi[size:] if hi.startswith(top.sk) else ""
        window = ConnectionArguments(
            after=encode_cursor(CursorKind.DESCENDANTS, top.id, after) if after else None,
            before=encode_cursor(CursorKind.DESCENDANTS, top.id, before) if before else None,
            level=self._job.window.level,
            max_depth=deeper,
        )
        return Relation(RelationKind.DESCENDANTS, window, self._job.relation.selection)
