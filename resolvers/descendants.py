"""Descendants: from a node to all nodes below it.

| field | index | key condition | requests for 1 node | for N nodes |
| --- | --- | --- | --- | --- |
| `descendants` | table | `pk = "location#US"`, `begins_with(sk, "#NE#")` without `"#NE#"` | 1 | N |
| `descendants(level: CITY)` | `by_level` | `tier = "location#US@CITY@2"`, the same | 1 a depth | N a depth |
| `descendants(maxDepth: 2)` | `by_level` | the same | 1 a level and depth | N times that |
| `descendants(where: {path: {gte: "US/NE/a", lt: "US/NE/c"}})` | table | `sk` from `#NE#a#` to `#NE#c#` | 1 | N |
| all but the last, of siblings | the same | `sk` from the first to the end of the last subtree | – | as for 1 |

A level or depth that is most of the subtree is filtered out of one range of the table instead, if that consumes less.
Only the descendants of adjacent siblings are one range; other nodes have one Query each.

Batched by the dataloader `Loaders.page`, for a whole response level.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

from resolvers.lists.arguments import NOTHING, ConnectionArguments, CursorKind, Relation, RelationKind
from resolvers.lists.list_request import KeyOrderList, ReadOption, TreeState, cheapest
from resolvers.lists.prefetch import bounds, is_gapless, sorted_owners
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import MAX_SEGMENTS, Index, KeyRange, level_range
from store.model.records import Counts, Record


class DescendantsRequest(KeyOrderList, frozen=True, eq=False, dict=True):
    """The descendants of one node in path order."""

    cursor_kind: ClassVar[CursorKind] = CursorKind.DESCENDANTS

    @property
    def counts(self) -> Counts:
        return self.owner.descendant_counts

    @property
    def is_empty(self) -> bool:
        return super().is_empty if self.owner.below is not None else not self.owner.kids

    @property
    def max_depth(self) -> int:
        deepest = self.relation.arguments.max_depth
        return self.owner.depth + (MAX_SEGMENTS if deepest is None else deepest)

    @property
    def is_deep(self) -> bool:
        return True

    def possible_levels(self, hierarchy: Hierarchy) -> list[Level]:
        found, ahead = set[str | None](), {self.owner.level}
        for _ in range(self.max_depth - self.owner.depth):
            ahead = {one.name for one in hierarchy.levels.values() if one.under & ahead} - found
            if not ahead:  # a client may give a depth of billions
                break
            found |= ahead
        has_level = self.relation.arguments.has_level
        return [one for one in hierarchy.levels.values() if one.name in found and has_level(one.name)]

    async def read_size(self, request: Request) -> int:
        if self.owner.below is None:  # a root out of a list, whose counts are in the version of its tree
            return sum((await self.level_counts(request)).values())
        return self.max_size

    def between(self, hierarchy: Hierarchy) -> Self | None:
        arguments = self.relation.arguments
        above = levels_between(hierarchy, arguments.levels or tuple(hierarchy.levels), arguments)
        return None if self.owner.below is None or above is None else self.of(above)

    @property
    def is_whole_subtree(self) -> bool:
        return not self.relation.arguments.levels and self.relation.arguments.max_depth is None

    @classmethod
    def plan_reads(cls, lists: Sequence[Self], tree: TreeState) -> ReadOption:
        separate = ReadOption.all(requested.separate_query(tree) for requested in lists)
        owners = sorted_owners(lists)
        if len(lists) == 1 or lists[0].relation.arguments.is_narrow or not is_gapless(owners, tree):
            return separate
        return cheapest(separate, _one_range(lists, owners, tree))

    def separate_query(self, tree: TreeState) -> ReadOption:
        """The range of the table, or only the ranges of the levels that are requested."""
        if self.is_whole_subtree:
            return ReadOption.of([self.query(span, self.max_size, tree) for span in self.key_ranges])
        below = sum(self.counts.values())
        whole = ReadOption.of([(Read(span), below) for span in self.key_ranges])
        return cheapest(self.read_levels(tree), whole)


def levels_between(hierarchy: Hierarchy, listed: Sequence[str], arguments: ConnectionArguments) -> Relation | None:
    """All nodes below a node that may be above nodes of the listed levels and are not in their list; None where there
    are none. Bounds leave out some of the listed levels, too.
    """
    levels = hierarchy.levels_above(listed)
    levels -= {*listed} if arguments.bounds is None else set()
    depth = None if arguments.max_depth is None else arguments.max_depth - 1
    if not levels or (depth is not None and depth < 1):
        return None
    above = ConnectionArguments(levels=tuple(sorted(levels)), max_depth=depth, compared=True)
    return Relation(RelationKind.DESCENDANTS, above, NOTHING)


def _one_range(lists: Sequence[DescendantsRequest], owners: list[Record], tree: TreeState) -> ReadOption:
    """The subtrees of adjacent siblings as one range of the table, or of each level and depth that is requested."""
    pk, (lo, hi) = owners[0].pk, bounds(owners)
    items = sum([sum(owner.descendant_counts.values()) for owner in owners]) + len(owners)
    whole = ReadOption.of([(Read(KeyRange(Index.TABLE, pk, lo, hi)), items)])
    if lists[0].is_whole_subtree:
        return whole
    parts = sorted({part for requested in lists for part in requested.level_depths(tree.version)})
    by_level = [
        (
            Read(level_range(pk, level, depth, lo, hi)),
            sum([requested.max_nodes(level, depth, tree.version) for requested in lists]),
        )
        for level, depth in parts
    ]
    return cheapest(ReadOption.of(by_level), whole)
