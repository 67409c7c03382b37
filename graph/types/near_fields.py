"""Near fields: the root fields for the nodes near a point, as `locationsNear`. Plans call them as Strawberry does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graph.hierarchies.names import near_field_of
from graph.types.field import Fields, argument, field, object_type, required
from graph.types.hierarchy_types import HierarchyTypes
from graph.types.search_fields import COMPLETE, FIRST, UNDER, FoundField, level_argument, levels_of, under_of
from resolvers.search.finder import FoundPage
from resolvers.search.hits import Selected
from resolvers.search.near import MAX_KILOMETERS, NearArguments, near
from resolvers.session.request import Request
from store.model.records import Record

_LATITUDE = required("latitude", float, "Latitude of the point in degrees, from -90 to 90.")
_LONGITUDE = required("longitude", float, "Longitude of the point in degrees, from -360 to 360.")
_KILOMETERS = argument(
    "kilometers", float, f"Only nodes so near, in kilometers, up to {MAX_KILOMETERS:,}.", default=50.0
)
_DISTANCE = "Distance from the point in kilometers, on a sphere with the Earth's mean radius."


@dataclass(frozen=True)
class NearField(FoundField):
    """The nodes of a hierarchy near a point."""

    hierarchy: str

    async def find(self, request: Request, given: Mapping[str, Any], selected: Selected) -> FoundPage:
        asked = NearArguments.of(
            given["latitude_"],
            given["longitude_"],
            given["kilometers_"],
            under_of(given),
            levels_of(given),
            given["first_"],
        )
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
            "kilometers": field(lambda edge, info: edge[0], float, _DISTANCE),
            "node": field(lambda edge, info: edge[1], node, "The node."),
        },
    )
    found = object_type(
        title,
        f"Nodes of the hierarchy {cls.name} near a point.",
        {
            "nodes": field(lambda page, info: page.records, list[node], "The nodes, the nearest first."),  # type: ignore[valid-type]
            "edges": field(_edges, list[edge], "The nodes with their distances, the nearest first."),
            "complete": field(lambda page, info: page.complete, bool, COMPLETE),
        },
    )
    latitude, longitude = cls.location
    description = (
        f"Nodes of the hierarchy {cls.name} near a point, by their {latitude} and {longitude}: the nearest first, and "
        "those at the same distance by id."
    )
    arguments = [_LATITUDE, _LONGITUDE, _KILOMETERS, level_argument(types), FIRST, UNDER]
    return {name: field(NearField(cls.name), found, description, *arguments)}


def _edges(page: FoundPage, info: Any) -> list[tuple[float, Record]]:
    return [(page.kilometers[record.id], record) for record in page.records]
