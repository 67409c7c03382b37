"""Scope of a search: the nodes that it may return, by `under` and by the caller's grants.

Search items have the ids of the ancestors of their nodes. So nodes of other subtrees are left out before anything of
them is read, and what lies outside of a caller's grants costs no read of a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from resolvers.access.grants import highest
from resolvers.access.redacted_node import RedactedNode
from resolvers.lookup import Lookup, find_nodes
from resolvers.planning.relations import NoSelection
from resolvers.session.outcomes import raise_first_error
from resolvers.session.request import Request
from store.model.keys import Path
from store.model.records import Record
from store.search.lineage import Lineage, Moves, id_hash, steps

NOTHING = NoSelection()


@dataclass(frozen=True)
class Top:
    """The top of a subtree that is searched; `itself` is whether it may be found, too."""

    record: Record
    itself: bool

    def holds(self, record: Record) -> bool:
        return self.record.key.holds(record.key) and (self.itself or record.key != self.record.key)


@dataclass(frozen=True)
class Scope:
    """The subtrees that are searched; `tops` is None for the whole hierarchy.

    `moves` is None where the moved nodes are too many to be known. `reached` are the hashes of which every lineage of a
    node in the scope has at least one.
    """

    tops: tuple[Top, ...] | None
    moves: Moves | None
    reached: frozenset[str] | None

    @classmethod
    def of(cls, tops: Sequence[Top] | None, moves: Moves | None) -> "Scope":
        if tops is None or moves is None:
            return cls(None if tops is None else tuple(tops), moves, None)
        return cls(tuple(tops), moves, frozenset(moves.below([id_hash(top.record.id) for top in tops])))

    def may_hold(self, line: Lineage) -> bool:
        """Whether a node with such a lineage may be in the scope; what is found has to be checked by `holds`."""
        return self.reached is None or not self.reached.isdisjoint(steps(line))

    def holds(self, record: Record) -> bool:
        """Whether a node is in the scope."""
        return self.tops is None or any(top.holds(record) for top in self.tops)


def paths_of(request: Request, hierarchy: str, under: Path | None) -> list[tuple[Path, bool]] | None:
    """The paths of the tops of a scope, each with whether the top itself may be found; None for the whole hierarchy."""
    granted = None if request.grants is None else request.grants.tops(hierarchy)
    if granted is None or () in granted:
        return None if under is None else [(under, False)]
    tops = highest(granted)
    if under is None:
        return [(top, True) for top in tops]
    if any(under[: len(top)] == top for top in tops):
        return [(under, False)]
    return [(top, True) for top in tops if top[: len(under)] == under]


async def read_tops(request: Request, hierarchy: str, paths: Sequence[tuple[Path, bool]]) -> list[Top]:
    """The tops at these paths, without those that do not exist: one BatchGetItem. Old paths redirect."""
    lookups: list[Lookup] = [(hierarchy, path) for path, _ in paths]
    found = await find_nodes(request, [(lookup, NOTHING) for lookup in lookups]) if lookups else []
    raise_first_error(found)
    return [
        Top(record, itself)
        for record, (_, itself) in zip(found, paths, strict=True)
        if isinstance(record, Record) and not isinstance(record, RedactedNode)
    ]
