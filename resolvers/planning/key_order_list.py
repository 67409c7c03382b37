"""List in key order: a list that is a range of the table, or a range of each of its levels.

Descendants are such lists, and so are children in the order of their keys, or between bounds of them. The nodes of a
tree are in depth-first order in the table, and in the same order in the partition of their level and depth in
`by_level`. Bounds of keys and paths leave parts of these ranges.
"""

from functools import cached_property
from operator import attrgetter

from resolvers.planning.list_request import ListRequest
from resolvers.planning.read_cost import ReadOption
from resolvers.planning.tree_state import TreeState
from resolvers.session.records_read import RecordsRead
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import Index, KeyRange, just_after, level_range, prefix_end
from store.model.records import Record

_SK = attrgetter("sk")


class KeyOrderList(ListRequest, frozen=True, eq=False, dict=True):
    """A list whose cursors are positions in key order, relative to the owner."""

    @cached_property
    def key_ranges(self) -> list[KeyRange]:
        """`begins_with(sk, "#NE#")` without the owner itself, or parts of it, from cursor to cursor."""
        pk, sk, bounds = self.owner.pk, self.owner.sk, self.window.bounds
        spans = [(just_after(sk), prefix_end(sk))] if bounds is None else bounds.spans(self.owner)
        parts = [self.between_cursors(KeyRange(Index.TABLE, pk, lo, hi)) for lo, hi in spans]
        return [part for part in parts if part.lo < part.hi]

    def level_ranges(self, level: str, depth: int) -> list[KeyRange]:
        """The same in one partition of `by_level`."""
        return [level_range(self.owner.pk, level, depth, span.lo, span.hi) for span in self.key_ranges]

    @property
    def cursor_start(self) -> int | None:
        return len(self.owner.sk)

    def count_ranges(self, version: TreeVersion) -> list[KeyRange]:
        """The ranges that hold the whole list and nothing else."""
        if self.is_whole_subtree:
            return self.key_ranges
        return [span for part in self.level_depths(version) for span in self.level_ranges(*part)]

    def read_levels(self, tree: TreeState) -> ReadOption:
        """One Query of each level and depth."""
        return ReadOption.of(
            self.query(span, self.max_nodes(level, depth, tree.version), tree)
            for level, depth in self.level_depths(tree.version)
            for span in self.level_ranges(level, depth)
        )

    def max_nodes(self, level: str, depth: int, version: TreeVersion) -> int:
        """The maximum number of nodes of one level and depth in the list."""
        return min(self.counts.get(level, 0), version.shape[level_at_depth(level, depth)])

    def is_planned(self, tree: TreeState) -> bool:
        if all(tree.planned.contain(span) for span in self.key_ranges):
            return True
        if self.is_whole_subtree and super().is_planned(tree):
            return True
        parts = self.level_depths(tree.version)
        return bool(parts) and all(tree.planned.contain(span) for part in parts for span in self.level_ranges(*part))

    def records(self, records_read: RecordsRead, version: TreeVersion) -> list[Record] | None:
        if self.is_empty or not self.key_ranges:
            return []
        if self.is_whole_subtree and (found := super().records(records_read, version)) is not None:
            return found
        parts = set(self.level_depths(version))
        below = records_read.in_ranges(self.key_ranges)
        if below is not None:
            return self.cut([record for record in below if (record.level, record.depth) in parts])
        records: list[Record] = []
        for part in parts:
            found = records_read.in_ranges(self.level_ranges(*part), self.window.limit, reverse=self.window.descending)
            if found is None:
                return None
            records += found
        records.sort(key=_SK)
        return self.cut(records)
