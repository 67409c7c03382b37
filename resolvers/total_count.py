"""Total count: the length of whole lists, without paging.

| list | source | requests |
| --- | --- | --- |
| children, descendants | the owner's counts | none |
| with `maxDepth` or bounds | a Query with `Select: COUNT` of each range of the list | one for each range |
"""

from collections.abc import Sequence
from dataclasses import replace

from resolvers.planning.key_order_list import KeyOrderList
from resolvers.planning.list_request import ListRequest
from resolvers.session.outcomes import gather_outcomes
from resolvers.session.read_state import ReadState
from resolvers.session.request import Request
from store.concurrency import in_chunks
from store.model.ranges import KeyRange

LISTS_A_CHUNK = 50  # between two points at which the event loop may run others


async def count_totals(request: Request, lists: Sequence[ListRequest]) -> dict[ListRequest, int | Exception]:
    """`totalCount` of each list, or the error of a failed read; all reads are made side by side."""
    state = request.state
    totals: dict[ListRequest, int | Exception] = {one: one.max_size for one in lists if one.is_exact}
    ranges: dict[ListRequest, list[KeyRange]] = {}
    others = [requested for requested in lists if isinstance(requested, KeyOrderList) and requested not in totals]
    async for chunk in in_chunks(others, LISTS_A_CHUNK):
        for one in chunk:
            total = _total_or_ranges(state, one)
            if isinstance(total, int):
                totals[one] = total
            else:
                ranges[one] = total
    spans = list(dict.fromkeys(span for spans in ranges.values() for span in spans))
    request.reads.check(len(spans))
    counts = dict(zip(spans, await gather_outcomes([state.count(span) for span in spans]), strict=True))
    for counted, own in ranges.items():
        outcomes = [counts[span] for span in own]
        errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        totals[counted] = errors[0] if errors else sum([count for count in outcomes if isinstance(count, int)])
    return totals


def _total_or_ranges(state: ReadState, requested: KeyOrderList) -> int | list[KeyRange]:
    """The length of a list if all of it was read, or else the ranges to count."""
    unpaged = replace(requested.window, first=None, after=None, last=None, before=None)
    whole = type(requested)(requested.owner, replace(requested.relation, window=unpaged))
    version = state.tree_versions[requested.owner.pk]
    records = whole.records(state.records_read, version)
    return whole.count_ranges(version) if records is None else len(records)
