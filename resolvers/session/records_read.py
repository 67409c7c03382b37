"""Records read: the nodes that one request has read so far, so that none is read twice.

A range that was read is stored as a *run*: all records between two bounds of a partition. Adjacent runs are merged, so
everything that was read around a key is in one run, and a narrower range is found by two binary searches. A run of a
level or of a subtree contains all children of its parents, so lists of children are taken from those runs as well.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from store.model.keys import Index, Key, KeyRange, just_after, level_range, prefix_end, siblings, subtree
from store.model.records import Record

_SORT = {Index.TABLE: attrgetter("sk"), Index.BY_PARENT: attrgetter("rank"), Index.BY_LEVEL: attrgetter("sk")}
_RANK, _LO, _HI = attrgetter("rank"), attrgetter("lo"), attrgetter("hi")


@dataclass(frozen=True)
class Read:
    """One read of a range: all of its records, or the first or (`reverse`) last `limit`."""

    span: KeyRange
    limit: int | None = None
    reverse: bool = False

    def contains(self, span: KeyRange, limit: int | None, *, reverse: bool) -> bool:
        """Whether it returns all records of `span`, or its first (or last) `limit`, whatever is stored."""
        mine = self.span
        if (mine.index, mine.partition) != (span.index, span.partition) or span.lo < mine.lo or mine.hi < span.hi:
            return False
        if self.limit is None:
            return True
        same_begin = mine.hi == span.hi if reverse else mine.lo == span.lo
        return limit is not None and limit <= self.limit and reverse == self.reverse and same_begin


@dataclass(frozen=True)
class _Run:
    """All records between two bounds of one partition, in its order, and their sort keys there."""

    lo: str
    hi: str
    keys: list[str]
    records: list[Record]

    def over(self, older: list["_Run"]) -> "_Run":
        """This run merged with the older runs that it touches; where they overlap, this one counts."""
        first, last = older[0], older[-1]
        front, rear = bisect_left(first.keys, self.lo), bisect_left(last.keys, self.hi)
        return _Run(
            min(first.lo, self.lo),
            max(last.hi, self.hi),
            first.keys[:front] + self.keys + last.keys[rear:],
            first.records[:front] + self.records + last.records[rear:],
        )


class RecordsRead:
    """The records that a request has read, by key, by range and by parent."""

    def __init__(self) -> None:
        self.strong_nodes: dict[Key, Record | None] = {}
        """Nodes that were read by key with strong consistency; their records in ranges may be older."""
        self._nodes: dict[Key, Record | None] = {}
        self._unkeyed: list[list[Record]] = []  # of ranges; added to `nodes` when it is used next
        self._runs: dict[tuple[Index, str], list[_Run]] = {}  # sorted; none touches another
        self._children: dict[str, dict[str, Record]] = {}  # of subtrees, by parent and key
        self._ungrouped: list[list[Record]] = []  # of subtrees; added to `_children` when it is used next

    @property
    def nodes(self) -> dict[Key, Record | None]:
        """All nodes that were read, by key; None where there is none."""
        if self._unkeyed:
            for records in self._unkeyed:
                # A tuple is equal to a Key, and is made in half the time.
                self._nodes.update({(record.pk, record.sk): record for record in records})  # type: ignore[misc]
            self._unkeyed.clear()
            self._nodes.update(self.strong_nodes)
        return self._nodes

    def add(self, read: Read, records: list[Record]) -> None:
        """Add the records of a read; one that reached its limit covers the range up to its last record only."""
        span, lo, hi = read.span, read.span.lo, read.span.hi
        if lo >= hi or read.limit == 0:
            return
        keys = list(map(_SORT[span.index], records))
        if read.reverse:
            records, keys = records[::-1], keys[::-1]
        if read.limit is not None and len(records) >= read.limit:
            lo, hi = (keys[0], hi) if read.reverse else (lo, just_after(keys[-1]))
        run, runs = _Run(lo, hi, keys, records), self._runs.setdefault((span.index, span.partition), [])
        begin, end = bisect_left(runs, lo, key=_HI), bisect_right(runs, hi, key=_LO)
        runs[begin:end] = [run.over(runs[begin:end]) if begin < end else run]
        self._unkeyed.append(records)
        if span.index is Index.TABLE:
            self._ungrouped.append(records)

    def in_range(self, span: KeyRange, limit: int | None = None, *, reverse: bool = False) -> list[Record] | None:
        """The records of a range, or the first (or last) `limit`, in reading order; None if some were not read."""
        if span.lo >= span.hi:
            return []
        run = self._run_at(span, at_end=reverse)
        if run is None:
            return None
        lo, hi = bisect_left(run.keys, span.lo), bisect_left(run.keys, span.hi)
        is_whole = run.lo <= span.lo and span.hi <= run.hi
        if not is_whole and (limit is None or hi - lo < limit):
            return None
        if reverse:
            return run.records[lo if limit is None else max(lo, hi - limit) : hi][::-1]
        return run.records[lo : hi if limit is None else min(hi, lo + limit)]

    def in_ranges(
        self, spans: Sequence[KeyRange], limit: int | None = None, *, reverse: bool = False
    ) -> list[Record] | None:
        """The same of ranges that follow one another in the order of a list."""
        if len(spans) == 1:
            return self.in_range(spans[0], limit, reverse=reverse)
        records: list[Record] = []
        for span in spans[::-1] if reverse else spans:
            rest = None if limit is None else limit - len(records)
            if rest is not None and rest <= 0:
                break
            if (found := self.in_range(span, rest, reverse=reverse)) is None:
                return None
            records += found
        return records

    def _run_at(self, span: KeyRange, *, at_end: bool) -> _Run | None:
        """The run that contains the first key of a range, or its last."""
        runs = self._runs.get((span.index, span.partition), [])
        place = bisect_left(runs, span.hi, key=_LO) if at_end else bisect_right(runs, span.lo, key=_LO)
        if place == 0:
            return None
        run = runs[place - 1]
        return run if (span.hi <= run.hi if at_end else span.lo < run.hi) else None

    def children(self, owner: Record, levels: Iterable[str]) -> list[Record] | None:
        """All children of these levels in sibling order, from any run; None if some were not read."""
        found: list[Record] = []
        for level in levels:
            children = self.in_range(
                level_range(owner.pk, level, owner.depth + 1, just_after(owner.sk), prefix_end(owner.sk))
            )
            if children is None:
                children = self._in_subtree(owner, level)
            if children is None:
                return None
            found += children
        found.sort(key=_RANK)
        return found

    def _in_subtree(self, owner: Record, level: str) -> list[Record] | None:
        span = subtree(owner.pk, owner.sk).after(owner.sk)
        run = self._run_at(span, at_end=False)
        if run is None or span.lo < run.lo or run.hi < span.hi:
            return None
        for records in self._ungrouped:
            for record in records:
                self._children.setdefault(record.siblings, {})[record.sk] = record
        self._ungrouped.clear()
        children = self._children.get(owner.pk + owner.sk, {}).values()
        ranks = siblings(owner.pk + owner.sk, level)  # they have a damaged `level`, too, which their reader reports
        lo, hi = ranks.lo, ranks.hi
        return [child for child in children if lo <= child.rank < hi]
