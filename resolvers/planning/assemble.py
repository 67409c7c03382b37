"""A list's records, taken out of what is known."""

from operator import attrgetter

from resolvers.planning.cursors import CursorKind
from resolvers.planning.list_request import ListRequest
from resolvers.session.records_read import RecordsRead
from store.metadata.tree_version import TreeVersion
from store.model.records import Record

_SK = attrgetter("sk")


def answer(job: ListRequest, known: RecordsRead, stamp: TreeVersion) -> list[Record] | None:
    """A list's records in reading order, as many as its limit, or None where not all of them were read."""
    if job.is_empty:
        return []
    return _in_sibling_order(job, known) if job.in_sibling_order else _in_key_order(job, known, stamp)


def _in_sibling_order(job: ListRequest, known: RecordsRead) -> list[Record] | None:
    span = job.family_span
    found = known.take(span, job.limit, reverse=job.window.descending)
    if found is not None or job.order is CursorKind.SIBLINGS:
        return found
    family = known.family(job.owner, job.levels)
    if family is None:
        return None
    if job.window.is_narrow:
        family = [one for one in family if span.lo <= one.rank < span.hi]
    return _cut(family, job)


def _in_key_order(job: ListRequest, known: RecordsRead, stamp: TreeVersion) -> list[Record] | None:
    """Out of the owner's subtree, or of the tiers that the list lies in."""
    if job.is_whole_subtree:
        found = known.take(job.table_span, job.limit, reverse=job.window.descending)
        if found is not None:
            return found
    tiers = set(job.tiers(stamp))
    below = known.take(job.table_span)
    if below is not None:
        return _cut([one for one in below if (one.level, one.depth) in tiers], job)
    parts: list[Record] = []
    for level, depth in tiers:
        part = known.take(job.tier_span(level, depth), job.limit, reverse=job.window.descending)
        if part is None:
            return None
        parts += part
    parts.sort(key=_SK)
    return _cut(parts, job)


def _cut(records: list[Record], job: ListRequest) -> list[Record]:
    """Records in the list's own order, as reading them would have brought them."""
    return (records[::-1] if job.window.descending else records)[: job.limit]
