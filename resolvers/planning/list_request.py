"""One list to be read: whose, in which order, and where it lies.

All lists of a node lie in few places. Its children are one partition of `by_parent` in sibling order, or a slice of
each tier one deeper in key order; its descendants are one range of the table, or a slice of each deeper tier; its
siblings are the partition of `by_parent` that it lies in itself.
"""

from functools import cached_property

from msgspec import Struct

from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.cursors import CursorKind, ListCursors, decode_cursor
from resolvers.planning.relations import Relation, RelationKind
from store.errors import BadCursor, BadInput
from store.metadata.tree_version import TreeVersion
from store.model.keys import MAX_SEGMENTS, MAX_SORT_KEY_BYTES, Index
from store.model.ranges import (
    KeyRange,
    level_range,
    segments_between,
    siblings,
)
from store.model.records import Counts, Record


class ListRequest(Struct, frozen=True, eq=False, dict=True):
    """A relation of one node that is a list."""

    owner: Record
    relation: Relation

    @property
    def window(self) -> ConnectionArguments:
        return self.relation.window

    @cached_property
    def order(self) -> CursorKind:
        match self.relation.kind:
            case RelationKind.CHILDREN:
                return CursorKind.CHILDREN_BY_KEY if self.window.is_bounded else CursorKind.CHILDREN
            case RelationKind.SIBLINGS:
                return CursorKind.SIBLINGS
            case _:
                return CursorKind.DESCENDANTS

    @cached_property
    def in_sibling_order(self) -> bool:
        return self.order in (CursorKind.CHILDREN, CursorKind.SIBLINGS)

    @cached_property
    def levels(self) -> list[str]:
        """The levels that its nodes can have, as the owner's counts tell; of siblings those that were asked for."""
        level = self.relation.window.level
        return [one for one, count in self.counts.items() if count and level in (None, one)]

    @property
    def counts(self) -> Counts:
        """The owner's counts of what it lists, by level; of siblings they are no help."""
        return self.owner.kids if self.relation.kind is RelationKind.CHILDREN else self.owner.below

    @cached_property
    def most(self) -> int:
        """How many nodes the whole list has at most; exact unless it is bounded or cut in depth. Not for siblings."""
        return sum(self.counts[level] for level in self.levels)

    @property
    def is_empty(self) -> bool:
        """Whether the owner's counts tell that there is nothing in it."""
        if self.relation.kind is RelationKind.SIBLINGS:
            return False
        level = self.relation.window.level
        return not (any(self.counts.values()) if level is None else self.counts.get(level))

    @property
    def needs_nodes(self) -> bool:
        """Whether any record is needed to answer it; of `first: 0` the counts tell all where they are exact."""
        return self.relation.nodes and (self.window.size != 0 or self.window.is_narrow or not self.is_exact)

    @property
    def is_whole_subtree(self) -> bool:
        """Whether it holds all levels at all depths, so that one range of the table is what it is."""
        return self.order is CursorKind.DESCENDANTS and self.window.level is None and self.window.max_depth is None

    @property
    def is_exact(self) -> bool:
        """Whether the owner's counts tell the length of the list."""
        return (
            self.relation.kind is not RelationKind.SIBLINGS
            and not self.window.is_bounded
            and self.window.max_depth is None
        )

    def least(self, stamp: TreeVersion) -> int:
        """How many nodes it will return at least, as the counts tell before anything of it is read."""
        window = self.window
        if not self.relation.nodes or window.is_narrow or self.relation.kind is RelationKind.SIBLINGS:
            return 0
        sure = self.most if self.is_exact else self._sure(window.max_depth or 0, stamp)
        return sure if window.size is None else min(sure, window.size)

    def _sure(self, max_depth: int, stamp: TreeVersion) -> int:
        """How many of the owner's descendants lie no deeper, counting levels that are nowhere deeper in the tree."""
        deepest = self.owner.depth + max_depth
        return sum(
            [
                self.owner.below[level]
                for level in self.levels
                if max(stamp.depths(level), default=MAX_SEGMENTS) <= deepest
            ]
        )

    @property
    def limit(self) -> int | None:
        """How many records to read at most. Among siblings the owner itself may be one that does not count."""
        limit = self.window.limit
        return limit + 1 if limit is not None and self.order is CursorKind.SIBLINGS else limit

    @cached_property
    def family_span(self) -> KeyRange:
        """The list in sibling order, from cursor to cursor."""
        owner = self.owner
        partition = owner.siblings if self.order is CursorKind.SIBLINGS else owner.pk + owner.sk
        return self._cut(siblings(partition, self.window.level), "")

    @cached_property
    def table_span(self) -> KeyRange:
        """The owner's subtree without the owner, from bound to bound and cursor to cursor."""
        lo, hi = segments_between(self.owner.sk, self.window.start, self.window.end)
        return self._cut(KeyRange(Index.TABLE, self.owner.pk, lo, hi), self.owner.sk)

    def tier_span(self, level: str, depth: int) -> KeyRange:
        """What of one tier belongs to it, likewise."""
        span = self.table_span
        return level_range(self.owner.pk, level, depth, span.lo, span.hi)

    def tiers(self, stamp: TreeVersion) -> list[tuple[str, int]]:
        """Level and depth of the tiers that can hold its nodes."""
        top, window = self.owner.depth, self.window
        deepest = top + (MAX_SEGMENTS if window.max_depth is None else window.max_depth)
        if self.relation.kind is RelationKind.CHILDREN:
            deepest = top + 1
        return [(level, depth) for level, depth in stamp.tiers() if top < depth <= deepest and level in self.levels]

    @property
    def cursors(self) -> ListCursors:
        """What tells the cursors of its records, from below the owner on where it is in key order."""
        return ListCursors(self.order, self.owner.id, None if self.in_sibling_order else len(self.owner.sk))

    def check(self) -> None:
        """Raise BadCursor where a cursor is not of this list, and BadInput where a bound is longer than any key."""
        self._cut(siblings("", None), "")
        if self.window.is_bounded and max(len(self.table_span.lo.encode()), len(self.table_span.hi.encode())) > (
            MAX_SORT_KEY_BYTES
        ):
            raise BadInput(f"from or to is longer than any key below this node, which has {MAX_SORT_KEY_BYTES} bytes.")

    def _cut(self, span: KeyRange, prefix: str) -> KeyRange:
        """The span between the cursors, whose positions go on from `prefix`."""
        after, before = self._position(self.window.after, prefix), self._position(self.window.before, prefix)
        if self.window.reverse:
            after, before = before, after
        if after is not None:
            span = span.after(after)
        return span if before is None else span.before(before)

    def _position(self, cursor: str | None, prefix: str) -> str | None:
        if cursor is None:
            return None
        position = prefix + decode_cursor(cursor, self.order, self.owner.id)
        if len(position.encode()) >= MAX_SORT_KEY_BYTES:  # a bound behind it is one byte longer
            raise BadCursor("A cursor holds a position that is longer than any key.")
        return position
