"""How many nodes whole lists have, of what is known or else counted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from resolvers.planning.assemble import answer
from resolvers.planning.cursors import CursorKind
from resolvers.planning.list_request import ListRequest
from resolvers.session.request import Request
from store.concurrency import in_chunks
from store.metadata.tree_version import TreeVersion
from store.model.keys import Key, parent_sort_key, tree_version_key
from store.model.ranges import KeyRange
from store.model.records import Counts

COUNTS = 50  # lists whose ranges are found in one go


async def totals(request: Request, jobs: Sequence[ListRequest]) -> dict[ListRequest, int | Exception]:
    """The lengths of lists without their paging, whatever has to be counted for it counted side by side."""
    found: dict[ListRequest, int | Exception] = {job: job.most for job in jobs if job.is_exact}
    among = [job for job in jobs if job.order is CursorKind.SIBLINGS]
    found.update(await _among_siblings(request, among) if among else {})
    spans: dict[ListRequest, list[KeyRange] | int] = {}
    async for piece in in_chunks([job for job in jobs if job not in found], COUNTS):
        spans |= {job: _spans(request, job) for job in piece}
    wanted = list(dict.fromkeys(span for some in spans.values() if not isinstance(some, int) for span in some))
    request.reads.check(len(wanted))
    counted = dict(zip(wanted, await request.together([request.count(span) for span in wanted]), strict=True))
    for job, some in spans.items():
        found[job] = some if isinstance(some, int) else _sum([counted[span] for span in some])
    return found


def _spans(request: Request, job: ListRequest) -> list[KeyRange] | int:
    """The ranges that hold a whole list, or its length where all of it was read."""
    window = job.window
    unpaged = replace(window, first=None, after=None, last=None, before=None)
    whole = ListRequest(job.owner, replace(job.relation, window=unpaged))
    stamp = request.stamps[job.owner.pk]
    known = answer(whole, request.known, stamp)
    if known is not None:
        return len(known)
    if whole.is_whole_subtree:
        return [whole.table_span]
    return [whole.tier_span(level, depth) for level, depth in whole.tiers(stamp)]


def _sum(counts: Sequence[int | BaseException]) -> int | Exception:
    total = 0
    for count in counts:
        if isinstance(count, Exception):
            return count
        assert isinstance(count, int)  # together() raises what is no Exception  # noqa: S101
        total += count
    return total


async def _among_siblings(request: Request, jobs: Sequence[ListRequest]) -> dict[ListRequest, int | Exception]:
    """Their parents tell, or the hierarchy's stamp for roots."""
    parents = {job: parent_key(job) for job in jobs if not job.owner.is_root}
    records = await request.record_outcomes(parents.values())
    hierarchies = {job.owner.hierarchy for job in jobs if job.owner.is_root}
    stamps = await request.outcomes([], trees=hierarchies)
    found: dict[ListRequest, int | Exception] = {}
    for job in jobs:
        outcome = records[parents[job]] if job in parents else _stamp(request.stamps, stamps, job.owner.hierarchy)
        if isinstance(outcome, Exception):
            found[job] = outcome
        elif isinstance(outcome, TreeVersion):
            found[job] = others(job, outcome.levels())
        else:
            found[job] = others(job, outcome.kids if outcome else {})
    return found


def _stamp(
    stamps: Mapping[str, TreeVersion], outcomes: Mapping[Key, object], hierarchy: str
) -> TreeVersion | Exception:
    if hierarchy in stamps:
        return stamps[hierarchy]
    error = outcomes[tree_version_key(hierarchy)]
    assert isinstance(error, Exception)  # what is no stamp is why there is none  # noqa: S101
    return error


def parent_key(job: ListRequest) -> Key:
    """Where the parent of a list's owner lies."""
    return Key(job.owner.pk, parent_sort_key(job.owner.sk))


def others(job: ListRequest, family: Counts) -> int:
    """How many siblings the owner has among so many of each level, itself among them."""
    wanted = sum([count for level, count in family.items() if job.window.level in (None, level)])
    return wanted - (job.window.level in (None, job.owner.level))
