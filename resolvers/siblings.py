"""Siblings: from a node to the other nodes under its parent.

| field | index | key condition | requests for 1 node | for N nodes |
| --- | --- | --- | --- | --- |
| `siblings` | `by_parent` | `parent = "location#US#NE#"`, of roots `"location"` | 1 | 1 for each parent |
| `siblings(level: CITY)` | `by_parent` | the same, `begins_with(rank, "CITY#")` | 1 | 1 for each parent |
| `totalCount` | table | key of the parent, or of the version of the hierarchy | 1 | 1 |

The node itself is in the range, and is left out of the list. Batched by the dataloader `Loaders.page`, for a whole
response level.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Self

from resolvers.outcomes import Outcome, is_error
from resolvers.planning.cursors import CursorKind
from resolvers.planning.list_request import ListRequest, ReadOption, TreeState
from resolvers.session.read_state import ReadState
from resolvers.session.records_read import RecordsRead
from store.metadata.tree_version import TreeVersion
from store.model.keys import Key, parent_sort_key
from store.model.ranges import KeyRange, siblings
from store.model.records import Counts


class SiblingsRequest(ListRequest, frozen=True, eq=False, dict=True):
    """The siblings of one node in their order. The counts of the owner do not give its length.

    The records that are read contain the owner.
    """

    cursor_kind: ClassVar[CursorKind] = CursorKind.SIBLINGS

    @property
    def tree(self) -> str | None:
        return None if self.owner.is_root else self.owner.pk  # each sibling of a root is in a tree of its own

    @property
    def is_exact(self) -> bool:
        return False

    @property
    def is_empty(self) -> bool:
        return False

    @property
    def limit(self) -> int | None:
        """One more than for other lists, since the node itself may be among the records."""
        limit = self.window.limit
        return None if limit is None else limit + 1

    @property
    def parent_key(self) -> Key:
        return Key(self.owner.pk, parent_sort_key(self.owner.sk))

    @cached_property
    def key_ranges(self) -> list[KeyRange]:
        """`parent = :parent` in `by_parent`, of each level `begins_with(rank, "CITY#")`, from cursor to cursor."""
        return [self.between_cursors(siblings(self.owner.siblings, level)) for level in self.window.level_or_all]

    @classmethod
    def plan_reads(cls, lists: Sequence[Self], tree: TreeState) -> ReadOption:
        """One Query of each parent's children, or one for each of several levels."""
        ranges = {span: requested for requested in lists for span in requested.key_ranges}
        return ReadOption.of(requested.query(span, 1, tree) for span, requested in ranges.items())

    def min_size(self, records_read: RecordsRead, versions: Mapping[str, TreeVersion]) -> int:
        if not self.relation.nodes or self.window.is_narrow:
            return 0
        if self.owner.is_root:
            version = versions.get(self.owner.hierarchy)
            counts = version.levels() if version else {}
        else:
            parent = records_read.nodes.get(self.parent_key)
            counts = parent.kids if parent else {}
        least = self.total(counts) if counts else 0
        return least if self.window.size is None else min(least, self.window.size)

    def total(self, counts: Counts) -> int:
        """`totalCount`, given the counts of all children of the parent, the owner among them."""
        total = sum([count for level, count in counts.items() if self.window.has_level(level)])
        return total - self.window.has_level(self.owner.level)


async def count_siblings(state: ReadState, lists: Sequence[SiblingsRequest]) -> dict[ListRequest, Outcome[int]]:
    """`totalCount` of lists of siblings: from the counts of the parents, or of the hierarchy for roots."""
    parents = await state.nodes([requested.parent_key for requested in lists if not requested.owner.is_root])
    versions = await state.versions_of([requested.owner.hierarchy for requested in lists if requested.owner.is_root])
    totals: dict[ListRequest, Outcome[int]] = {}
    for requested in lists:
        owner = requested.owner
        found = versions[owner.hierarchy] if owner.is_root else parents[requested.parent_key]
        if is_error(found):
            totals[requested] = found
        elif isinstance(found, TreeVersion):
            totals[requested] = requested.total(found.levels())
        else:
            totals[requested] = requested.total(found.kids if found else {})
    return totals
