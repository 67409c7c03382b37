"""Relations: the fields of a node that read other nodes, with their arguments and selections."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct

from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.sorting.ordering import PlaceOrder
from store.errors import CladeError


class RelationKind(StrEnum):
    """The fields of a node that lead to other nodes; and the roots of a hierarchy, and the revisions of a node."""

    PARENT = "parent"
    ANCESTORS = "ancestors"
    CHILDREN = "children"
    DESCENDANTS = "descendants"
    ROOTS = "roots"
    REVISIONS = "revisions"


class RelationKey(Struct, frozen=True, cache_hash=True):
    """The part of the cache key of a page that comes from its field: equal keys have equal pages."""

    kind: RelationKind
    window: ConnectionArguments
    nodes: bool
    total: bool
    counts: bool


class Selection(Protocol):
    """The selection set of the nodes at one place of a response; it may differ from level to level."""

    def on(self, hierarchy: str, level: str) -> "tuple[Relation, ...]":
        """The relations that are selected for a node of this level of a hierarchy."""
        ...


@dataclass(frozen=True, eq=False)
class Relation:
    """One selected relation, with its arguments and the selection set of its nodes.

    `nodes` is whether any node is selected, `total` whether `totalCount` is, and `counts` whether `descendantCount` of
    roots is. Two relations are equal only if they are the same object.
    """

    kind: RelationKind
    window: ConnectionArguments
    selection: Selection
    nodes: bool = True
    total: bool = False
    counts: bool = False

    @cached_property
    def page_key(self) -> RelationKey:
        return RelationKey(self.kind, self.window, self.nodes, self.total, self.counts)

    @cached_property
    def whole(self) -> "Relation":
        """What has to be read: itself, or the whole list in its own order where it is sorted or filtered.

        Lists below it are read together with it only if all of its nodes are on the page.
        """
        window = self.window
        if not self.is_arranged:
            return self
        is_shown = window.where is None and window.size is None and not window.is_paged
        selection = self.selection if is_shown else NOTHING
        return Relation(self.kind, window.whole(), selection, counts=self.counts)

    @property
    def is_arranged(self) -> bool:
        """Whether the list is filtered, or has an order in which no range has it, so that all of it is read first."""
        ordering, window = self.window.ordering, self.window
        if window.where is not None or ordering.fields:
            return True
        match self.kind:
            case RelationKind.CHILDREN:
                return window.bounds is not None and ordering.place in (None, PlaceOrder.POSITION)
            case RelationKind.DESCENDANTS:
                return ordering.place is PlaceOrder.KEY and window.max_depth != 1
        return ordering.place in (PlaceOrder.KEY, PlaceOrder.PATH)

    @cached_property
    def arrangement(self) -> str:
        """A digest of its order and conditions, made once for all of its lists, since conditions may be long."""
        window = self.window
        where, bounds = window.where, window.bounds
        identity = window.ordering.identity, [where and where.identity, bounds and bounds.digest]
        return blake2b(repr(identity).encode(), digest_size=16).hexdigest()

    @cached_property
    def _errors(self) -> dict[str, CladeError]:
        return {}

    def shared_error(self, error: CladeError) -> CladeError:
        """One instance of an error for all lists of the relation that fail alike, since there may be thousands."""
        return self._errors.setdefault(str(error), error.bare())

    @property
    def is_complete(self) -> bool:
        """Whether it selects all children of a node; only complete lists are prefetched."""
        window = self.window
        return (
            self.nodes
            and self.kind is RelationKind.CHILDREN
            and window.size is None
            and not window.levels
            and not window.is_narrow
            and not self.is_arranged
        )


class NoSelection:
    """An empty selection set."""

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        return ()


NOTHING = NoSelection()
