"""Key bounds: the part of a list's key range that its condition leaves, so that no more is read.

A condition on paths is a part of the keys of any list, one on keys only of the keys of children. They may be joined by
and, or and not; of what is joined to others by and, the key conditions are enough.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from resolvers.sorting.conditions import Combination, Condition
from resolvers.sorting.key_conditions import KeyComparison
from store.model.ranges import just_after, prefix_end
from store.model.records import Record
from store.model.spans import EVERYTHING, Spans, complement, intersection, union

MAX_SPANS = 10  # of one list: each is a Query of its own; a condition of more is read as one span, and tested


@dataclass(frozen=True)
class KeyBounds:
    """The spans of keys that a condition leaves of the lists of any node.

    `are_children` is whether all nodes of the list are children of its owner, so that a condition on keys leaves a part
    of their range; `is_exact` whether every node in the spans meets the whole condition.
    """

    where: Condition
    are_children: bool
    is_exact: bool

    @classmethod
    def of(cls, where: Condition | None, *, are_children: bool) -> Self | None:
        """The bounds of a condition; None where it leaves all of a list."""
        if where is None:
            return None
        spans, is_exact = _spans(where, lambda one: EVERYTHING if are_children or one.name == "path" else None)
        return None if spans is None else cls(where, are_children, is_exact and _count(where) <= MAX_SPANS)

    def spans(self, owner: Record) -> list[tuple[str, str]]:
        """The parts of the sort keys below a node, in their order."""
        root = owner.pk[owner.pk.index("#") + 1 :]
        below: Spans = ((just_after(owner.sk), prefix_end(owner.sk)),)

        def in_tree(one: KeyComparison) -> Spans | None:
            if one.name == "path":
                of_tree = intersection(one.spans, ((root + "#", root + "$"),))
                return tuple([(lo[len(root) :], None if hi is None else hi[len(root) :]) for lo, hi in of_tree])
            if not self.are_children:
                return None
            return tuple(
                [(owner.sk + lo, prefix_end(owner.sk) if hi is None else owner.sk + hi) for lo, hi in one.spans]
            )

        found, _ = _spans(self.where, in_tree)
        parts = [
            (lo, hi or prefix_end(owner.sk)) for lo, hi in intersection(below, EVERYTHING if found is None else found)
        ]
        return [(parts[0][0], parts[-1][1])] if len(parts) > MAX_SPANS else parts


def _spans(where: Condition, place: Callable[[KeyComparison], Spans | None]) -> tuple[Spans | None, bool]:
    """The spans that a condition leaves, None for all, and whether every node in them meets it.

    `place` has the spans of a comparison among the keys of a list, None where it is not a part of these.
    """
    match where:
        case KeyComparison():
            spans = place(where)
            return spans, spans is not None
        case Combination():
            parts = [_spans(part, place) for part in where.parts]
        case _:
            return None, False
    bounded = [spans for spans, _ in parts if spans is not None]
    is_exact = all(exact for _, exact in parts)
    match where.operator:
        case "and":
            return (intersection(*bounded) if bounded else None), is_exact
        case "or":
            return (union(*bounded) if len(bounded) == len(parts) else None), is_exact and len(bounded) == len(parts)
    if is_exact and bounded:
        return complement(bounded[0]), True
    return None, False


def _count(where: Condition) -> int:
    """The most spans that a condition can leave."""
    match where:
        case KeyComparison():
            return len(where.spans)
        case Combination():
            return sum([_count(part) for part in where.parts]) + 1
    return 0
