"""Search fields of Query, which find nodes by words, as `searchLocations`."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from graph.hierarchies.registry import search_field_of
from graph.operation.selection import plain
from graph.types.fields import Fields, Path, argument, field, object_type
from graph.types.nodes import HierarchyTypes
from resolvers.search.finder import MAX_HITS, FoundPage, Selected
from resolvers.search.words import SearchArguments, search
from resolvers.session.request import Request
from store.kinds.words import SearchText
from store.model.paths import parse_path

_FIRST = argument("first", int, f"Maximum number of nodes, up to {MAX_HITS}.", default=10)
_UNDER = argument("under", Path | None, "Only nodes below the node with this path.")
_LANGUAGES = argument(
    "languages",
    list[str] | None,
    "Search only names in these languages (tags of BCP 47) and default names; by default names in all languages.",
)
_TOTAL = "Number of all nodes that match; null where it is not known."
_COMPLETE = "Whether it is proven that no other node belongs in this result."


@dataclass(frozen=True)
class SearchField:
    """A root field that returns the nodes of a hierarchy that match a text, the best first, and `complete`."""

    hierarchy: str

    async def find(self, request: Request, given: Mapping[str, Any], selected: Selected) -> FoundPage:
        """The nodes for these arguments, with what is selected of them. Raises BadInput."""
        languages, under, levels = [given.get(name) for name in ("languages", "under", "level")]
        asked = SearchArguments(
            SearchText.of(given["text"]),
            None if languages is None else tuple(languages),
            under=None if under is None else parse_path(under),
            levels=None if levels is None else frozenset(map(plain, levels)),
            first=given["first"],
        )
        return await search(request, request.hierarchies[self.hierarchy], asked, selected)


def search_fields(types: HierarchyTypes) -> Fields:
    """The field that searches a hierarchy, if its class says so."""
    cls = types.cls
    if cls.search is None:
        return {}
    node: Any = types.nodes.interface
    found = object_type(
        f"{types.title}Search",
        f"Nodes of the hierarchy {cls.name} that match a search.",
        {
            "nodes": field(None, list[node], "The nodes, the best match first."),
            "complete": field(attrgetter("complete"), bool, _COMPLETE),
            "total_count": field(attrgetter("total"), int | None, _TOTAL),
        },
    )
    level = argument("level", list[types.level] | None, "Only nodes of these levels.")  # type: ignore[name-defined]
    text = argument("text", str, "Beginnings of words of a node's names, key or searched attributes, in any order.")
    description = (
        f"Nodes of the hierarchy {cls.name} that match a text: each of its words begins a word of the node. First "
        "those whose name is it, then those whose name begins with it, by weight, depth and name; last those whose "
        "ancestors have words after the first. Case and accents are ignored."
    )
    arguments = [text, _UNDER, level, _FIRST, _LANGUAGES]
    return {search_field_of(cls): field(SearchField(cls.name), found | None, description, *arguments)}
