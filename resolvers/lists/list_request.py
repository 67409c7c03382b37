"""List requests: one list of one node each, with the arguments of its field, and what its reads will cost.

The kinds of lists are subclasses in `resolvers/children.py` and `descendants.py`: each has the key ranges that it
reads, and decides how a response level of such lists is read. All lists of a level are decided together from counts,
which every record has, so a ListRequest computes from values and reads nothing.
"""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_values
from functools import cached_property
from operator import attrgetter
from typing import ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from resolvers.lists.arguments import CursorKind, ListCursors, Relation, by_key_from, by_rank
from resolvers.session.budget import NODE_BYTES, Budget, raise_first_error
from resolvers.session.cache import Partition
from resolvers.session.records_read import Read, RecordsRead
from resolvers.session.request import Request
from resolvers.sorting.conditions import check_levels
from store.engine import units_of
from store.errors import BadCursor, shorten
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import MAX_SEGMENTS, MAX_SORT_KEY_BYTES, Index, KeyRange, just_after, level_range, prefix_end
from store.model.records import Counts, Record

MAX_CACHED_WHOLE = 1_000  # nodes of a list that is sorted or filtered; a longer one is cached in each order alone


@dataclass(frozen=True)
class ReadOption:
    """One way to read some lists: its reads, their estimated read units, and the maximum number of nodes read.

    Options are compared before any read is made, by DynamoDB's read units, then by requests.
    """

    reads: tuple[Read, ...]
    units: float
    nodes: int

    @classmethod
    def of(cls, reads: Iterable[tuple[Read, int]]) -> "ReadOption":
        """The option of these reads, each with the estimated number of its items."""
        pairs = list(reads)
        units = sum([units_of(items * NODE_BYTES) for _, items in pairs])
        return cls(tuple([read for read, _ in pairs]), units, sum([items for _, items in pairs]))

    @classmethod
    def all(cls, options: Iterable["ReadOption"]) -> "ReadOption":
        """The option of several parts together."""
        parts = list(options)
        reads = tuple([read for part in parts for read in part.reads])
        return cls(reads, sum([part.units for part in parts]), sum([part.nodes for part in parts]))


def cheapest(*options: ReadOption) -> ReadOption:
    return min(options, key=lambda option: (option.units, len(option.reads)))


class PlannedReads(dict[tuple[Index, str], list[Read]]):
    """The reads that a plan has so far, by index and partition."""

    def add(self, option: ReadOption) -> None:
        for read in option.reads:
            self.setdefault((read.span.index, read.span.partition), []).append(read)

    def contain(self, span: KeyRange, limit: int | None = None, *, reverse: bool = False) -> bool:
        """Whether one of the reads returns a range, or its first (or last) `limit` records."""
        return any(read.contains(span, limit, reverse=reverse) for read in self.get((span.index, span.partition), ()))


@dataclass(frozen=True)
class TreeState:
    """Everything about one tree that planning decides from, before it reads: its version with its counts, the records
    read and the reads planned so far, and the node budgets.
    """

    version: TreeVersion
    records_read: RecordsRead
    planned: PlannedReads
    budget: Budget


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
    def partition(self) -> Partition:
        """The partition whose version validates what is made of the whole list."""
        return self.owner.pk

    def partitions(self, records: Iterable[Record]) -> frozenset[str]:
        """The partitions that the list was read from, whose nodes these are."""
        return frozenset([self.owner.pk])

    @property
    def hierarchy(self) -> str:
        return self.owner.hierarchy

    @property
    def is_virtual(self) -> bool:
        """Whether its owner is no node, and its nodes are of all trees."""
        return not self.owner.pk

    @property
    def is_deep(self) -> bool:
        """Whether nodes of the list may have different parents."""
        return False

    @property
    def description(self) -> str:
        """The list as a message names it."""
        return f"The {self.relation.kind} of {shorten(self.owner.path_text)}"

    @property
    def starts(self) -> Sequence[Record]:
        """The nodes at which position order begins: the list has no others than these and their descendants."""
        return [self.owner]

    def between(self, hierarchy: Hierarchy) -> Self | None:
        """The list of the nodes that may be in between, from the owner down to nodes of the list, and are not in it;
        None where there are none.
        """
        return None

    def holds(self, record: Record) -> bool:
        """Whether a node is in the list without its conditions: by its place, its depth and its level."""
        owner = self.owner
        is_below = owner.key.holds(record.key) and owner.depth < record.depth <= self.max_depth
        return is_below and self.relation.arguments.has_level(record.level)

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

    @property
    def cache_key(self) -> Hashable:
        """The key of its page in the page cache."""
        return self.owner.pk, self.owner.sk, self.relation.page_key

    @property
    def sorted_key(self) -> tuple[Hashable, ...]:
        """The key in the page cache of the list that it is sorted and filtered from, in its order and conditions."""
        return self.owner.pk, self.owner.sk, self.relation.whole.page_key, self.relation.order_digest

    @property
    def result_keys(self) -> list[tuple[Hashable, ...]]:
        """The keys in the page cache of all that is made of the whole list, if it is taken."""
        key, relation = self.sorted_key, self.relation
        return [key, *[(*key, one) for one in relation.facets if not relation.is_counted(one)]]

    def of(self, relation: Relation) -> Self:
        """The list of the same owner that another relation leads to."""
        return replace(self, relation=relation)

    def counted(self, request: Request) -> Self:
        """The list with the current counts of its owner, if the version of its tree was read."""
        return replace(self, owner=request.state.counted(self.owner))

    # -- its size ------------------------------------------------------------------------------------------------------

    @cached_property
    def levels(self) -> list[str]:
        """The levels of the nodes in the list."""
        has_level = self.relation.arguments.has_level
        return [name for name, count in self.counts.items() if count and has_level(name)]

    @cached_property
    def max_size(self) -> int:
        """The maximum length of the list without paging; its length if `is_exact`."""
        return sum(self.counts[level] for level in self.levels)

    @property
    def is_exact(self) -> bool:
        """Whether the owner's counts give the length of the list."""
        arguments = self.relation.arguments
        return arguments.bounds is None and arguments.max_depth is None

    @property
    def is_empty(self) -> bool:
        """Whether the owner's counts show that the list is empty."""
        return not self.levels

    @property
    def needs_nodes(self) -> bool:
        """Whether records have to be read; for `first: 0` the counts are enough where they are exact."""
        arguments = self.relation.arguments
        return self.relation.nodes and (arguments.size != 0 or arguments.is_narrow or not self.is_exact)

    def possible_levels(self, hierarchy: Hierarchy) -> list[Level]:
        """The levels that nodes of the list may have, as the hierarchy is defined."""
        has_level = self.relation.arguments.has_level
        return [one for one in hierarchy.levels.values() if self.owner.level in one.under and has_level(one.name)]

    def check_conditions(self, hierarchy: Hierarchy) -> None:
        """Raise BadInput for a condition that no node of the list can meet."""
        where = self.relation.arguments.where
        if where is not None:
            levels = self.possible_levels(hierarchy)
            names, defined = {level.name for level in levels}, hierarchy.levels.values()
            below = [level for level in defined if level.under & names]
            check_levels(where, levels, self._open_levels(hierarchy), below)

    def _open_levels(self, hierarchy: Hierarchy) -> Sequence[Level]:
        """The levels that nodes of the list might have with another `level`."""
        arguments = replace_values(self.relation.arguments, levels=())
        return self.of(replace_values(self.relation, arguments=arguments)).possible_levels(hierarchy)

    async def level_counts(self, request: Request) -> Counts:
        """The nodes in the list by level, which its owner's counts give. Raises the error of a failed read."""
        raise_first_error((await request.state.versions_of([self.owner.pk])).values())
        counted = self.counted(request)
        return {level: counted.counts[level] for level in counted.levels}

    @property
    def has_size(self) -> bool:
        """Whether its size is known by few counts."""
        return True

    async def read_size(self, request: Request) -> int:
        """The maximum length of the list without paging, of which counts may have to be read."""
        return self.max_size

    def min_size(self, versions: Mapping[str, TreeVersion]) -> int:
        """The minimum number of nodes on the page, from the counts alone."""
        arguments = self.relation.arguments
        if not self.relation.nodes or arguments.is_narrow:
            return 0
        least = self.max_size
        if not self.is_exact:  # count the levels that are nowhere deeper in the tree than the list goes
            depths = versions[self.owner.pk].depths
            inside = [level for level in self.levels if max(depths(level), default=MAX_SEGMENTS) <= self.max_depth]
            least = sum([self.counts[level] for level in inside])
        return least if arguments.size is None else min(least, arguments.size)

    # -- its reads -----------------------------------------------------------------------------------------------------

    def query(self, span: KeyRange, items: int, tree: TreeState) -> tuple[Read, int]:
        """One Query of a range of `items` items, and the number of items that it returns.

        Where the counts give no maximum, its Limit is no more than the node budget allows.
        """
        arguments = self.relation.arguments
        limit = arguments.limit
        items = items if limit is None else min(items, limit)
        if not self.is_exact:
            most = tree.budget.left(compared=arguments.compared) + 2
            limit = min(limit or most, most)
        return Read(span, limit, arguments.descending), items

    def is_planned(self, tree: TreeState) -> bool:
        """Whether the planned reads return the list."""
        limit, reverse = self.relation.arguments.limit, self.relation.arguments.descending
        return all(tree.planned.contain(span, limit, reverse=reverse) for span in self.key_ranges)

    def records(self, records_read: RecordsRead, version: TreeVersion) -> list[Record] | None:
        """The list out of what was read, in reading order and up to its limit; None if some of it was not read."""
        arguments = self.relation.arguments
        return records_read.in_ranges(self.key_ranges, arguments.limit, reverse=arguments.descending)

    def level_depths(self, version: TreeVersion) -> list[tuple[str, int]]:
        """Level and depth of all nodes that can be in the list: one partition of `by_level` each.

        Where the version has no shape, these are all that the owner's own counts allow.
        """
        top, deepest = self.owner.depth, self.max_depth
        if not version.has_shape:
            kids, end = self.owner.kids, min(deepest, top + sum(self.counts.values()), MAX_SEGMENTS - 1)
            near = [(level, top + 1) for level in self.levels if kids.get(level)]
            deeper = [level for level in self.levels if self.counts[level] > kids.get(level, 0)]
            return near + [(level, depth) for level in deeper for depth in range(top + 2, end + 1)]
        return [(level, depth) for level, depth in version.tiers() if top < depth <= deepest and level in self.levels]

    def cut(self, records: list[Record]) -> list[Record]:
        """Records in key order or sibling order as a Query of the list would return them."""
        arguments = self.relation.arguments
        return (records[::-1] if arguments.descending else records)[: arguments.limit]

    # -- its cursors ---------------------------------------------------------------------------------------------------

    def decode(self, cursor: str) -> str:
        """The sort key of a cursor; raises BadCursor for one of another list."""
        prefix = "" if self.cursor_start is None else self.owner.sk[: self.cursor_start]
        position = prefix + self.cursors.decode(cursor)
        if len(position.encode()) >= MAX_SORT_KEY_BYTES:  # a bound after it is one byte longer
            raise BadCursor("The position in the cursor is longer than any key; use a cursor of this list.")
        return position


def described(lists: Sequence[ListRequest]) -> str:
    """Lists as a message names them."""
    more = f" and {len(lists) - 1:,} other lists" if len(lists) > 1 else ""
    return f"{lists[0].description}{more}"


class KeyOrderList(ListRequest, frozen=True, eq=False, dict=True):
    """A list that is a range of the table, or a range of each of its levels; its cursors are relative to the owner.

    Descendants are such lists, and so are children in the order of their keys, or between bounds of them. The nodes of
    a tree are in depth-first order in the table, and in the same order in the partition of their level and depth in
    `by_level`. Bounds of keys and paths leave parts of these ranges.
    """

    @cached_property
    def key_ranges(self) -> list[KeyRange]:
        """`begins_with(sk, "#NE#")` without the owner itself, or parts of it, from cursor to cursor."""
        pk, sk, arguments = self.owner.pk, self.owner.sk, self.relation.arguments
        spans = [(just_after(sk), prefix_end(sk))] if arguments.bounds is None else arguments.bounds.spans(self.owner)
        parts = [arguments.between_cursors(KeyRange(Index.TABLE, pk, lo, hi), self.decode) for lo, hi in spans]
        return [part for part in parts if part.lo < part.hi]

    def level_ranges(self, level: str, depth: int) -> list[KeyRange]:
        """The same in one partition of `by_level`."""
        return [level_range(self.owner.pk, level, depth, span.lo, span.hi) for span in self.key_ranges]

    @property
    def cursor_start(self) -> int | None:
        return len(self.owner.sk)

    def read_levels(self, tree: TreeState) -> ReadOption:
        """One Query of each level and depth."""
        return ReadOption.of(
            self.query(span, self.max_nodes(level, depth, tree.version), tree)
            for level, depth in self.level_depths(tree.version)
            for span in self.level_ranges(level, depth)
        )

    def max_nodes(self, level: str, depth: int, version: TreeVersion) -> int:
        """The maximum number of nodes of one level and depth in the list."""
        most = self.counts.get(level, 0)
        return min(most, version.shape[level_at_depth(level, depth)]) if version.has_shape else most

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
        arguments, records = self.relation.arguments, list[Record]()
        for part in parts:
            found = records_read.in_ranges(self.level_ranges(*part), arguments.limit, reverse=arguments.descending)
            if found is None:
                return None
            records += found
        records.sort(key=attrgetter("sk"))
        return self.cut(records)
