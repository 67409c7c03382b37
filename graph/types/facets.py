"""Facets: the field of connections that counts the nodes of a list by their values."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from graph.types.fields import Fields, argument, attribute_of, enum_class, field, object_type
from resolvers.sorting.facets import MAX_FACET_VALUES, MAX_FACETS

_VALUE: Any = object_type(
    "ListFacetValue",
    "A value that nodes of a list have.",
    {
        "value": field(attribute_of("value"), str, "The value, as a condition takes it."),
        "count": field(attribute_of("count"), int, "Number of nodes that have it."),
    },
)
_FACET: Any = object_type(
    "ListFacet",
    "The values of one field that the nodes of a list have.",
    {
        "field": field(attribute_of("field"), str, "The field."),
        "values": field(attribute_of("values"), list[_VALUE], "The values, those of most nodes first."),
        "distinct_count": field(attribute_of("distinct_count"), int, "Number of different values."),
        "missing_count": field(attribute_of("missing_count"), int, "Number of nodes without a value."),
        "minimum": field(attribute_of("minimum"), str | None, "Least number, date or time."),
        "maximum": field(attribute_of("maximum"), str | None, "Greatest number, date or time."),
    },
)


def facet_fields(title: str, hierarchy: str, names: Iterable[str], about: Mapping[str, str]) -> Fields:
    """The field of the connection of a hierarchy, which counts by these values."""
    members = {name: (name, about[name.lower()]) for name in names}
    fields: Any = enum_class(f"{title}FacetField", members, f"Values that lists of the hierarchy {hierarchy} count.")
    return {
        "facets": field(
            attrgetter("facets"),
            list[_FACET],
            "Values in the whole list, a field without its own condition directly in `where`.",
            argument("fields", list[fields], f"Up to {MAX_FACETS} fields."),
            argument("first", int, f"At most so many values of each, up to {MAX_FACET_VALUES}.", default=20),
        )
    }
