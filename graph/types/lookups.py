"""Root fields that look up nodes by path, by ID or by a unique value, and that list roots."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph.hierarchies.node import Node
from graph.hierarchies.registry import camel
from graph.types.values import plain_input
from resolvers.lists.arguments import Page, Relation, RelationKind
from resolvers.lookup import ById as IdLookup
from resolvers.lookup import ByPath, Lookup
from resolvers.session.request import Request
from resolvers.trees import read_roots
from store.errors import BadInput, CladeError, WrongLevel
from store.kinds.unique import UniqueValue
from store.model.attributes import Attribute
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
    """A node of one hierarchy by path, ID or a unique value, of one level or of any."""

    hierarchy: str
    level: str | None = None
    unique: Mapping[str, Attribute] = field(default_factory=dict, hash=False)
    """What `unique_arguments` returns."""

    def targets(self, given: Mapping[str, Any]) -> "list[Target]":
        if len(given) != 1 or None in given.values():
            given = self._chosen(given)
        ((name, value),) = given.items()
        lookup: Lookup | None
        if name == "path":
            lookup = ByPath(self.hierarchy, parse_path(value))
        elif name == "id":
            lookup = by_id([self.hierarchy], str(value))
        else:
            attribute = self.unique[name]
            lookup = UniqueValue.of(self.hierarchy, attribute, attribute.parse(plain_input(value, attribute)))
        return [(self, lookup)]

    def _chosen(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The argument that is given. Raises BadInput for none or several."""
        names = ["path", "id", *self.unique]
        chosen = [name for name in names if given.get(name) is not None]
        if not chosen:
            raise BadInput(f"{worded(names, 'and')} are missing; give one of them.")
        if len(chosen) > 1:
            number = "both" if len(chosen) == 2 else "all"
            raise BadInput(f"{worded(chosen, 'and')} are {number} given; give one of them.")
        return {chosen[0]: given[chosen[0]]}

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
        return [(self, ByPath(self.hierarchy, parse_path(path))) for path in given["paths"]]


@dataclass(frozen=True)
class RootsField:
    """The roots of a hierarchy, as a connection."""

    hierarchy: str
    kind = RelationKind.ROOTS

    async def read(self, request: Request, relation: Relation) -> Page:
        return await read_roots(request, self.hierarchy, relation)


def by_id(hierarchies: Collection[str], node_id: str) -> IdLookup | None:
    """The lookup of an ID, None where no node of these hierarchies can have it."""
    hierarchy, _, rest = node_id.partition(":")
    is_possible = hierarchy in hierarchies and 0 < len(rest) <= MAX_ID_CHARACTERS and rest.isprintable()
    return IdLookup(hierarchy, node_id) if is_possible else None


def unique_arguments(cls: type[Node]) -> dict[str, Attribute]:
    """The unique attributes of a class by the names of the arguments that nodes are looked up by. They are without
    rules, since stored values may break these.
    """
    found = {name: one for name, (_, one) in cls.attributes.items() if one.unique}
    return {camel(name): one.labelled(camel).without_rules() for name, one in found.items()}


def worded(names: Sequence[str], word: str) -> str:
    """Names in a sentence, the last two with `and` or `or` between them."""
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
