"""What one request has read so far, so that nothing is read twice.

Reads of ranges are kept as *runs*: everything that lies between two bounds of a partition. A narrower question is
answered from a run, and since a tier and a subtree hold whole families, children are answered from those runs as well.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from store.keys import Index, Key, Span, just_after, subtree, tier_below
from store.keys import children as children_span
from store.records import Record

_SORT = {Index.TABLE: attrgetter("sk"), Index.BY_PARENT: attrgetter("rank"), Index.BY_LEVEL: attrgetter("sk")}


@dataclass(frozen=True)
class Read:
    """One range read: a span, or so many of its first or (`reverse`) last records."""

    span: Span
    limit: int | None = None
    reverse: bool = False


@dataclass(frozen=True)
class _Run:
    """All records between two bounds of one partition, in its order; `keys` are their sort keys there."""

    lo: str
    hi: str
    keys: list[str]
    records: list[Record]


class Known:
    """The records that a request has read, by key, by range and by family."""

    def __init__(self) -> None:
        self.nodes: dict[Key, Record | None] = {}
        self._runs: dict[tuple[Index, str], list[_Run]] = {}
        self._families: dict[str, dict[str, Record]] = {}

    def add(self, read: Read, records: list[Record]) -> None:
        """Keep what a read brought; a read that met its limit tells only of what lies up to its last record."""
        span, lo, hi = read.span, read.span.lo, read.span.hi
        keys = list(map(_SORT[span.index], records))
        if read.reverse:
            records, keys = records[::-1], keys[::-1]
        if read.limit is not None and len(records) >= read.limit:
            if not records:
                return
            lo, hi = (keys[0], hi) if read.reverse else (lo, just_after(keys[-1]))
        self._runs.setdefault((span.index, span.partition), []).append(_Run(lo, hi, keys, records))
        for record in records:
            self.nodes[record.key] = record
        if span.index is not Index.BY_PARENT:
            for record in records:
                self._families.setdefault(record.siblings, {})[record.sk] = record

    def covers(self, span: Span) -> bool:
        """Whether all of a span was read."""
        return any(run.lo <= span.lo and span.hi <= run.hi for run in self._of(span))

    def take(self, span: Span, limit: int | None = None, *, reverse: bool = False) -> list[Record] | None:
        """A span's records, or its first (or last) `limit`, in reading order; None where not all of them were read."""
        for run in self._of(span):
            lo, hi = bisect_left(run.keys, span.lo), bisect_left(run.keys, span.hi)
            enough = limit is not None and hi - lo >= limit
            if reverse and span.hi <= run.hi and (run.lo <= span.lo or enough):
                found = run.records[lo:hi][::-1]
            elif not reverse and run.lo <= span.lo and (span.hi <= run.hi or enough):
                found = run.records[lo:hi]
            else:
                continue
            return found[:limit]
        return None

    def family(self, owner: Record, levels: Iterable[str]) -> list[Record] | None:
        """All children of these levels in sibling order, out of tiers or a subtree; None where not all were read."""
        wanted = set(levels)
        if not all(self.covers_children(owner, level) for level in wanted):
            return None
        family = self._families.get(owner.pk + owner.sk, {}).values()
        return sorted([child for child in family if child.level in wanted], key=attrgetter("rank"))

    def covers_children(self, owner: Record, level: str) -> bool:
        """Whether all children of one level were read in a range of a tier or a subtree."""
        return self.covers(tier_below(owner.pk, owner.sk, level, owner.depth + 1)) or self.covers(
            subtree(owner.pk, owner.sk).after(owner.sk)
        )

    def covers_siblings(self, parent: Record, first: Record, last: Record) -> bool:
        """Whether all that stand between two siblings of one level in sibling order were read."""
        span = children_span(parent.pk, parent.sk)
        return self.covers(Span(span.index, span.partition, first.rank, just_after(last.rank)))

    def between(self, pk: str, depth: int, lo: str, hi: str) -> Iterable[Record]:
        """The known records at one depth of a tree between two sort keys."""
        return [
            record
            for record in self.nodes.values()
            if record is not None and record.pk == pk and lo <= record.sk < hi and record.depth == depth
        ]

    def _of(self, span: Span) -> list[_Run]:
        return self._runs.get((span.index, span.partition), [])
