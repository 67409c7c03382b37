"""Search fields: the root fields that find nodes by words, as `searchLocations`. Plans call them as Strawberry does."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from graph.hierarchies.names import search_field_of
from graph.types.field import Fields, argument, field, object_type, required
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.scalars import Path
from resolvers.search.finder import MAX_HITS, FoundPage
from resolvers.search.hits import Selected
from resolvers.search.search import SearchArguments, search
from resolvers.session.request import Request
from store.model.paths import parse_path

FIRST = argument("first", int, f"Maximum number of nodes, up to {MAX_HITS}.", default=10)
UNDER = argument("under", Path | None, "Only nodes below the node with this path.")
_LANGUAGES = argument(
    "languages",
    list[str] | None,
    "Only the names in these languages (BCP 47) are searched, and the default name; names in all of them without it.",
)
COMPLETE = "Whether it is proven that no other node belongs among these."


class FoundField(ABC):
    """A root field that returns an object with `nodes`, the best first, and `complete`."""

    @abstractmethod
    async def find(self, request: Request, given: Mapping[str, Any], selected: Selected) -> FoundPage:
        """The nodes for these arguments, with what is selected of them. Raises BadInput."""

    async def __call__(self, root: Any, info: Any, **given: Any) -> FoundPage:
        return await self.find(info.context.request, given, Selected())


@dataclass(frozen=True)
class SearchField(FoundField):
    """The nodes of a hierarchy that match a text."""

    hierarchy: str

    async def find(self, request: Request, given: Mapping[str, Any], selected: Selected) -> FoundPage:
        languages = given.get("languages_")
        asked = SearchArguments.of(
            given["text_"],
            under_of(given),
            levels_of(given),
            given["first_"],
            None if languages is None else tuple(languages),
        )
        return await search(request, request.hierarchies[self.hierarchy], asked, selected)


def under_of(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The path in the argument `under`, None for the whole hierarchy. Raises BadInput."""
    under = given.get("under_")
    return None if under is None else parse_path(under)


def levels_of(given: Mapping[str, Any]) -> frozenset[str] | None:
    """The levels in the argument `level`, None for all."""
    levels = given.get("level_")
    return None if levels is None else frozenset(getattr(level, "value", level) for level in levels)


def level_argument(types: HierarchyTypes) -> Parameter:
    """The argument `level` of a field that finds nodes of a hierarchy."""
    return argument("level", list[types.level] | None, "Only nodes of these levels.")  # type: ignore[name-defined]


def search_fields(types: HierarchyTypes) -> Fields:
    """The field that searches a hierarchy, if its class says so."""
    cls = types.cls
    if cls.search is None:
        return {}
    node: Any = types.nodes.interface
    found = object_type(
        f"{types.title}Search",
        f"Nodes of the hierarchy {cls.name} that a search has found.",
        {
            "nodes": field(lambda page, info: page.records, list[node], "The nodes, the best match first."),
            "complete": field(lambda page, info: page.complete, bool, COMPLETE),
        },
    )
    level = level_argument(types)
    text = required("text", str, "Beginnings of words of a node's names, key or searched attributes, in any order.")
    description = (
        f"Nodes of the hierarchy {cls.name} in which each word of the text begins a word. First come those whose name "
        "is the text, then those whose name begins with it; among these the heavier first, then the less deep, then by "
        "name. Case and accents do not matter."
    )
    arguments = [text, UNDER, level, FIRST, _LANGUAGES]
    return {search_field_of(cls): field(SearchField(cls.name), found, description, *arguments)}
