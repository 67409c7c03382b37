"""The root fields that find nodes by path or id. Strawberry calls them, and plans ask them what to look up."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from resolvers.lookup import Lookup
from resolvers.planning.page import Page
from resolvers.restricted_lists import read_roots
from store.errors import BadInput, WrongLevel
from store.model.paths import format_path, parse_path
from store.model.records import MAX_ID_CHARACTERS, Record


class TargetField(ABC):
    """A root field that returns what it looks up: a node, or a list of nodes, each None where there is none."""

    many: ClassVar[bool] = False

    @abstractmethod
    def targets(self, given: Mapping[str, Any]) -> "list[Target]":
        """What to look up, and what it must be; raises the first mistake in the arguments."""

    def spend(self, given: Mapping[str, Any], context: Any) -> None:  # noqa: B027 - most take nothing
        """Take what is looked up from what a request may ask for, where that is limited; raises BudgetExceeded."""


class LookupField(TargetField):
    """One whose lookups all promise the same."""

    level: str | None = None

    def targets(self, given: Mapping[str, Any]) -> "list[Target]":
        return [(self, lookup) for lookup in self.lookups(given)]

    @abstractmethod
    def lookups(self, given: Mapping[str, Any]) -> list[Lookup | None]:
        """What to look up, None where nothing can be there; raises BadInput where the arguments do not say."""

    def checked(self, found: Record | None) -> Record | None:
        """What was found, if it is what the field promises; raises WrongLevel where it is not."""
        return found

    async def __call__(self, root: Any, info: Any, **given: Any) -> Any:
        self.spend(given, info.context)
        found = [self.checked(one) for one in await load(info, self.lookups(given))]
        return found if self.many else found[0]


Target = tuple[LookupField, Lookup | None]  # whose `level` and `checked` tell what it must be


@dataclass(frozen=True)
class Find(LookupField):
    """A node of one hierarchy by path or id, of one level or of any."""

    hierarchy: str
    level: str | None = None

    def lookups(self, given: Mapping[str, Any]) -> list[Lookup | None]:
        path, node_id = given.get("path_"), given.get("id_")
        if (path is None) == (node_id is None):
            raise BadInput("Give either path or id, and not both, to say which node is meant.")
        return [(self.hierarchy, parse_path(path)) if path is not None else by_id([self.hierarchy], str(node_id))]

    def checked(self, found: Record | None) -> Record | None:
        if found is not None and self.level not in (None, found.level):
            raise WrongLevel(f"{format_path(found.path)} is of the level {found.level}, not {self.level}.")
        return found


@dataclass(frozen=True)
class ById(LookupField):
    """A node of any hierarchy by its id."""

    hierarchies: Collection[str]

    def lookups(self, given: Mapping[str, Any]) -> list[Lookup | None]:
        return [by_id(self.hierarchies, given["id_"])]


@dataclass(frozen=True)
class ByIds(LookupField):
    """Nodes of any hierarchy by their ids, in the order of these."""

    hierarchies: Collection[str]
    many = True

    def spend(self, given: Mapping[str, Any], context: Any) -> None:
        context.spend_ids(len(given["ids_"]))

    def lookups(self, given: Mapping[str, Any]) -> list[Lookup | None]:
        return [by_id(self.hierarchies, one) for one in given["ids_"]]


@dataclass(frozen=True)
class RootsField:
    """The roots of a hierarchy, as a connection."""

    hierarchy: str

    async def __call__(self, root: Any, info: Any, **given: Any) -> Page:
        relation = info.context.asked(info._raw_info).connection(info._raw_info)
        request = info.context.request
        return await read_roots(request, self.hierarchy, relation.window, nodes=relation.nodes, total=relation.total)


def by_id(hierarchies: Collection[str], node_id: str) -> Lookup | None:
    """An id as what is looked up, or None where no node of these hierarchies can have it."""
    hierarchy, _, rest = node_id.partition(":")
    is_possible = hierarchy in hierarchies and 0 < len(rest) <= MAX_ID_CHARACTERS and rest.isprintable()
    return (hierarchy, node_id) if is_possible else None


async def load(info: Any, lookups: Sequence[Lookup | None]) -> list[Record | None]:
    """The nodes that are looked up for a field, None where there are none."""
    selection = info.context.asked(info._raw_info).selection(info._raw_info)
    found = iter(await info.context.loaders.node.load_many([(one, selection) for one in lookups if one is not None]))
    return [None if lookup is None else next(found) for lookup in lookups]
