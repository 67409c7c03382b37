"""Scope of a search: the nodes that it may return, by `under` and by the caller's grants.

Search items have the ids of the ancestors of their nodes. So nodes of other subtrees are left out before anything of
them is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from resolvers.lookup import Lookup, find_nodes
from resolvers.outcomes import raise_first_error
from resolvers.planning.relations import NoSelection
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


async def read_nodes(request: Request, hierarchy: str, paths: Sequence[Path]) -> list[Record | None]:
    """The nodes at these paths that the caller may see, None where there is none: one BatchGetItem. Old paths redirect.

    Raises the error of a failed read.
    """
    lookups: list[Lookup] = [(hierarchy, path) for path in paths]
    found = await find_nodes(request, [(lookup, NOTHING) for lookup in lookups]) if lookups else []
    raise_first_error(found)
    return cast(list[Record | None], found)


async def read_top(request: Request, hierarchy: str, under: Path) -> list[Top]:
    """The node below which is searched, as the only top; none if it does not exist."""
    return [Top(one, itself=False) for one in await read_nodes(request, hierarchy, [under]) if one is not None]
