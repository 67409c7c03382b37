"""Key bounds: the part of a list's key range that its condition leaves, so that no more is read.

A condition on paths is a part of the keys of any list, one on keys only of the keys of children. They may be joined by
and, or and not; of what is joined to others by and, the key conditions are enough.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Self

from resolvers.sorting.conditions import Combination, Condition
from resolvers.sorting.key_conditions import KeyComparison
from store.model.keys import just_after, prefix_end
from store.model.records import Record
from store.model.spans import EVERYTHING, Spans, clipped, complement, intersection, union

MAX_SPANS = 10  # of one list: each is a Query of its own; a condition of more is read as one span, and tested


@dataclass(frozen=True)
class KeyBounds:
    """The spans of keys that a condition leaves of the lists of any node.

    `are_children` is whether all nodes of the list are children of its owner, so that a condition on keys leaves a part
    of their range; `is_many` whether it has too many spans; `is_exact` whether every node in the spans meets the whole
    condition. Bounds are compared by `digest`, that of the condition: they are in the cache key of each list, and a
    condition may be long.
    """

    where: Condition = field(compare=False)
    digest: str
    are_children: bool
    is_many: bool
    is_exact: bool

    @classmethod
    def of(cls, where: Condition | None, *, are_children: bool) -> Self | None:
        """The bounds of a condition; None where it leaves all of a list."""
        if where is None:
            return None
        digest = blake2b(repr(where.identity).encode(), digest_size=16).hexdigest()
        found = cls(where, digest, are_children, is_many=_count(where) > MAX_SPANS, is_exact=False)
        spans, is_exact = _spans(where, lambda one: found._place(one, EVERYTHING))
        return None if spans is None else replace(found, is_exact=is_exact)

    def spans(self, owner: Record) -> list[tuple[str, str]]:
        """The parts of the sort keys below a node, in their order."""
        root, lo, hi = owner.pk[owner.pk.index("#") + 1 :], just_after(owner.sk), prefix_end(owner.sk)

        def below(one: KeyComparison) -> tuple[Spans | None, bool]:
            spans = self._kept(one)
            if one.name == "key":
                children = [(owner.sk + start, hi if end is None else owner.sk + end) for start, end in spans]
                return self._place(one, tuple(children))
            cut = clipped(spans, root + lo, root + hi)
            return self._place(one, tuple([(start[len(root) :], (end or "")[len(root) :]) for start, end in cut]))

        found, _ = _spans(self.where, below)
        return [(lo, end or hi) for lo, end in clipped(EVERYTHING if found is None else found, lo, hi)]

    def _kept(self, one: KeyComparison) -> Spans:
        """The spans of a comparison; those of many conditions are one, so that a list has few ranges."""
        spans = one.spans
        return ((spans[0][0], spans[-1][1]),) if self.is_many and spans else spans

    def _place(self, one: KeyComparison, spans: Spans) -> tuple[Spans | None, bool]:
        """These spans of a comparison among the keys of a list, and whether they are all that it leaves."""
        if one.name == "key" and not self.are_children:
            return None, False
        return spans, not self.is_many


def _spans(where: Condition, place: Callable[[KeyComparison], tuple[Spans | None, bool]]) -> tuple[Spans | None, bool]:
    """The spans that a condition leaves, None for all, and whether every node in them meets it.

    `place` has the same of a comparison, None where it is no part of the keys of a list.
    """
    match where:
        case KeyComparison():
            return place(where)
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
