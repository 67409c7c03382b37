"""Records that one request has read so far, so that nothing is read twice.

Reads of ranges are kept as *runs*: everything that lies between two bounds of a partition. Runs that touch become one,
so whatever was read around a key is in one run, and a narrower question is answered by two searches in it. Since a
tier and a subtree hold whole families, children are answered from those runs as well.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from store.model.keys import Index, Key
from store.model.ranges import (
    KeyRange,
    just_after,
    level_range,
    subtree,
)
from store.model.records import Record

_SORT = {Index.TABLE: attrgetter("sk"), Index.BY_PARENT: attrgetter("rank"), Index.BY_LEVEL: attrgetter("sk")}
_RANK, _LO = attrgetter("rank"), attrgetter("lo")


@dataclass(frozen=True)
class Read:
    """One range read: a span, or so many of its first or (`reverse`) last records."""

    span: KeyRange
    limit: int | None = None
    reverse: bool = False

    def answers(self, span: KeyRange, limit: int | None, *, reverse: bool) -> bool:
        """Whether what it brings tells a span's records, or its first (or last) `limit`, however many it finds."""
        mine = self.span
        if (mine.index, mine.partition) != (span.index, span.partition) or span.lo < mine.lo or mine.hi < span.hi:
            return False
        if self.limit is None:
            return True
        same_begin = mine.hi == span.hi if reverse else mine.lo == span.lo
        return limit is not None and limit <= self.limit and reverse == self.reverse and same_begin


@dataclass(frozen=True)
class _Run:
    """All records between two bounds of one partition, in its order; `keys` are their sort keys there."""

    lo: str
    hi: str
    keys: list[str]
    records: list[Record]

    def over(self, older: list["_Run"]) -> "_Run":
        """This run with what older ones, which touch it, hold in front of it and behind it."""
        first, last = older[0], older[-1]
        front, rear = bisect_left(first.keys, self.lo), bisect_left(last.keys, self.hi)
        return _Run(
            min(first.lo, self.lo),
            max(last.hi, self.hi),
            first.keys[:front] + self.keys + last.keys[rear:],
            first.records[:front] + self.records + last.records[rear:],
        )


class RecordsRead:
    """The records that a request has read, by key, by range and by family."""

    def __init__(self) -> None:
        self.current: dict[Key, Record | None] = {}
        """Nodes that were looked up strongly; what a range tells of them may be older."""
        self._nodes: dict[Key, Record | None] = {}
        self._unkeyed: list[list[Record]] = []  # out of ranges; nobody has asked for nodes by key since
        self._runs: dict[tuple[Index, str], list[_Run]] = {}  # sorted; none touches another
        self._families: dict[str, dict[str, Record]] = {}  # out of subtrees; a tier's lie side by side in its run
        self._unfiled: list[list[Record]] = []  # subtrees that nobody has asked for families yet

    @property
    def nodes(self) -> dict[Key, Record | None]:
        """All nodes that were met, by key; None where it is known that there is none."""
        if self._unkeyed:
            for records in self._unkeyed:
                # A plain pair finds what a Key does, and a thousand of them take half the time.
                self._nodes.update({(record.pk, record.sk): record for record in records})  # type: ignore[misc]
            self._unkeyed.clear()
            self._nodes.update(self.current)
        return self._nodes

    def add(self, read: Read, records: list[Record]) -> None:
        """Keep what a read brought; a read that met its limit tells only of what lies up to its last record."""
        span, lo, hi = read.span, read.span.lo, read.span.hi
        if lo >= hi or read.limit == 0:
            return
        keys = list(map(_SORT[span.index], records))
        if read.reverse:
            records, keys = records[::-1], keys[::-1]
        if read.limit is not None and len(records) >= read.limit:
            lo, hi = (keys[0], hi) if read.reverse else (lo, just_after(keys[-1]))
        self._keep(self._runs.setdefault((span.index, span.partition), []), _Run(lo, hi, keys, records))
        self._unkeyed.append(records)
        if span.index is Index.TABLE:
            self._unfiled.append(records)

    def _keep(self, runs: list[_Run], run: _Run) -> None:
        begin = bisect_left(runs, run.lo, key=attrgetter("hi"))
        end = bisect_right(runs, run.hi, key=_LO)
        runs[begin:end] = [run.over(runs[begin:end]) if begin < end else run]

    def covers(self, span: KeyRange) -> bool:
        """Whether all of a span was read."""
        if span.lo >= span.hi:
            return True
        run = self._run_at(span, at_end=False)
        return run is not None and run.lo <= span.lo and span.hi <= run.hi

    def take(self, span: KeyRange, limit: int | None = None, *, reverse: bool = False) -> list[Record] | None:
        """A span's records, or its first (or last) `limit`, in reading order; None where not all of them were read."""
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

    def _run_at(self, span: KeyRange, *, at_end: bool) -> _Run | None:
        """The run that holds the beginning of a span, or its end."""
        runs = self._runs.get((span.index, span.partition), [])
        place = bisect_left(runs, span.hi, key=_LO) if at_end else bisect_right(runs, span.lo, key=_LO)
        if place == 0:
            return None
        run = runs[place - 1]
        return run if (span.hi <= run.hi if at_end else span.lo < run.hi) else None

    def family(self, owner: Record, levels: Iterable[str]) -> list[Record] | None:
        """All children of these levels in sibling order, out of tiers or a subtree; None where not all were read."""
        found: list[Record] = []
        for level in levels:
            end = owner.sk[:-1] + "$"
            children = self.take(level_range(owner.pk, level, owner.depth + 1, just_after(owner.sk), end))
            if children is None:
                children = self._out_of_subtree(owner, level)
            if children is None:
                return None
            found += children
        found.sort(key=_RANK)
        return found

    def _out_of_subtree(self, owner: Record, level: str) -> list[Record] | None:
        if not self.covers(subtree(owner.pk, owner.sk).after(owner.sk)):
            return None
        for records in self._unfiled:
            for record in records:
                self._families.setdefault(record.siblings, {})[record.sk] = record
        self._unfiled.clear()
        family = self._families.get(owner.pk + owner.sk, {}).values()
        return [child for child in family if child.level == level]
