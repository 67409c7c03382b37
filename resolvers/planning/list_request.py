"""List request: one list of one node, with the arguments of its field.

The kinds of lists are subclasses in `resolvers/children.py` and `descendants.py`: each has the key
ranges that it reads, and decides how a response level of such lists is read. All lists of a level are decided together
from counts, which every record has, so a ListRequest computes from values and reads nothing.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Self

from msgspec import Struct

from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.cursors import CursorKind, ListCursors, by_key_from, by_rank
from resolvers.planning.read_cost import ReadOption
from resolvers.planning.relations import Relation
from resolvers.planning.tree_state import TreeState
from resolvers.session.records_read import Read, RecordsRead
from store.errors import BadCursor
from store.metadata.tree_version import TreeVersion
from store.model.keys import MAX_SEGMENTS, MAX_SORT_KEY_BYTES, KeyRange
from store.model.records import Counts, Record


class ListRequest(Struct, frozen=True, eq=False, dict=True):
    """A list of the nodes that a relation of `owner` leads to."""

    owner: Record
    relation: Relation
    cursor_kind: ClassVar[CursorKind]

    # -- the kind of list ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def key_ranges(self) -> list[KeyRange]:
        """The ranges that the list consists of, in its order and from cursor to cursor: one, or more of several levels
        or bounds.
        """

    @classmethod
    @abstractmethod
    def plan_reads(cls, lists: Sequence[Self], tree: TreeState) -> ReadOption:
        """The cheapest reads of lists that have the same arguments, of different owners at one depth of a tree."""

    @property
    def counts(self) -> Counts:
        """The owner's counts of the nodes in the whole list, by level."""
        return self.owner.kids

    @property
    def max_depth(self) -> int:
        """The depth in the tree of the deepest nodes that can be in the list."""
        return self.owner.depth + 1

    @property
    def is_whole_subtree(self) -> bool:
        """Whether all levels at all depths are in the list."""
        return False

    @property
    def cursor_start(self) -> int | None:
        """The position of a record in cursors: its sort key from here on, None for its rank."""
        return None

    @property
    def cursors(self) -> ListCursors:
        start = self.cursor_start
        return ListCursors(self.cursor_kind, self.owner.id, by_rank if start is None else by_key_from(start))

    # -- its place in the page cache -----------------------------------------------------------------------------------

    @property
    def cache_key(self) -> Hashable:
        return self.owner.pk, self.owner.sk, self.relation.page_key

    # -- its size ------------------------------------------------------------------------------------------------------

    @property
    def window(self) -> ConnectionArguments:
        return self.relation.window

    @cached_property
    def levels(self) -> list[str]:
        """The levels of the nodes in the list."""
        has_level = self.relation.window.has_level
        return [name for name, count in self.counts.items() if count and has_level(name)]

    @cached_property
    def max_size(self) -> int:
        """The maximum length of the list without paging; its length if `is_exact`."""
        return sum(self.counts[level] for level in self.levels)

    @property
    def is_exact(self) -> bool:
        """Whether the owner's counts give the length of the list."""
        return self.window.bounds is None and self.window.max_depth is None

    @property
    def is_empty(self) -> bool:
        """Whether the owner's counts show that the list is empty."""
        return not self.levels

    @property
    def needs_nodes(self) -> bool:
        """Whether records have to be read; for `first: 0` the counts are enough where they are exact."""
        return self.relation.nodes and (self.window.size != 0 or self.window.is_narrow or not self.is_exact)

    def min_size(self, versions: Mapping[str, TreeVersion]) -> int:
        """The minimum number of nodes on the page, from the counts alone."""
        window = self.window
        if not self.relation.nodes or window.is_narrow:
            return 0
        least = self.max_size
        if not self.is_exact:  # count the levels that are nowhere deeper in the tree than the list goes
            depths = versions[self.owner.pk].depths
            inside = [level for level in self.levels if max(depths(level), default=MAX_SEGMENTS) <= self.max_depth]
            least = sum([self.counts[level] for level in inside])
        return least if window.size is None else min(least, window.size)

    # -- its reads -----------------------------------------------------------------------------------------------------

    def query(self, span: KeyRange, items: int, tree: TreeState) -> tuple[Read, int]:
        """One Query of a range of `items` items, and the number of items that it returns.

        Where the counts give no maximum, its Limit is no more than the node budget allows.
        """
        limit = self.window.limit
        items = items if limit is None else min(items, limit)
        if not self.is_exact:
            limit = min(limit or tree.nodes_left + 2, tree.nodes_left + 2)
        return Read(span, limit, self.window.descending), items

    def is_planned(self, tree: TreeState) -> bool:
        """Whether the planned reads return the list."""
        reverse = self.window.descending
        return all(tree.planned.contain(span, self.window.limit, reverse=reverse) for span in self.key_ranges)

    def records(self, records_read: RecordsRead, version: TreeVersion) -> list[Record] | None:
        """The list out of what was read, in reading order and up to its limit; None if some of it was not read."""
        return records_read.in_ranges(self.key_ranges, self.window.limit, reverse=self.window.descending)

    def level_depths(self, version: TreeVersion) -> list[tuple[str, int]]:
        """Level and depth of all nodes that can be in the list: one partition of `by_level` each."""
        top, deepest = self.owner.depth, self.max_depth
        return [(level, depth) for level, depth in version.tiers() if top < depth <= deepest and level in self.levels]

    def cut(self, records: list[Record]) -> list[Record]:
        """Records in key order or sibling order as a Query of the list would return them."""
        return (records[::-1] if self.window.descending else records)[: self.window.limit]

    # -- its cursors ---------------------------------------------------------------------------------------------------

    def between_cursors(self, span: KeyRange) -> KeyRange:
        """The part of a range of this list between the cursors."""
        return self.window.between_cursors(span, self._decode)

    def _decode(self, cursor: str) -> str:
        prefix = "" if self.cursor_start is None else self.owner.sk[: self.cursor_start]
        position = prefix + self.cursors.decode(cursor)
        if len(position.encode()) >= MAX_SORT_KEY_BYTES:  # a bound after it is one byte longer
            raise BadCursor("The position in the cursor is longer than any key; use a cursor of this list.")
        return position

    def check(self) -> None:
        """Raise BadCursor for a cursor of another list."""
        self.window.positions(self._decode)
