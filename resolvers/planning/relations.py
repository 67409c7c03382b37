"""What a client asks for below a node, as far as it decides what is read."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from msgspec import Struct

from resolvers.planning.connection_arguments import ConnectionArguments
from store.errors import CladeError


class RelationKind(StrEnum):
    """The relations of a node that read."""

    PARENT = "parent"
    ROOT = "root"
    ANCESTORS = "ancestors"
    CHILDREN = "children"
    DESCENDANTS = "descendants"
    SIBLINGS = "siblings"


class RelationKey(Struct, frozen=True, cache_hash=True):
    """What decides the pages of a relation, wherever it is asked."""

    kind: RelationKind
    window: ConnectionArguments
    nodes: bool
    total: bool


class Selection(Protocol):
    """What is asked of the nodes at one place of a response; it may differ from level to level."""

    def on(self, hierarchy: str, level: str) -> "tuple[Relation, ...]":
        """The relations that are asked of a node of this level of a hierarchy."""
        ...


@dataclass(frozen=True, eq=False)
class Relation:
    """One asked relation: which, which part of it, and what is asked of the nodes that it leads to.

    `nodes` tells whether any of these are wanted at all and `total` whether their number is; two relations are the same
    only if they are one object.
    """

    kind: RelationKind
    window: ConnectionArguments
    selection: Selection
    nodes: bool = True
    total: bool = False

    @cached_property
    def question(self) -> RelationKey:
        return RelationKey(self.kind, self.window, self.nodes, self.total)

    @cached_property
    def _errors(self) -> dict[str, CladeError]:
        return {}

    def shared(self, error: CladeError) -> CladeError:
        """An error of one of its lists, the same for all that fail alike: there may be thousands."""
        return self._errors.setdefault(str(error), error.bare())

    @property
    def is_complete(self) -> bool:
        """Whether it asks for every one of a node's children, which is what can be read ahead."""
        window = self.window
        return (
            self.nodes
            and self.kind is RelationKind.CHILDREN
            and window.size is None
            and window.level is None
            and not window.is_narrow
        )


class NoSelection:
    """The selection of a place below which nothing is read."""

    def on(self, hierarchy: str, level: str) -> tuple[Relation, ...]:
        return ()
