"""Scope of a search: the nodes that it may return, by `under` and by the caller's grants.

Search items have the ids of the ancestors of their nodes. So nodes of other subtrees are left out before anything of
them is read, and what lies outside of a caller's grants costs no read of a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from resolvers.access.grants import highest
from resolvers.access.redacted_node import RedactedNode
from resolvers.lookup import Lookup, find_nodes
from resolvers.planning.relations import NOTHING
from resolvers.session.outcomes import raise_first_error
from resolvers.session.request import Request
from store.model.keys import Path
from store.model.records import Record
from store.search.lineage import Lineage, Moves, id_hash, steps


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

    `moves` is None where the moved nodes are too many to be read; then nodes below them may be missing.
    """

    tops: Sequence[Top] | None
    moves: Moves | None

    def may_hold(self, line: Lineage) -> bool:
        """Whether a node with such a lineage is in the scope; what is found has to be checked by `holds`."""
        if self.tops is None:
            return True
        found = steps(line if self.moves is None else self.moves.present(line))
        return not (self._above.isdisjoint(found[:-1]) and self._own.isdisjoint(found[-1:]))

    def holds(self, record: Record) -> bool:
        """Whether a node is in the scope."""
        return self.tops is None or any(top.holds(record) for top in self.tops)

    @cached_property
    def _above(self) -> frozenset[str]:
        return frozenset([id_hash(top.record.id) for top in self.tops or ()])

    @cached_property
    def _own(self) -> frozenset[str]:
        return frozenset([id_hash(top.record.id) for top in self.tops or () if top.itself])


def grants_of(request: Request, hierarchy: str) -> list[Path] | None:
    """The tops of what the caller may see of a hierarchy; None where that is all of it."""
    granted = None if request.grants is None else request.grants.tops(hierarchy)
    return None if granted is None or () in granted else highest(granted)


async def read_tops(request: Request, hierarchy: str, granted: Sequence[Path] | None, under: Path | None) -> list[Top]:
    """The tops of what is searched, without those that do not exist: one BatchGetItem.

    `granted` is from `grants_of`; one of both is not None. Former paths lead to their nodes.
    """
    if under is None:
        return _tops(await _nodes(request, hierarchy, granted or ()), itself=True)
    if granted is None or any(under[: len(top)] == top for top in granted):
        return _tops(await _nodes(request, hierarchy, [under]), itself=False)
    inner = [top for top in granted if top[: len(under)] == under]
    at, *found = await _nodes(request, hierarchy, [under, *inner])
    if not isinstance(at, RedactedNode):
        return _tops([at], itself=False)
    if at.path != under:  # a former path of what is above a grant
        found = await _nodes(request, hierarchy, [top for top in granted if top[: len(at.path)] == at.path])
    return _tops(found, itself=True)


async def _nodes(request: Request, hierarchy: str, paths: Sequence[Path]) -> list[Record | None]:
    lookups: list[Lookup] = [(hierarchy, path) for path in paths]
    found = await find_nodes(request, [(lookup, NOTHING) for lookup in lookups]) if lookups else []
    raise_first_error(found)
    return cast(list[Record | None], found)


def _tops(found: Sequence[Record | None], *, itself: bool) -> list[Top]:
    return [Top(one, itself) for one in found if one is not None and not isinstance(one, RedactedNode)]
