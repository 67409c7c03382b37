"""Tree state: everything about one tree that planning decides from, before it reads."""

from collections import defaultdict
from dataclasses import dataclass, field

from resolvers.planning.read_cost import ReadOption
from resolvers.session.records_read import Read, RecordsRead
from store.metadata.tree_version import TreeVersion
from store.model.keys import Index, KeyRange


@dataclass
class PlannedReads:
    """The reads that a plan has so far, by index and partition."""

    _reads: dict[tuple[Index, str], list[Read]] = field(default_factory=lambda: defaultdict(list))

    def __bool__(self) -> bool:
        return bool(self._reads)

    def add(self, option: ReadOption) -> None:
        for read in option.reads:
            self._reads[read.span.index, read.span.partition].append(read)

    def contain(self, span: KeyRange, limit: int | None = None, *, reverse: bool = False) -> bool:
        """Whether one of the reads returns a range, or its first (or last) `limit` records."""
        reads = self._reads.get((span.index, span.partition), ())
        return any(read.contains(span, limit, reverse=reverse) for read in reads)


@dataclass(frozen=True)
class TreeState:
    """The version of a tree with its counts, the records read and the reads planned so far, and the node budget."""

    version: TreeVersion
    records_read: RecordsRead
    planned: PlannedReads
    nodes_left: int
