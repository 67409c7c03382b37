"""Search fields of Query, which find nodes by words, as `searchLocations`, or near a point, as `locationsNear`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from strawberry.types.arguments import StrawberryArgument

from graph.hierarchies.registry import near_field_of, search_field_of
from graph.operation.selection import plain
from graph.types.fields import Fields, Path, argument, field, object_type
from graph.types.nodes import HierarchyTypes
from resolvers.search.finder import MAX_COUNTED, MAX_HITS, FoundPage, Selected
from resolvers.search.near import MAX_KILOMETERS, NearArguments, near, point_at
from resolvers.search.words import SearchArguments, search
from resolvers.session.request import Request
from store.model.paths import parse_path
from store.search.words import SearchText

_FIRST = argument("first", int, f"Maximum number of nodes, up to {MAX_HITS}.", default=10)
_UNDER = argument("under", Path | None, "Only nodes below the node with this path.")
_LANGUAGES = argument(
    "languages",
    list[str] | None,
    "Search only names in these languages (tags of BCP 47) and default names; by default names in all languages.",
)
_TOTAL = f"Number of all nodes that match; null where it is not known, as where they are more than {MAX_COUNTED}."
_COMPLETE = "Whether it is proven that no other node belongs in this result."


class SearchField(ABC):
    """A root field that returns an object with `nodes`, the best first, and `complete`."""

    @abstractmethod
    async def find(self, request: Request, given: Mapping[str, Any], selected: Selected) -> FoundPage:
        """The nodes for these arguments, with what is selected of them. Raises BadInput."""


@dataclass(frozen=True)
class WordSearch(SearchField):
    """The nodes of a hierarchy that match a text."""

    hierarchy: str

    async def find(self, request: Request, given: Mapping[str, Any], selected: Selected) -> FoundPage:
        languages = given.get("languages")
        languages = None if languages is None else tuple(languages)
        asked = SearchArguments(SearchText.of(given["text"]), languages, **_shared_arguments(given))
        return await search(request, request.hierarchies[self.hierarchy], asked, selected)


def _shared_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that all searches have. Raises BadInput."""
    under, levels = given.get("under"), given.get("level")
    return {
        "under": None if under is None else parse_path(under),
        "levels": None if levels is None else frozenset(map(plain, levels)),
        "first": given["first"],
    }


def _level_argument(types: HierarchyTypes) -> StrawberryArgument:
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
        f"Nodes of the hierarchy {cls.name} that match a search.",
        {
            "nodes": field(None, list[node], "The nodes, the best match first."),
            "complete": field(attrgetter("complete"), bool, _COMPLETE),
            "total_count": field(attrgetter("total"), int | None, _TOTAL),
        },
    )
    level = _level_argument(types)
    text = argument("text", str, "Beginnings of words of a node's names, key or searched attributes, in any order.")
    description = (
        f"Nodes of the hierarchy {cls.name} that match a text: each of its words begins a word of the node. Nodes "
        "whose name is the text come first, then those whose name begins with it; within these by weight, depth and "
        "name. Last come nodes with the first word whose ancestors have the others. Case and accents are ignored."
    )
    arguments = [text, _UNDER, level, _FIRST, _LANGUAGES]
    return {search_field_of(cls): field(WordSearch(cls.name), found | None, description, *arguments)}


# -- near a point ------------------------------------------------------------------------------------------------------

_LATITUDE = argument("latitude", float, "Latitude of the point in degrees, from -90 to 90.")
_LONGITUDE = argument("longitude", float, "Longitude of the point in degrees, from -360 to 360.")
_KILOMETERS = argument("kilometers", float, f"Radius in kilometers, up to {MAX_KILOMETERS:,}.", default=50.0)
_DISTANCE = "Distance from the point in kilometers, on a sphere with the Earth's mean radius."


@dataclass(frozen=True)
class NearSearch(SearchField):
    """The nodes of a hierarchy near a point."""

    hierarchy: str

    async def find(self, request: Request, given: Mapping[str, Any], selected: Selected) -> FoundPage:
        point = point_at(given["latitude"], given["longitude"])
        asked = NearArguments(point, given["kilometers"], **_shared_arguments(given))
        return await near(request, request.hierarchies[self.hierarchy], asked, selected)


def near_fields(types: HierarchyTypes) -> Fields:
    """The field that finds what is near, if the class of the hierarchy names latitude and longitude."""
    cls = types.cls
    if cls.location is None:
        return {}
    name, node = near_field_of(cls), types.nodes.interface
    title = f"{name[:1].upper()}{name[1:]}"
    edge: Any = object_type(
        f"{title}Edge",
        "A node near a point.",
        {
            "kilometers": field(lambda page, record, *_: page.kilometers[record.id], float, _DISTANCE),
            "node": field(None, node, "The node."),
        },
    )
    found = object_type(
        title,
        f"Nodes of the hierarchy {cls.name} near a point.",
        {
            "nodes": field(None, list[node], "The nodes, the nearest first."),  # type: ignore[valid-type]
            "edges": field(None, list[edge], "The nodes with their distances, the nearest first."),
            "complete": field(attrgetter("complete"), bool, _COMPLETE),
        },
    )
    latitude, longitude = cls.location
    description = (
        f"Nodes of the hierarchy {cls.name} near a point, by their {latitude} and {longitude}: the nearest first, and "
        "those at the same distance by id."
    )
    arguments = [_LATITUDE, _LONGITUDE, _KILOMETERS, _level_argument(types), _FIRST, _UNDER]
    return {name: field(NearSearch(cls.name), found | None, description, *arguments)}
