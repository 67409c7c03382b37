"""Pages: reads the lists of a whole response level, and makes their pages from the records that were read.

Lists that are empty by the owner's counts, and pages in the page cache, need no read. The others are read together as
`planner.py` decides, and their nodes are taken from the node budget. `lists.py` sorts and filters them.

| `totalCount` of | source | requests |
| --- | --- | --- |
| children, descendants | the owner's counts | none |
| siblings | the counts of the parent, or of the hierarchy for roots | one BatchGetItem for all |
| with `maxDepth` or bounds | a Query with `Select: COUNT` of each range of the list | one for each range |
| the same in a tree that is seen in part | a Query of the ranges of the table that hold the list | one for each range |
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Self

from resolvers.outcomes import Outcome, gather_outcomes, is_error, raise_first_error
from resolvers.planner import Planner
from resolvers.planning.list_request import KeyOrderList, ListRequest
from resolvers.planning.page import Page, page_of
from resolvers.roots import with_counts
from resolvers.session.budget import NodeShare
from resolvers.session.read_state import ReadState
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from resolvers.siblings import SiblingsRequest, count_siblings
from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.errors import CladeError
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.paths import format_path
from store.model.ranges import KeyRange
from store.model.records import Record
from store.text import shorten

LISTS_A_CHUNK = 50  # between two points at which the event loop may run others


async def count_totals(request: Request, lists: Sequence[ListRequest]) -> dict[ListRequest, Outcome[int]]:
    """`totalCount` of each list, or the error of a failed read; all reads are made side by side."""
    state = request.state
    totals: dict[ListRequest, Outcome[int]] = {one: one.max_size for one in lists if one.is_exact}
    if siblings := [requested for requested in lists if isinstance(requested, SiblingsRequest)]:
        totals.update(await count_siblings(state, siblings))
    ranges: dict[ListRequest, list[KeyRange]] = {}
    others = [requested for requested in lists if isinstance(requested, KeyOrderList) and requested not in totals]
    filtered = [one for one in others if one.is_read_whole(state.tree_versions[one.owner.pk])]
    spans = dict.fromkeys([span for one in filtered for span in _whole(one).key_ranges])
    unread = [span for span in spans if not state.records_read.covers(span)]
    request.reads.check(len(unread))
    raise_first_error(await gather_outcomes([state.range(Read(span)) for span in unread]))
    async for chunk in in_chunks(others, LISTS_A_CHUNK):
        for one in chunk:
            total = _total_or_ranges(state, one)
            if isinstance(total, int):
                totals[one] = total
            else:
                ranges[one] = total
    counted_spans = list(dict.fromkeys(span for own in ranges.values() for span in own))
    request.reads.check(len(counted_spans))
    counts = dict(zip(counted_spans, await gather_outcomes([state.count(span) for span in counted_spans]), strict=True))
    for counted, own in ranges.items():
        outcomes = [counts[span] for span in own]
        errors = list(filter(is_error, outcomes))
        totals[counted] = errors[0] if errors else sum([count for count in outcomes if isinstance(count, int)])
    return totals


def _total_or_ranges(state: ReadState, requested: KeyOrderList) -> int | list[KeyRange]:
    """The length of a list if all of it was read, or else the ranges to count."""
    whole = _whole(requested)
    version = state.tree_versions[requested.owner.pk]
    records = whole.records(state.records_read, version)
    return whole.count_ranges(version) if records is None else len(records)


def _whole(requested: KeyOrderList) -> KeyOrderList:
    """A list without paging."""
    unpaged = replace(requested.window, first=None, after=None, last=None, before=None)
    return type(requested)(requested.owner, replace(requested.relation, window=unpaged))


# Most nodes of most trees have no children.
_EMPTY, _EMPTY_WITH_TOTAL = Page([]), Page([], total=0)

Pages = dict[ListRequest, Outcome[Page]]


async def read_all_pages(request: Request, lists: Sequence[ListRequest]) -> list[Outcome[Page]]:
    """The pages of many lists, in order; the error of a failed read is in place of each page that needs it."""
    pages: list[Outcome[Page] | None] = []
    if request.state.is_remote:  # the versions of their trees validate what is cached, and plan what is not
        await request.state.prepare({one.owner.pk for one in lists if one.owner.is_root or not one.is_empty})
    for start in range(0, len(lists), CHUNK_LENGTH):
        pages += _without_read(request, lists[start : start + CHUNK_LENGTH])
        if start:
            await yield_to_loop()
    missing = [requested for requested, page in zip(lists, pages, strict=True) if page is None]
    if not missing:
        return pages  # type: ignore[return-value]  # there is no None
    found = await _read(request, missing)
    for requested in missing:
        if isinstance(page := found[requested], Page) and not is_error(page.total):
            request.state.pages.put(requested.tree, requested.cache_key, page, len(page.records))
    return [found[requested] if page is None else page for requested, page in zip(lists, pages, strict=True)]


def _without_read(request: Request, lists: Sequence[ListRequest]) -> list[Outcome[Page] | None]:
    """The page of each list that is empty or cached, or the error of wrong arguments; None if it has to be read."""
    state, budget, trace = request.state, request.budget, request.reads.trace
    cached, has_counts = state.pages.get, state.has_counts
    pages: list[Outcome[Page] | None] = []
    for requested in lists:
        relation = requested.relation
        if requested.is_empty and not relation.window.is_narrow and has_counts(requested.owner):
            pages.append(_EMPTY_WITH_TOTAL if relation.total else _EMPTY)
            continue
        page: Page | None = cached(requested.tree, requested.cache_key)
        try:
            if page is None:
                requested.check()
            elif relation.tests:
                budget.share(relation.tests).spend(len(page.records))
            else:
                budget.spend_nodes(len(page.records))
        except CladeError as error:
            pages.append(relation.shared_error(error))
            continue
        if page is not None:
            if type(requested) is SiblingsRequest:
                _depend_on_trees(request, requested, page.records)
            if trace is not None:
                trace.pages += 1
        pages.append(page)
    return pages


def _depend_on_trees(request: Request, requested: SiblingsRequest, records: Sequence[Record]) -> None:
    """Let the response depend on the trees of siblings: each sibling of a root is in a tree of its own."""
    if requested.owner.is_root:
        request.state.partitions_read.update([requested.owner.hierarchy, *[record.pk for record in records]])


async def _read(request: Request, lists: Sequence[ListRequest]) -> Pages:
    state = request.state
    versions = await state.versions_of([requested.owner.pk for requested in lists])
    if state.moves is None and all(requested.owner.below is not None for requested in lists):
        return await _read_lists(request, lists, versions)
    # The counts of an owner from a list decide what is read.
    current = [type(one)(state.counted(one.owner), one.relation) for one in lists]
    pages = await _read_lists(request, current, versions)
    return {requested: pages[other] for requested, other in zip(lists, current, strict=True)}


async def _read_lists(
    request: Request, lists: Sequence[ListRequest], versions: Mapping[str, Outcome[TreeVersion]]
) -> Pages:
    """Plan all lists, make all reads together, then cut the pages."""
    state = request.state
    pages, batches = await _plan(request, lists, versions)
    reads = list(dict.fromkeys(read for batch in batches for read in batch.reads))
    outcomes = await gather_outcomes([state.range(read) for read in reads])
    found = {requested: records for batch in batches for requested, records in (await batch.records(outcomes)).items()}
    counted = [one for one, records in found.items() if one.relation.total and isinstance(records, list)]
    totals = await count_totals(request, counted) if counted else {}
    async for chunk in in_chunks(list(found.items())):
        for requested, records in chunk:
            pages[requested] = _page(requested, records, totals.get(requested))
            if isinstance(requested, SiblingsRequest) and isinstance(records, list):
                _depend_on_trees(request, requested, records)
    for requested in [requested for requested in found if requested.relation.counts]:
        if isinstance(page := pages[requested], Page):
            (records,) = await gather_outcomes([with_counts(state, page.records)])
            pages[requested] = records if is_error(records) else replace(page, records=records)
    return pages


async def _plan(
    request: Request, lists: Sequence[ListRequest], versions: Mapping[str, Outcome[TreeVersion]]
) -> tuple[Pages, "list[_Batch]"]:
    """The lists planned by hierarchy and budget, and the errors of those that cannot be: from versions or a budget."""
    failed: Pages = {}
    groups: dict[tuple[str, int], list[ListRequest]] = defaultdict(list)
    for requested in lists:
        version = versions[requested.owner.pk]
        if is_error(version):
            failed[requested] = version
        else:
            groups[requested.owner.hierarchy, requested.relation.tests].append(requested)
    batches = []
    for (name, tests), group in groups.items():
        try:
            batches.append(await _Batch.of(request, request.hierarchies[name], group, request.budget.share(tests)))
        except CladeError as error:
            failed.update(dict.fromkeys(group, error.bare()))
    return failed, batches


class _Batch:
    """Lists of one hierarchy and one budget: their reads, and their records after these."""

    def __init__(self, request: Request, planner: Planner, expected: dict[ListRequest, int], budget: NodeShare) -> None:
        self.reads = planner.reads
        self._request = request
        self._budget = budget
        self._planner = planner
        self._expected = expected  # nodes that are spent already

    @classmethod
    async def of(cls, request: Request, hierarchy: Hierarchy, lists: list[ListRequest], budget: NodeShare) -> Self:
        """Plan lists, and spend the nodes that they have at least.

        Raises BudgetExceeded, spending nothing, where these or the prefetched nodes are more than are left.
        """
        state = request.state
        expected = {requested: requested.min_size(state.records_read, state.tree_versions) for requested in lists}
        total = sum(expected.values())
        if total > budget.left:
            raise budget.error(_described(lists), total)
        planner = Planner(state.records_read, state.tree_versions, hierarchy, budget, request.grants)
        async for chunk in in_chunks(lists):
            planner.add(chunk)
        for group in planner.groups:
            planner.plan(group)
            request.reads.check(len(planner.reads))
            if len(lists) > CHUNK_LENGTH:
                await yield_to_loop()
        budget.spend(total)
        request.scheduler.expect(planner.max_nodes)
        return cls(request, planner, expected, budget)

    async def records(self, outcomes: Sequence[object]) -> dict[ListRequest, Outcome[list[Record]]]:
        """The records of each list, spent from the budget, or the error of a read (in `outcomes`) or its own."""
        found: dict[ListRequest, Outcome[list[Record]]] = {}
        async for chunk in in_chunks(list(self._expected.items())):
            for requested, expected in chunk:
                found[requested] = self._records(requested, expected, outcomes)
        return found

    def _records(self, requested: ListRequest, expected: int, outcomes: Sequence[object]) -> Outcome[list[Record]]:
        try:
            records = self._records_read(requested, outcomes)
            more = max(0, len(records[: requested.window.size]) - expected)
            self._budget.spend(more, _described([requested]))
        except CladeError as error:
            return error.bare()
        except Exception as error:  # of a failed read
            return error
        return records

    def _records_read(self, requested: ListRequest, outcomes: Sequence[object]) -> list[Record]:
        """The records of a list, in reading order."""
        state = self._request.state
        records = self._planner.answered.get(requested)
        if records is None:
            records = requested.records(state.records_read, state.tree_versions[requested.owner.pk])
        if records is None:
            raise_first_error(outcomes)
            raise self._budget.error(_described([requested]), self._budget.left + 1)
        if isinstance(requested, SiblingsRequest):
            return _without(records, requested.owner)
        return records


def _without(records: list[Record], owner: Record) -> list[Record]:
    """Records in sibling order, or backwards, without one; found by its rank, since every sibling may ask for this."""
    is_backwards = len(records) > 1 and records[0].rank > records[-1].rank
    place = bisect_left(records, owner.rank, key=attrgetter("rank")) if not is_backwards else 0
    if is_backwards:
        place = len(records) - bisect_right(records[::-1], owner.rank, key=attrgetter("rank"))
    if place < len(records) and records[place].key == owner.key:
        return records[:place] + records[place + 1 :]
    return [record for record in records if record.sk != owner.sk or record.pk != owner.pk]


def _described(lists: Sequence[ListRequest]) -> str:
    """Lists as a message names them."""
    first = lists[0]
    more = f" and {len(lists) - 1:,} other lists" if len(lists) > 1 else ""
    return f"The {first.relation.kind} of {shorten(format_path(first.owner.path))}{more}"


def _page(requested: ListRequest, records: Outcome[list[Record]], total: Outcome[int] | None) -> Outcome[Page]:
    if is_error(records):
        return records
    window = requested.window
    if requested.relation.nodes and not requested.needs_nodes:  # `first: 0` is answered from the counts
        is_first, more = window.last is None, requested.max_size > 0
        return Page([], is_first and more, not is_first and more, total, requested.cursors)
    return page_of(records, window, total, requested.cursors)
