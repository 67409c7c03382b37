"""Root fields that look up nodes by path or ID, and that list roots."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from resolvers.lists.arguments import Page, Relation, RelationKind
from resolvers.lookup import Lookup
from resolvers.session.request import Request
from resolvers.trees import read_roots
from store.errors import BadInput, CladeError, WrongLevel
from store.model.paths import parse_path
from store.model.records import MAX_ID_CHARACTERS, Record


class LookupField(ABC):
    """A root field that returns a node, or with `many` a list of nodes; null for each that does not exist."""

    many: bool = False
    level: str | None = None

    @abstractmethod
    def targets(self, given: Mapping[str, Any]) -> "list[Target]":
        """The lookups, each with the field that checks its node. Raises BadInput for the first invalid argument."""

    def checked(self, found: Record) -> Record | CladeError:
        """The node that was found, or WrongLevel unless it is of the field's level."""
        return found


Target = tuple[LookupField, Lookup | CladeError | None]
"""A lookup, or its error, None where no node can exist, with the field whose `level` and `checked` it has to meet."""


@dataclass(frozen=True)
class Find(LookupField):
    """A node of one hierarchy by path or ID, of one level or of any."""

    hierarchy: str
    level: str | None = None

    def targets(self, given: Mapping[str, Any]) -> "list[Target]":
        path, node_id = given.get("path"), given.get("id")
        if path is None and node_id is None:
            raise BadInput("path and id are missing; give one of them.")
        if path is not None and node_id is not None:
            raise BadInput("path and id are both given; give one of them.")
        lookup = by_id([self.hierarchy], str(node_id)) if path is None else (self.hierarchy, parse_path(path))
        return [(self, lookup)]

    def checked(self, found: Record) -> Record | CladeError:
        if self.level in (None, found.level):
            return found
        return WrongLevel(f"{found.path_text} has the level {found.level}, not {self.level}.")


@dataclass(frozen=True)
class ById(LookupField):
    """A node of any hierarchy by its ID, or with `many` nodes by their IDs, in this order."""

    hierarchies: Collection[str]
    many: bool = False

    def targets(self, given: Mapping[str, Any]) -> "list[Target]":
        ids = given["ids"] if self.many else [given["id"]]
        return [(self, by_id(self.hierarchies, node_id)) for node_id in ids]


@dataclass(frozen=True)
class ByPaths(LookupField):
    """Nodes of one hierarchy by their paths, in this order."""

    hierarchy: str
    many: bool = True

    def targets(self, given: Mapping[str, Any]) -> "list[Target]":
        return [(self, (self.hierarchy, parse_path(path))) for path in given["paths"]]


@dataclass(frozen=True)
class RootsField:
    """The roots of a hierarchy, as a connection."""

    hierarchy: str
    kind = RelationKind.ROOTS

    async def read(self, request: Request, relation: Relation) -> Page:
        return await read_roots(request, self.hierarchy, relation)


def by_id(hierarchies: Collection[str], node_id: str) -> Lookup | None:
    """The lookup of an ID, None where no node of these hierarchies can have it."""
    hierarchy, _, rest = node_id.partition(":")
    is_possible = hierarchy in hierarchies and 0 < len(rest) <= MAX_ID_CHARACTERS and rest.isprintable()
    return (hierarchy, node_id) if is_possible else None
