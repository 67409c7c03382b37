"""What a request sees of the trees: where running moves and grants draw the line, told of keys and of ranges.

Both hide or show whole subtrees, and a subtree is one range of the table and of each tier. So a range that is partly
out of sight is some smaller ranges. Among the children of a node that is seen, only the top of a subtree can be hidden.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from resolvers.access.grants import Grants, Visibility
from store.model.keys import (
    Index,
    Key,
    hierarchy_of,
    parent_partition,
    path_of,
)
from store.model.ranges import KeyRange, subtree


@dataclass(frozen=True)
class VisibilityFilter:
    """`hidden` are the tops of what running moves hide; `moved` the old and new tops of subtrees that have moved, of
    which some id records still tell the old place; `grants` are None where everything may be seen.
    """

    grants: Grants | None = None
    hidden: tuple[Key, ...] = ()
    moved: tuple[tuple[Key, Key], ...] = ()

    def sight(self, key: Key) -> Visibility:
        """What is seen of the node at a key."""
        if any(top.holds(key) for top in self.hidden):
            return Visibility.NOTHING
        return Visibility.WHOLE if self.grants is None else self.grants.sight(hierarchy_of(key.pk), path_of(*key))

    def now(self, key: Key) -> Key | None:
        """Where the node lies by now that lay at a key before its move, None where no move has taken it along."""
        for source, target in self.moved:
            if source.holds(key):
                return key.moved(source, target)
        return None

    def parts(self, span: KeyRange) -> list[KeyRange]:
        """What of a span is seen, in its order. Among the children of one node `tops_in` it are left in."""
        if span.index is Index.BY_PARENT:
            return [span] if self._lists(span.partition) else []
        pk = span.partition if span.index is Index.TABLE else span.partition.rsplit("@", 2)[0]
        parts = [span] if self.grants is None else self._granted(span, pk, self.grants)
        for top in [one for one in self.hidden if one.pk == pk]:
            gap = subtree(*top)
            parts = [one for part in parts for one in (_cut(part, part.lo, gap.lo), _cut(part, gap.hi, part.hi))]
        return [part for part in parts if part.lo < part.hi]

    def tops_in(self, span: KeyRange) -> int:
        """How many of the children whose partition this is a running move hides, at most."""
        if span.index is not Index.BY_PARENT:
            return 0
        return len([top for top in self.hidden if parent_partition(*top) == span.partition])

    def _lists(self, partition: str) -> bool:
        """Whether a partition of children is that of a node, or of a hierarchy, of which all may be seen."""
        if self.grants is None:
            return True
        hierarchy, _, rest = partition.partition("#")
        root, _, below = rest.partition("#")
        path = path_of(f"{hierarchy}#{root}", f"#{below}") if rest else ()
        return self.grants.sight(hierarchy, path) is Visibility.WHOLE

    def _granted(self, span: KeyRange, pk: str, grants: Grants) -> list[KeyRange]:
        if () in grants.tops(hierarchy_of(pk)):
            return [span]
        subtrees = grants.subtrees.get(pk, [])  # apart from each other, so their ends are in order as well
        first = bisect_right(subtrees, span.lo, key=lambda one: one.hi)
        last = bisect_left(subtrees, span.hi, key=lambda one: one.lo)
        return [_cut(span, one.lo, one.hi) for one in subtrees[first:last]]


def _cut(span: KeyRange, lo: str, hi: str) -> KeyRange:
    return KeyRange(span.index, span.partition, max(span.lo, lo), min(span.hi, hi))
