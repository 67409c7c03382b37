"""Lists of nodes: children, descendants and siblings of many nodes at once, and the roots of a hierarchy."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from resolvers.job import Job
from resolvers.known import Read
from resolvers.plan import Planner, answer, too_many
from resolvers.request import Request
from resolvers.selection import Relation
from resolvers.window import Order, Window, decode_cursor, encode_cursor
from store.errors import BudgetExceeded, CladeError
from store.hierarchy import Hierarchy
from store.keys import Key, Span, parent_sort_key, siblings
from store.records import Record
from store.stamps import Stamp


@dataclass(frozen=True)
class Page:
    """A part of a list: its records in the list's order, whether there are others, and how many there are in all.

    `cursors` belong to the records; `total` is None where it was not asked for.
    """

    records: list[Record]
    has_next: bool = False
    has_previous: bool = False
    total: int | None = None
    cursors: "Job | Roots | None" = None
    told: dict[object, bytes] = field(default_factory=dict, compare=False)
    """What others have made of this page and would make again, each under a name of its own."""

    def cursor(self, record: Record) -> str:
        assert self.cursors is not None  # only an empty page has none  # noqa: S101
        return self.cursors.cursor(record)


async def lists(request: Request, jobs: Sequence[Job]) -> list[Page | Exception]:
    """The pages of many lists, in order, read as `resolvers.plan` decides; what fails is an error in its place."""
    results: dict[Job, Page | Exception] = {}
    by_hierarchy: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        try:
            page = request.recall(_question(job))
            if page is None:
                job.check()
                by_hierarchy[job.owner.hierarchy].append(job)
            else:
                request.spend(len(page.records))
                results[job] = page
        except CladeError as error:
            results[job] = error
    for name, group in by_hierarchy.items():
        results.update(await _lists_of(request, request.hierarchies[name], group))
        for job in group:
            if isinstance(page := results[job], Page):
                request.keep(_question(job), page, len(page.records))
    return [results[job] for job in jobs]


def _question(job: Job) -> Hashable:
    """What a list is kept under: two jobs with the same question have the same page."""
    relation = job.relation
    return job.owner.pk, job.owner.sk, relation.kind, relation.window, relation.nodes, relation.total


async def _lists_of(request: Request, hierarchy: Hierarchy, jobs: list[Job]) -> dict[Job, Page | Exception]:
    """The same for lists of one hierarchy."""
    try:
        await request.get([], trees=[job.owner.pk for job in jobs])
        reserved = _reserve(request, jobs)
        planner = Planner(request.known, request.stamps, hierarchy, request.nodes_left + sum(reserved.values()))
        reads = planner.plan(jobs)
    except CladeError as error:
        return dict.fromkeys(jobs, error)
    outcomes = await request.together([request.range(read) for read in reads])
    failed = {read: error for read, error in zip(reads, outcomes, strict=True) if isinstance(error, Exception)}
    return {job: await _outcome(request, job, reserved[job], failed) for job in jobs}


def _reserve(request: Request, jobs: list[Job]) -> dict[Job, int]:
    """Take the nodes that the lists are known to return from the budget before anything is read."""
    reserved = {job: _expected(job) if job.relation.nodes else 0 for job in jobs}
    request.spend(sum(reserved.values()))
    return reserved


def _expected(job: Job) -> int:
    if not job.is_exact or job.window.is_narrow:
        return 0
    return job.most if job.window.size is None else min(job.most, job.window.size)


async def _outcome(request: Request, job: Job, reserved: int, failed: dict[Read, Exception]) -> Page | Exception:
    try:
        records = _records(request, job, failed)
        request.spend(max(0, len(records[: job.window.size]) - reserved))
        total = await _total(request, job, records) if job.relation.total else None
    except CladeError as error:
        return error
    return paged(records, job.window, total, job)


def _records(request: Request, job: Job, failed: dict[Read, Exception]) -> list[Record]:
    """What was read of a list, in reading order, or the error of the read that it lacks."""
    if not job.relation.nodes:
        return []
    if job.order is not Order.SIBLINGS and (not job.levels or job.window.size == 0):
        return []
    found = answer(job, request.known, request.stamps[job.owner.pk])
    if found is None:
        for error in failed.values():
            raise error
        raise BudgetExceeded(too_many(request.nodes_left + 1, request.nodes_left))
    return [record for record in found if record.key != job.owner.key] if job.order is Order.SIBLINGS else found


def paged(records: list[Record], window: Window, total: int | None, cursors: "Job | Roots") -> Page:
    """The page that a window shows of records that were read in its direction, one more than it shows."""
    more = window.size is not None and len(records) > window.size
    shown = records[: window.size]
    if window.last is not None:
        return Page(shown[::-1], window.before is not None, more, total, cursors)
    return Page(shown, more or window.before is not None, window.after is not None, total, cursors)


async def _total(request: Request, job: Job, records: list[Record]) -> int:
    """How many nodes the list has without its paging, of what is known or else counted."""
    window, owner = job.window, job.owner
    if job.is_exact:
        return job.most
    if window.size is None and job.relation.nodes and not (window.after or window.before):
        return len(records)
    if job.order is Order.SIBLINGS:
        return await _count_siblings(request, owner, window.level)
    whole = Job(owner, Relation(job.relation.kind, _unpaged(window), job.relation.selection))
    spans = [whole.tier_span(level, depth) for level, depth in whole.tiers(request.stamps[owner.pk])]
    if window.level is None and window.max_depth is None and job.order is Order.DESCENDANTS:
        spans = [whole.table_span]
    return sum(await _counts(request, spans))


async def _count_siblings(request: Request, owner: Record, level: str | None) -> int:
    if owner.is_root:
        counts = (await hierarchy_stamp(request, owner.hierarchy)).levels()
    else:
        key = Key(owner.pk, parent_sort_key(owner.sk))
        parent = (await request.records([key]))[key]
        counts = parent.kids if parent else {}
    wanted = sum(count for name, count in counts.items() if level in (None, name))
    return wanted - (level in (None, owner.level))


async def _counts(request: Request, spans: Sequence[Span]) -> list[int]:
    counts = []
    for outcome in await request.together([request.count(span) for span in spans]):
        if isinstance(outcome, BaseException):
            raise outcome
        counts.append(outcome)
    return counts


def _unpaged(window: Window) -> Window:
    return Window(level=window.level, start=window.start, end=window.end, max_depth=window.max_depth)


# -- the roots of a hierarchy ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roots:
    """The list of a hierarchy's roots, whose owner is the hierarchy itself."""

    hierarchy: str
    window: Window

    def span(self) -> Span:
        span, window = siblings(self.hierarchy, self.window.level), self.window
        after, before = self._position(window.after), self._position(window.before)
        if window.reverse:
            after, before = before, after
        if after is not None:
            span = span.after(after)
        return span if before is None else span.before(before)

    def cursor(self, record: Record) -> str:
        return encode_cursor(Order.ROOTS, self.hierarchy, record.rank)

    def _position(self, cursor: str | None) -> str | None:
        return None if cursor is None else decode_cursor(cursor, Order.ROOTS, self.hierarchy)


async def roots(request: Request, hierarchy: str, window: Window, *, nodes: bool, total: bool) -> Page:
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
    counts = (await hierarchy_stamp(request, hierarchy)).levels() if total else {}
    number = sum(count for level, count in counts.items() if window.level in (None, level)) if total else None
    if not nodes or window.size == 0:
        return Page([], bool(window.size == 0 and number), total=number)
    most = request.nodes_left + 2
    read = Read(listing.span(), min(window.limit or most, most), window.descending)
    await request.range(read)
    records = request.known.take(read.span, read.limit, reverse=window.descending) or []
    request.partitions.update([hierarchy, *[record.pk for record in records]])
    request.spend(len(records[: window.size]))
    return paged(records, window, number, listing)


async def hierarchy_stamp(request: Request, hierarchy: str) -> Stamp:
    await request.get([], trees=[hierarchy])
    return request.stamps[hierarchy]
