"""Lists of nodes: children, descendants and siblings of many nodes at once, and the roots of a hierarchy."""

from collections import defaultdict
from collections.abc import Awaitable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, cast

from resolvers.planner import Planner
from resolvers.planning.assemble import answer
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.cursors import CursorKind, ListCursors, decode_cursor
from resolvers.planning.list_request import ListRequest
from resolvers.session.budget import refusal
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from resolvers.total_count import others, parent_key, totals
from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.errors import CladeError
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, tree_version_key
from store.model.paths import format_path
from store.model.ranges import KeyRange, siblings
from store.model.records import Record
from store.text import shorten


class Cursors(Protocol):
    """A list that tells the cursors of its records."""

    def cursor(self, record: Record) -> str: ...


@dataclass(frozen=True)
class Page:
    """A part of a list: its records in the list's order, whether there are others, and how many there are in all.

    `cursors` belong to the records; `total` is None where it was not asked for.
    """

    records: list[Record]
    has_next: bool = False
    has_previous: bool = False
    total: int | None = None
    cursors: "Cursors | None" = None
    told: dict[int, tuple[bytes, int]] = field(default_factory=dict, compare=False)
    """What others have made of this page and would make again, by numbers of their own."""

    def cursor(self, record: Record) -> str:
        assert self.cursors is not None  # only an empty page has none  # noqa: S101
        return self.cursors.cursor(record)


async def lists(request: Request, jobs: Sequence[ListRequest]) -> list[Page | Exception]:
    """The pages of many lists, in order, read as `resolvers.planner` decides; what fails is an error in its place."""
    found: list[Page | Exception | None] = []
    is_exact = request.version is not None
    for start in range(0, len(jobs), CHUNK_LENGTH):
        found += [_at_once(request, job, is_exact=is_exact) for job in jobs[start : start + CHUNK_LENGTH]]
        if start:
            await yield_to_loop()
    asked = [job for job, page in zip(jobs, found, strict=True) if page is None]
    if not asked:
        return cast(list[Page | Exception], found)
    results = await _read(request, asked)
    for job in asked:
        if isinstance(page := results[job], Page):
            request.keep(_question(job), page, len(page.records))
    return [results[job] if page is None else page for job, page in zip(jobs, found, strict=True)]


def _at_once(request: Request, job: ListRequest, *, is_exact: bool) -> Page | Exception | None:
    """What the counts tell of a list, or what an earlier request has kept of it; None where it has to be read."""
    # A list of roots tells their counts without their trees' stamps, where indexes trail behind a move's flip.
    is_sure = is_exact or not job.owner.is_root
    if is_sure and job.is_empty and not job.window.is_narrow:
        return _UNCOUNTED if not job.relation.total else _NONE
    try:
        page: Page | None = request.recall(_question(job))
        if page is None:
            job.check()
        else:
            request.spend(len(page.records))
    except CladeError as error:
        return job.relation.shared(error)
    return page


# Most nodes of most trees have nothing below them.
_UNCOUNTED, _NONE = Page([]), Page([], total=0)


def _question(job: ListRequest) -> Hashable:
    """What a list is kept under: two jobs with the same question have the same page."""
    return job.owner.pk, job.owner.sk, job.relation.question


async def _read(request: Request, jobs: Sequence[ListRequest]) -> dict[ListRequest, Page | Exception]:
    """The same for lists that no earlier request has read."""
    stamps = await request.outcomes([], trees=[job.owner.pk for job in jobs])
    moves = request.moves
    if moves is None:
        return await _read_now(request, jobs, stamps)
    # An owner that an index has told may lie above a running move, and its counts decide what is read.
    renewed = {job: ListRequest(moves.renewed(job.owner), job.relation) for job in jobs}
    results = await _read_now(request, list(renewed.values()), stamps)
    return {job: results[other] for job, other in renewed.items()}


async def _read_now(
    request: Request, jobs: Sequence[ListRequest], stamps: Mapping[Key, object]
) -> dict[ListRequest, Page | Exception]:
    """Plan, read all of it together, then cut the pages; errors are among the stamps."""
    results, batches = await _batches(request, jobs, stamps)
    reads = list(dict.fromkeys(read for batch in batches for read in batch.reads))
    failed = [one for one in await request.together([request.range(read) for read in reads]) if one is not None]
    found = {job: records for batch in batches for job, records in (await batch.found(failed)).items()}
    counted = [job for job, records in found.items() if job.relation.total and isinstance(records, list)]
    counts = await totals(request, counted) if counted else {}
    async for some in in_chunks(list(found.items())):
        for job, records in some:
            results[job] = _page(job, records, counts.get(job))
            if (
                job.owner.is_root and job.order is CursorKind.SIBLINGS and isinstance(records, list)
            ):  # each is its own tree
                request.partitions.update([job.owner.hierarchy, *[record.pk for record in records]])
    return results


async def _batches(
    request: Request, jobs: Sequence[ListRequest], stamps: Mapping[Key, object]
) -> tuple[dict[ListRequest, Page | Exception], "list[_Batch]"]:
    """The lists by hierarchy, planned, and why some of them cannot be: their tree's stamp, or the budget."""
    results: dict[ListRequest, Page | Exception] = {}
    by_hierarchy: dict[str, list[ListRequest]] = defaultdict(list)
    for job in jobs:
        missing = None if job.owner.pk in request.stamps else stamps[tree_version_key(job.owner.pk)]
        if isinstance(missing, Exception):
            results[job] = missing
        else:
            by_hierarchy[job.owner.hierarchy].append(job)
    batches = []
    for name, group in by_hierarchy.items():
        try:
            batches.append(await _Batch.of(request, request.hierarchies[name], group))
        except CladeError as error:
            results.update(dict.fromkeys(group, error.bare()))
    return results, batches


class _Batch:
    """Lists of one hierarchy: what to read for them, and what they are when it was read."""

    def __init__(self, request: Request, planner: Planner, expected: dict[ListRequest, int]) -> None:
        self._request = request
        self._planner = planner
        self._expected = expected
        self.reads = planner.reads

    @classmethod
    async def of(cls, request: Request, hierarchy: Hierarchy, jobs: list[ListRequest]) -> Self:
        """The batch of some lists, with what the counts tell beforehand taken from the budget.

        Raises BudgetExceeded, taking nothing, where that or what would be read ahead is more than is left.
        """
        least_of = {job: least(request, job) for job in jobs}
        expected = sum(least_of.values())
        if expected > request.nodes_left:
            raise refusal(_described(jobs), expected, request.nodes_left)
        planner = Planner(request.known, request.stamps, hierarchy, request.nodes_left)
        async for some in in_chunks(jobs):
            planner.add(some)
        for group in planner.groups:
            planner.plan(group)
            request.reads.check(len(planner.reads))
            if len(jobs) > CHUNK_LENGTH:
                await yield_to_loop()
        request.spend(expected)
        request.turn.expect(planner.nodes)
        return cls(request, planner, least_of)

    async def found(self, failed: Sequence[object]) -> dict[ListRequest, list[Record] | Exception]:
        """The records of each list, taken from the budget; or an error, of those reads that `failed` or of its own."""
        results: dict[ListRequest, list[Record] | Exception] = {}
        async for some in in_chunks(list(self._expected.items())):
            for job, expected in some:
                results[job] = self._found(job, expected, failed)
        return results

    def _found(self, job: ListRequest, expected: int, failed: Sequence[object]) -> list[Record] | Exception:
        try:
            records = self._records(job, failed)
            self._request.spend(max(0, len(records[: job.window.size]) - expected), _described([job]))
        except CladeError as error:
            return error.bare()
        except Exception as error:  # of a read that failed, whatever it met
            return error
        return records

    def _records(self, job: ListRequest, failed: Sequence[object]) -> list[Record]:
        """What was read of a list, in reading order."""
        request = self._request
        found = self._planner.answered.get(job)
        if found is None:
            found = answer(job, request.known, request.stamps[job.owner.pk])
        if found is None:
            for error in failed:
                if isinstance(error, Exception):
                    raise error
            raise refusal(_described([job]), request.nodes_left + 1, request.nodes_left)
        return (
            [record for record in found if record.key != job.owner.key] if job.order is CursorKind.SIBLINGS else found
        )


def least(request: Request, job: ListRequest) -> int:
    """How many nodes a list will return at least, as far as anything that was read tells."""
    if job.order is not CursorKind.SIBLINGS:
        return job.least(request.stamps[job.owner.pk])
    if not job.relation.nodes or job.window.is_narrow:
        return 0
    if job.owner.is_root:
        stamp = request.stamps.get(job.owner.hierarchy)
        family = stamp.levels() if stamp else {}
    else:
        parent = request.known.nodes.get(parent_key(job))
        family = parent.kids if parent else {}
    size = job.window.size
    sure = others(job, family) if family else 0
    return sure if size is None else min(sure, size)


def _described(jobs: Sequence[ListRequest]) -> str:
    """Lists as a message names them."""
    first = jobs[0]
    more = f" and {len(jobs) - 1:,} other lists" if len(jobs) > 1 else ""
    return f"The {first.relation.kind} of {shorten(format_path(first.owner.path))}{more}"


def _page(job: ListRequest, records: list[Record] | Exception, total: int | Exception | None) -> Page | Exception:
    if isinstance(records, Exception):
        return records
    if isinstance(total, Exception):
        return total
    if job.relation.nodes and not job.needs_nodes:  # nothing was read of `first: 0`
        is_first, more = job.window.last is None, job.most > 0
        return Page([], is_first and more, not is_first and more, total, job.cursors)
    return paged(records, job.window, total, job.cursors)


def paged(records: list[Record], window: ConnectionArguments, total: int | None, cursors: "Cursors") -> Page:
    """The page that a window shows of records that were read in its direction, one more than it shows."""
    more = window.size is not None and len(records) > window.size
    shown = records[: window.size]
    if window.last is not None:
        return Page(shown[::-1], window.before is not None, more, total, cursors)
    return Page(shown, more or window.before is not None, window.after is not None, total, cursors)


# -- the roots of a hierarchy ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roots:
    """The list of a hierarchy's roots, whose owner is the hierarchy itself."""

    hierarchy: str
    window: ConnectionArguments

    def span(self) -> KeyRange:
        span, window = siblings(self.hierarchy, self.window.level), self.window
        after, before = self._position(window.after), self._position(window.before)
        if window.reverse:
            after, before = before, after
        if after is not None:
            span = span.after(after)
        return span if before is None else span.before(before)

    def _position(self, cursor: str | None) -> str | None:
        return None if cursor is None else decode_cursor(cursor, CursorKind.ROOTS, self.hierarchy)


async def roots(request: Request, hierarchy: str, window: ConnectionArguments, *, nodes: bool, total: bool) -> Page:
    """A hierarchy's roots in their order: one query; their number is in the hierarchy's stamp."""
    question = (hierarchy, window, nodes, total)
    kept: Page | None = request.recall(question)
    if kept is not None:
        request.spend(len(kept.records))
        return kept
    page = await _read_roots(request, Roots(hierarchy, window), nodes=nodes, total=total)
    request.keep(question, page, len(page.records))
    return page


async def _read_roots(request: Request, listing: Roots, *, nodes: bool, total: bool) -> Page:
    hierarchy, window = listing.hierarchy, listing.window
    most = request.nodes_left + 2
    read = Read(listing.span(), min(window.limit or most, most), window.descending)
    request.turn.expect(window.limit or 0)  # of all roots nobody knows how many they are
    request.partitions.add(hierarchy)
    calls: list[Awaitable[object]] = [hierarchy_stamp(request, hierarchy)] if total else []
    if nodes and request.known.take(read.span, read.limit, reverse=read.reverse) is None:
        calls.append(request.range(read))
    for outcome in await request.together(calls):
        if isinstance(outcome, BaseException):
            raise outcome
    counts = request.stamps[hierarchy].levels() if total else {}
    number = sum(count for level, count in counts.items() if window.level in (None, level)) if total else None
    if not nodes:
        return Page([], total=number)
    records = request.known.take(read.span, read.limit, reverse=read.reverse) or []
    request.partitions.update([record.pk for record in records])
    request.spend(len(records[: window.size]), f"The roots of {hierarchy}")
    return paged(records, window, number, ListCursors(CursorKind.ROOTS, hierarchy, None))


async def hierarchy_stamp(request: Request, hierarchy: str) -> TreeVersion:
    await request.get([], trees=[hierarchy])
    return request.stamps[hierarchy]
