"""List in key order: a list that is one range of the table, or one range of each of its levels.

Descendants are such lists, and so are children between `from` and `to`. The nodes of a tree are in depth-first order in
the table, and in the same order in the partition of their level and depth in `by_level`.
"""

from functools import cached_property
from operator import attrgetter

from resolvers.planning.list_request import ListRequest
from resolvers.planning.read_cost import ReadOption
from resolvers.planning.tree_state import TreeState
from resolvers.session.records_read import RecordsRead
from store.errors import BadInput
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import MAX_SORT_KEY_BYTES, Index
from store.model.ranges import KeyRange, level_range, segments_between
from store.model.records import Record

_SK = attrgetter("sk")


class KeyOrderList(ListRequest, frozen=True, eq=False, dict=True):
    """A list whose cursors are positions in key order, relative to the owner."""

    @cached_property
    def key_range(self) -> KeyRange:
        """`begins_with(sk, "#NE#")` without the owner itself, from bound to bound and from cursor to cursor."""
        lo, hi = segments_between(self.owner.sk, self.window.start, self.window.end)
        return self.between_cursors(KeyRange(Index.TABLE, self.owner.pk, lo, hi))

    def level_range(self, level: str, depth: int) -> KeyRange:
        """The same `begins_with` in one partition of `by_level`."""
        span = self.key_range
        return level_range(self.owner.pk, level, depth, span.lo, span.hi)

    @property
    def cursor_start(self) -> int:
        return len(self.owner.sk)

    def check(self) -> None:
        super().check()
        ends = (self.key_range.lo, self.key_range.hi) if self.window.is_bounded else ()
        if any(len(end.encode()) > MAX_SORT_KEY_BYTES for end in ends):
            raise BadInput(f"from or to is longer than any key below this node; a key has {MAX_SORT_KEY_BYTES} bytes.")

    def count_ranges(self, version: TreeVersion) -> list[KeyRange]:
        """The ranges that hold the whole list and nothing else."""
        if self.is_whole_subtree:
            return [self.key_range]
        return [self.level_range(level, depth) for level, depth in self.level_depths(version)]

    def read_levels(self, tree: TreeState) -> ReadOption:
        """One Query of each level and depth."""
        return ReadOption.of(
            self.query(self.level_range(level, depth), self.max_nodes(level, depth, tree.version), tree)
            for level, depth in self.level_depths(tree.version)
        )

    def max_nodes(self, level: str, depth: int, version: TreeVersion) -> int:
        """The maximum number of nodes of one level and depth in the list."""
        return min(self.counts.get(level, 0), version.shape[level_at_depth(level, depth)])

    def is_planned(self, tree: TreeState) -> bool:
        if tree.planned.contain(self.key_range) or (self.is_whole_subtree and super().is_planned(tree)):
            return True
        parts = self.level_depths(tree.version)
        return bool(parts) and all(tree.planned.contain(self.level_range(*part)) for part in parts)

    def records(self, records_read: RecordsRead, version: TreeVersion) -> list[Record] | None:
        if self.is_empty:
            return []
        if self.is_whole_subtree and (found := super().records(records_read, version)) is not None:
            return found
        parts = set(self.level_depths(version))
        below = records_read.in_range(self.key_range)
        if below is not None:
            return self.cut([record for record in below if (record.level, record.depth) in parts])
        records: list[Record] = []
        for part in parts:
            found = records_read.in_range(self.level_range(*part), self.limit, reverse=self.window.descending)
            if found is None:
                return None
            records += found
        records.sort(key=_SK)
        return self.cut(records)
