"""Visibility filter: the keys and key ranges that a request may read, given its grants and the running moves.

Grants and moves show or hide whole subtrees, and a subtree is one range of the table and of each level. So a range
that is partly hidden is split into smaller ranges. Among the children of a visible node, only the top of a subtree can
be hidden.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from resolvers.access.grants import Grants, Visibility, visibility_at, visibility_of
from store.model.keys import Index, Key, KeyRange, hierarchy_of, parent_partition, path_of, subtree


@dataclass(frozen=True)
class VisibilityFilter:
    """`hidden` are the tops of the subtrees that running moves hide; `moved` the old and new tops of moved subtrees, to
    whose old place some id records still point; `grants` is None where everything is granted.
    """

    grants: Grants | None = None
    hidden: tuple[Key, ...] = ()
    moved: tuple[tuple[Key, Key], ...] = ()

    def visibility(self, key: Key) -> Visibility:
        """The part of the node at a key that may be read."""
        if any(top.holds(key) for top in self.hidden):
            return Visibility.HIDDEN
        return visibility_at(self.grants, key)

    def new_key(self, key: Key) -> Key | None:
        """The key to which a move has taken the node that lay at `key`; None where no move has."""
        for source, target in self.moved:
            if source.holds(key):
                return key.moved(source, target)
        return None

    def visible_parts(self, span: KeyRange) -> list[KeyRange]:
        """The parts of a range that may be read, in its order. A range of `by_parent` is whole or empty, and still
        contains the tops that `hidden_in` counts.
        """
        if span.index is Index.BY_PARENT:
            return [span] if self._is_granted(span.partition) else []
        pk = span.partition if span.index is Index.TABLE else span.partition.rsplit("@", 2)[0]
        parts = [span] if self.grants is None else self._granted(span, pk, self.grants)
        for gap in [subtree(*top) for top in self.hidden if top.pk == pk]:
            parts = [cut for part in parts for cut in (_cut(part, part.lo, gap.lo), _cut(part, gap.hi, part.hi))]
        return [part for part in parts if part.lo < part.hi]

    def hidden_in(self, span: KeyRange) -> int:
        """The maximum number of nodes in a range of `by_parent` that a running move hides; 0 for other ranges."""
        if span.index is not Index.BY_PARENT:
            return 0
        return len([top for top in self.hidden if parent_partition(*top) == span.partition])

    def _is_granted(self, partition: str) -> bool:
        """Whether all children in a partition of `by_parent` (of a node, or of a hierarchy) may be read."""
        hierarchy, _, rest = partition.partition("#")
        root, _, below = rest.partition("#")
        path = path_of(f"{hierarchy}#{root}", f"#{below}") if rest else ()
        return visibility_of(self.grants, hierarchy, path) is Visibility.FULL

    def _granted(self, span: KeyRange, pk: str, grants: Grants) -> list[KeyRange]:
        if () in grants.tops(hierarchy_of(pk)):
            return [span]
        subtrees = grants.subtrees.get(pk, [])  # disjoint, so their ends are in order as well
        first = bisect_right(subtrees, span.lo, key=lambda granted: granted.hi)
        last = bisect_left(subtrees, span.hi, key=lambda granted: granted.lo)
        return [_cut(span, granted.lo, granted.hi) for granted in subtrees[first:last]]


def _cut(span: KeyRange, lo: str, hi: str) -> KeyRange:
    return KeyRange(span.index, span.partition, max(span.lo, lo), min(span.hi, hi))
