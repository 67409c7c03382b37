"""Pages: reads the lists of a whole response level, and makes their pages from the records that were read.

Lists that are empty by the owner's counts, and pages in the page cache, need no read. The others are read together as
`planner.py` decides, and their nodes are taken from the node budget. All nodes of a list may be read by whoever may
read its owner.

| `totalCount` of | source | requests |
| --- | --- | --- |
| children, descendants | the owner's counts | none |
| the same with `maxDepth` or bounds | a Query with `Select: COUNT` of each range of the list | one for each range |
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress, groupby
from operator import attrgetter, not_
from typing import Any

from resolvers.lists.arguments import Asked, Page, Relation, page_of
from resolvers.lists.list_request import MAX_CACHED_WHOLE, KeyOrderList, ListRequest, described
from resolvers.lists.position_order import Read
from resolvers.lists.sorted_list import Readers, read_sorted
from resolvers.planner import Planner, list_request, list_requests
from resolvers.search.candidates import read_candidates
from resolvers.session.budget import TooManyNodes, raise_first_error
from resolvers.session.request import Request
from store.concurrency import CHUNK_LENGTH, in_chunks, yield_to_loop
from store.errors import CladeError
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.keys import KeyRange
from store.model.records import Record

COUNTED_A_CHUNK = 50  # lists between two points at which the event loop may run others

# Most nodes of most trees have no children.
_EMPTY, _EMPTY_WITH_TOTAL = Page([]), Page([], total=0)

_KIDS, _RECORDS, _RELATION = attrgetter("kids"), attrgetter("records"), attrgetter("relation")

Pages = dict[ListRequest, Page | Exception]
Plan = tuple[Planner, dict[ListRequest, int]]  # of lists of one hierarchy, with the nodes that are spent already


def may_have_children(request: Request, owners: Sequence[Record]) -> Sequence[object]:
    """For each node a true value unless its counts show that nothing lies below it."""
    if not request.state.validators.has_lag:
        return list(map(_KIDS, owners))
    # The counts of a root from an index may be older than a move's commit.
    return [owner.is_root or owner.kids for owner in owners]


def is_refused(request: Request, owner: Record, relation: Relation) -> bool:
    """Whether a list is an error even if it is empty, since no node in the list of an owner of this level can meet its
    conditions.
    """
    try:
        list_request(owner, relation).check_conditions(request.hierarchies[owner.hierarchy])
    except CladeError:
        return True
    return False


async def read_pages(request: Request, lists: Sequence[ListRequest]) -> list[Page | Exception]:
    """The pages of lists in any order, each at its place; the error of a failed read is in place of its page."""
    return await read_sorted(request, lists, readers(read_all_pages))


def readers(pages: Read) -> Readers:
    """What reads lists, their pages by `pages`."""
    return Readers(pages, _read_lists, read_candidates)


async def read_all_pages(request: Request, lists: Sequence[ListRequest]) -> list[Page | Exception]:
    """The pages of many lists that are neither sorted nor filtered, as `read_pages`."""
    return await _read_lists(request, [(one, [each.owner for each in some]) for one, some in groupby(lists, _RELATION)])


async def read_lists(request: Request, asked: Sequence[Asked]) -> list[Page | Exception]:
    """The same for the lists that relations lead to from nodes, one relation after another."""
    for relation, _ in asked:
        if not relation.is_plain:
            return await read_pages(request, _requests(asked))
    return await _read_lists(request, asked)


def _requests(asked: Sequence[Asked]) -> list[ListRequest]:
    return [requested for relation, owners in asked for requested in list_requests(owners, relation)]


async def _read_lists(request: Request, asked: Sequence[Asked]) -> list[Page | Exception]:
    state = request.state
    if state.validators.need_versions and not {one.pk for _, own in asked for one in own} <= state.tree_versions.keys():
        needed = [one.owner.pk for one in _requests(asked) if one.owner.is_root or not one.is_empty]
        await state.read_versions(needed)
    pages: list[Page | Exception | ListRequest] = []
    for relation, owners in asked:
        cached = _cached(request, relation, owners)
        if not all(cached):
            others: list[Page | Exception | ListRequest] = []
            async for chunk in in_chunks(list_requests(compress(owners, map(not_, cached)), relation)):
                others += [_without_read(request, one) for one in chunk]
            left = iter(others)
            cached = [next(left) if page is None else page for page in cached]
        pages += cached
    missing = [page for page in pages if isinstance(page, ListRequest)]
    found = await _read(request, missing) if missing else {}
    for requested in missing:
        page, compared = found[requested], requested.relation.arguments.compared
        if not requested.relation.is_cached:
            continue
        # Of many nodes that are sorted or filtered the result is cached instead.
        if isinstance(page, Page) and not (compared and len(page.records) > MAX_CACHED_WHOLE):
            state.pages.put(requested.owner.pk, requested.cache_key, page, len(page.records))
    return [found[page] if isinstance(page, ListRequest) else page for page in pages]


def _cached(request: Request, relation: Relation, owners: Sequence[Record]) -> list[Any]:
    """The pages in the page cache of the lists of these owners, or the error of those that are too long for the budget;
    None for each that is not there.
    """
    key, compared = relation.page_key, relation.arguments.compared
    pages = request.state.pages.of_lists([(one.pk, one.sk, key) for one in owners])
    found = list(filter(None, pages))
    try:
        request.budget.spend_nodes(sum(map(len, map(_RECORDS, found))), compared=compared)
    except TooManyNodes as error:
        if len(found) > 1:  # some of them may still fit
            return [page for owner in owners for page in _cached(request, relation, [owner])]
        return [page and relation.shared_error(error) for page in pages]
    if request.reads.trace is not None:
        request.reads.trace.pages += len(found)
    return pages


def _without_read(request: Request, requested: ListRequest) -> Page | CladeError | ListRequest:
    """The page of a list that is empty, or the error of wrong arguments; the list itself if it has to be read."""
    relation, arguments = requested.relation, requested.relation.arguments
    # The counts of a root from a list of roots may be older than a move's commit.
    has_counts = not (request.state.validators.has_lag and requested.owner.is_root)
    if has_counts and requested.is_empty and not arguments.is_narrow:
        return _EMPTY_WITH_TOTAL if relation.total else _EMPTY
    try:
        arguments.positions(requested.decode)  # raises BadCursor for a cursor of another list
    except CladeError as error:
        return relation.shared_error(error)
    return requested


async def _read(request: Request, lists: Sequence[ListRequest]) -> Pages:
    """Plan all lists, make all reads together, then cut the pages."""
    state = request.state
    versions = await state.versions_of([requested.owner.pk for requested in lists])
    current = lists
    if state.moves is not None or any(requested.owner.below is None for requested in lists):
        # The counts of an owner from a list decide what is read.
        current = [type(one)(state.counted(one.owner), one.relation) for one in lists]
    pages, plans = await _plan(request, current, versions)
    reads = list(dict.fromkeys(read for planner, _ in plans for read in planner.reads))
    outcomes = await request.scheduler.gather_outcomes([state.range(read) for read in reads])
    found: dict[ListRequest, list[Record] | Exception] = {}
    for planner, expected in plans:
        async for some in in_chunks(list(expected.items())):
            for requested, spent in some:
                found[requested] = _records(request, planner, requested, spent, outcomes)
    counted = [one for one, records in found.items() if one.relation.total and isinstance(records, list)]
    totals = await _count_totals(request, counted) if counted else {}
    async for chunk in in_chunks(list(found.items())):
        for requested, records in chunk:
            pages[requested] = _page(requested, records, totals.get(requested))
    if current is lists:
        return pages
    return {requested: pages[other] for requested, other in zip(lists, current, strict=True)}


async def _plan(
    request: Request, lists: Sequence[ListRequest], versions: Mapping[str, TreeVersion | Exception]
) -> tuple[Pages, list[Plan]]:
    """The lists planned by hierarchy, and the errors of those that cannot be: from tree versions or the budget."""
    failed: Pages = {}
    by_hierarchy: dict[str, list[ListRequest]] = defaultdict(list)
    for requested in lists:
        version = versions[requested.owner.pk]
        if isinstance(version, Exception):
            failed[requested] = version
        else:
            by_hierarchy[requested.owner.hierarchy].append(requested)
    plans = []
    for name, group in by_hierarchy.items():
        try:
            plans.append(await _planned(request, request.hierarchies[name], group))
        except CladeError as error:
            failed.update(dict.fromkeys(group, error.bare()))
    return failed, plans


async def _planned(request: Request, hierarchy: Hierarchy, lists: list[ListRequest]) -> Plan:
    """Plan lists, and spend the nodes that they have at least.

    Raises BudgetExceeded, spending nothing, where these or the prefetched nodes are more than are left.
    """
    state, budget = request.state, request.budget
    expected = {requested: requested.min_size(state.tree_versions) for requested in lists}
    compared = sum([size for one, size in expected.items() if one.relation.arguments.compared])
    returned = sum([size for one, size in expected.items() if one.relation.is_returned])
    for total, left, is_compared in ((returned, budget.nodes_left, False), (compared, budget.compared_left, True)):
        if total > left:
            raise TooManyNodes(described(lists), total, left, compared=is_compared)
    planner = Planner(state.records_read, state.tree_versions, hierarchy, budget)
    async for chunk in in_chunks(lists):
        planner.add(chunk)
    for group in planner.groups:
        planner.plan(group)
        request.reads.check(len(planner.reads))
        if len(lists) > CHUNK_LENGTH:
            await yield_to_loop()
    budget.spend_nodes(sum(expected.values()) - compared)
    budget.spend_nodes(compared, compared=True)
    request.scheduler.expect(planner.max_nodes)
    return planner, expected


def _records(
    request: Request, planner: Planner, requested: ListRequest, spent: int, outcomes: Sequence[object]
) -> list[Record] | Exception:
    """The records of a list in reading order, spent from the budget; or its error, or that of a read in `outcomes`."""
    state, budget, compared = request.state, request.budget, requested.relation.arguments.compared
    try:
        records = planner.answered.get(requested)
        if records is None:
            records = requested.records(state.records_read, state.tree_versions[requested.owner.pk])
        if records is None:
            raise_first_error(outcomes)
            raise TooManyNodes(described([requested]), None, budget.left(compared=compared), compared=compared)
        shown = len(records[: requested.relation.arguments.size])
        budget.spend_nodes(max(0, shown - spent), described([requested]), compared=compared)
    except CladeError as error:
        return error.bare()
    except Exception as error:  # of a failed read
        return error
    return records


def _page(requested: ListRequest, records: list[Record] | Exception, total: int | Exception | None) -> Page | Exception:
    if isinstance(records, Exception):
        return records
    if isinstance(total, Exception):
        return total
    arguments = requested.relation.arguments
    if requested.relation.nodes and not requested.needs_nodes:  # `first: 0` is answered from the counts
        is_first, more = arguments.last is None, requested.max_size > 0
        return Page([], is_first and more, not is_first and more, total, requested.cursors)
    return page_of(records, arguments, total, requested.cursors)


async def _count_totals(request: Request, lists: Sequence[ListRequest]) -> dict[ListRequest, int | Exception]:
    """`totalCount` of each list, or the error of a failed read; all reads are made concurrently.

    A list of which not all was read is counted by the ranges that hold it and nothing else.
    """
    state = request.state
    totals: dict[ListRequest, int | Exception] = {one: one.max_size for one in lists if one.is_exact}
    ranges: dict[ListRequest, list[KeyRange]] = {}
    others = [requested for requested in lists if isinstance(requested, KeyOrderList) and requested not in totals]
    async for chunk in in_chunks(others, COUNTED_A_CHUNK):
        for one in chunk:
            unpaged = replace(one.relation.arguments, first=None, after=None, last=None, before=None)
            whole = type(one)(one.owner, replace(one.relation, arguments=unpaged))
            version = state.tree_versions[one.owner.pk]
            if (records := whole.records(state.records_read, version)) is not None:
                totals[one] = len(records)
            elif whole.is_whole_subtree:
                ranges[one] = whole.key_ranges
            else:
                ranges[one] = [span for part in whole.level_depths(version) for span in whole.level_ranges(*part)]
    spans = list(dict.fromkeys(span for spans in ranges.values() for span in spans))
    request.reads.check(len(spans))
    found = await request.scheduler.gather_outcomes([state.count(span) for span in spans])
    counts = dict(zip(spans, found, strict=True))
    for counted, own in ranges.items():
        outcomes = [counts[span] for span in own]
        errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        totals[counted] = errors[0] if errors else sum([count for count in outcomes if isinstance(count, int)])
    return totals
