"""Children: from a node to the nodes right under it.

| field | index | key condition | requests for 1 node | for N nodes |
| --- | --- | --- | --- | --- |
| `children` | `by_parent` | `parent = "location#US#NE#"` | 1 | N |
| `children(level: CITY)` | `by_parent` | the same, `begins_with(rank, "CITY#")` | 1 | N |
| `children(level: [CITY, STORE])` | `by_parent` | the same of each level | 1 a level | N a level |
| `children` of siblings | `by_level` | `tier = "location#US@CITY@2"`, `sk` from first to last | – | 1 a level |
| `children(orderBy: {field: KEY})` | `by_level` | `tier`, `begins_with(sk, "#NE#")` | 1 a level | N a level |
| `children(where: {key: {lt: "c"}})` | `by_level` | `tier`, `sk` up to `#NE#c#` | 1 a level | N a level |

The children of adjacent siblings are adjacent in the partition of their level and depth, so one Query returns them for
all siblings, with one more for each further level of children. If the siblings are not adjacent, or with `first`, this
is compared with one Query for each parent, and the cheaper way is taken. Levels below are prefetched where all of them
are requested (`lists/prefetch.py`).

Batched by the dataloader `Loaders.page`, for a whole response level. With `first` the limit of a Query is one more,
which tells whether another page follows (`ConnectionArguments.limit`).
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from operator import attrgetter
from typing import ClassVar, Self

from resolvers.lists.arguments import CursorKind
from resolvers.lists.list_request import KeyOrderList, ListRequest, ReadOption, TreeState, cheapest
from resolvers.lists.prefetch import bounds, max_extra_children, sorted_owners
from resolvers.session.records_read import Read, RecordsRead
from store.metadata.tree_version import TreeVersion
from store.model.keys import KeyRange, below, children, level_range
from store.model.records import Record


class ChildrenRequest(ListRequest, frozen=True, eq=False, dict=True):
    """The children of one node in sibling order."""

    cursor_kind: ClassVar[CursorKind] = CursorKind.CHILDREN

    @cached_property
    def key_ranges(self) -> list[KeyRange]:
        """`parent = :owner` in `by_parent`, of each level `begins_with(rank, "CITY#")`, from cursor to cursor."""
        pk, sk, arguments = self.owner.pk, self.owner.sk, self.relation.arguments
        levels = sorted(self.levels) if len(arguments.levels) > 1 else arguments.levels or (None,)
        return [arguments.between_cursors(children(pk, sk, level), self.decode) for level in levels]

    @classmethod
    def plan_reads(cls, lists: Sequence[Self], tree: TreeState) -> ReadOption:
        separate = ReadOption.all(requested.separate_query(tree) for requested in lists)
        if len(lists) == 1:
            return separate
        options = [separate, _one_query_per_level(lists, tree)]
        families: dict[str, list[Self]] = defaultdict(list)
        for requested in lists:
            families[requested.owner.siblings].append(requested)
        if 1 < len(families) < len(lists):
            options.append(ReadOption.all(cls.plan_reads(family, tree) for family in families.values()))
        possible = [option for option in options if tree.budget.allows(len(option.reads), option.units)]
        return cheapest(*possible or options)

    def separate_query(self, tree: TreeState) -> ReadOption:
        """One Query of the children of this owner, or one for each of several levels."""
        if len(self.relation.arguments.levels) < 2:
            return ReadOption.of([self.query(self.key_ranges[0], self.max_size, tree)])
        spans = zip(self.key_ranges, sorted(self.levels), strict=True)
        return ReadOption.of([self.query(span, self.counts[level], tree) for span, level in spans])

    def is_planned(self, tree: TreeState) -> bool:
        if super().is_planned(tree):
            return True
        subtree = below(self.owner.pk, self.owner.sk)
        if tree.planned.contain(subtree):
            return True
        parts = self.level_depths(tree.version)
        return bool(parts) and all(
            tree.planned.contain(level_range(self.owner.pk, level, depth, subtree.lo, subtree.hi))
            for level, depth in parts
        )

    def records(self, records_read: RecordsRead, version: TreeVersion) -> list[Record] | None:
        if self.is_empty:
            return []
        found = super().records(records_read, version)
        if found is not None:
            return found
        family = records_read.children(self.owner, self.levels)
        if family is not None and self.relation.arguments.is_narrow:
            spans = self.key_ranges
            family = [child for child in family if any(span.lo <= child.rank < span.hi for span in spans)]
        return None if family is None else self.cut(family)


class ChildrenByKeyRequest(KeyOrderList, frozen=True, eq=False, dict=True):
    """The children of one node in the order of their keys, all or between bounds."""

    cursor_kind: ClassVar[CursorKind] = CursorKind.CHILDREN_BY_KEY

    @classmethod
    def plan_reads(cls, lists: Sequence[Self], tree: TreeState) -> ReadOption:
        return ReadOption.all(requested.read_levels(tree) for requested in lists)


class ChildrenBetweenRequest(ChildrenByKeyRequest, frozen=True, eq=False, dict=True):
    """All children of one node between bounds of their keys, by position: ranks differ from keys after a reorder."""

    cursor_kind: ClassVar[CursorKind] = CursorKind.CHILDREN

    @property
    def cursor_start(self) -> int | None:
        return None

    def records(self, records_read: RecordsRead, version: TreeVersion) -> list[Record] | None:
        found = super().records(records_read, version)
        return None if found is None else sorted(found, key=attrgetter("rank"))


def _one_query_per_level(lists: Sequence[ChildrenRequest], tree: TreeState) -> ReadOption:
    """For each level of children one Query, from the first parent that has such children to the last."""
    reads = []
    for level in sorted({level for requested in lists for level in requested.levels}):
        owners = sorted_owners(requested for requested in lists if level in requested.levels)
        items = sum([owner.kids[level] for owner in owners]) + max_extra_children(owners, level, tree)
        reads.append((Read(level_range(owners[0].pk, level, owners[0].depth + 1, *bounds(owners))), items))
    return ReadOption.of(reads)
