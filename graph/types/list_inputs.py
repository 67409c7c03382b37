"""List inputs: the types of `orderBy` and `where` of one hierarchy's lists, made of its attributes."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import strawberry
from graphql import GraphQLSchema
from strawberry.types.arguments import StrawberryArgument

from graph.hierarchies.attribute import Date, DateTime, Decimal, Long
from graph.hierarchies.node import Node
from graph.hierarchies.registry import camel, enum_of, list_values
from graph.operation.selection import CONDITION_VALUES, FACET_FIELDS, ORDER_VALUES
from graph.types.facets import facet_fields
from graph.types.fields import Path, argument, class_of, enum_class, input_type
from graph.types.values import enum_type
from resolvers.sorting.children import ChildrenParser
from resolvers.sorting.facets import FacetField
from resolvers.sorting.near import MAX_KILOMETERS, NearValue, distance_from
from resolvers.sorting.ordering import PlaceOrder
from resolvers.sorting.search_comparison import SearchValue, relevance_of
from resolvers.sorting.values import NodeValue
from store.model.attributes import Kind

_TYPES: dict[Kind, Any] = {
    Kind.TEXT: str,
    Kind.INT: int,
    Kind.LONG: Long,
    Kind.FLOAT: float,
    Kind.DECIMAL: Decimal,
    Kind.BOOLEAN: bool,
    Kind.DATE: Date,
    Kind.DATETIME: DateTime,
}
_EQUAL = {"eq": "Equal to this.", "ne": "Not equal to this; true for a node without a value."}
_ONE_OF = {"in": "Equal to one of these."}
_RANGE = {
    "lt": "Less than this.",
    "lte": "Less than or equal to this.",
    "gt": "Greater than this.",
    "gte": "Greater than or equal to this.",
}
_OF_TEXT = {
    "startsWith": "Begins with this, ignoring case and accents.",
    "contains": "Contains this, ignoring case and accents.",
}

_OF_KEY = {
    "eq": "Equal to this.",
    "in": "Equal to one of these.",
    "lt": "Before this, in the order of the tree.",
    "lte": "Before this, or equal to it.",
    "gt": "After this, in the order of the tree.",
    "gte": "After this, or equal to it.",
}
_ABOUT = {
    "name": "Display name, in the first of `languages` in which the node has a name.",
    "key": "Key, in the order of the tree; must be the last. Children are read page by page, without the others.",
    "path": "Path, depth-first; must be the last. Children and descendants are read page by page.",
    "position": "As editors put them, by level and position; descendants depth-first. Must be the last.",
    "level": "Level, in the order in which the hierarchy defines them.",
    "child_count": "Number of children.",
    "updated_at": "Time of the last change of the content.",
    "relevance": "How well it matches the `search` that stands directly in `where`.",
    "distance": "Distance from the point of the `near` that stands directly in `where`.",
}
_LANGUAGES = "Language tags of BCP 47 in order of preference; omitted for the default names."
_conditions: dict[tuple[Any, bool], Any] = {}
"""The inputs with the operators of each type that all hierarchies share, and of lists of it."""


@strawberry.enum(description="Direction of an order; nodes without a value come last in both.")
class OrderDirection(Enum):
    ASC = strawberry.enum_value("ASC", description="From the least to the greatest.")
    DESC = strawberry.enum_value("DESC", description="From the greatest to the least.")


class ListInputs:
    """The inputs of one hierarchy."""

    def __init__(self, cls: type[Node], level: Any) -> None:
        """`level` is the enum of its levels."""
        self._level = level
        self._title = f"{cls.prefix}{cls.title}"
        self._cls = cls
        self._values = list_values(cls)
        declared = {name: one for level in cls.levels.values() for name, one in level.attributes.items()}
        self._hints = {name: hint for name, (hint, _) in declared.items()}
        self._attributes = {name: attribute for name, (_, attribute) in declared.items()}
        self._sorted = {name.upper(): value for name, value in self._values.items() if not value.many}
        self._compared = {name: value for name, value in self._values.items() if name != "level"}
        order: Any = self._order()
        condition: Any = self._condition()
        self.arguments: list[StrawberryArgument] = [
            argument("orderBy", list[order] | None, "By these fields, in turn."),
            argument("where", condition | None, "Only nodes that meet this."),
        ]
        self._facets = self._facet_fields()
        self.facets = facet_fields(self._title, cls.name, self._facets, self._about)

    def register(self, schema: GraphQLSchema) -> None:
        """Give graphql-core's inputs the values that their fields stand for."""
        kinds = schema.type_map
        orders: dict[str, Any] = dict(self._sorted)
        values: dict[str, Any] = {camel(name): value for name, value in self._compared.items()}
        levels = self._cls.definition().levels.values()
        values["children"] = ChildrenParser(tuple([(one.name, one.under) for one in levels]))
        if self._cls.search is not None:
            orders["RELEVANCE"] = relevance_of
            values["search"] = SearchValue(self._cls.definition())
        if self._cls.location is not None:
            orders["DISTANCE"] = distance_from
            values["near"] = NearValue(self._cls.definition(), tuple(map(camel, self._cls.location)))
        kinds[f"{self._title}OrderField"].extensions[ORDER_VALUES] = orders
        kinds[f"{self._title}Condition"].extensions[CONDITION_VALUES] = values
        kinds[f"{self._title}FacetField"].extensions[FACET_FIELDS] = self._facets

    @property
    def _about(self) -> dict[str, str]:
        """What the values are, by their names."""
        return _ABOUT | {name: one.description for name, one in self._attributes.items()}

    def _facet_fields(self) -> dict[str, FacetField]:
        """The values that lists are counted by: the level and the attributes."""
        labels = {name: level.label for name, level in self._cls.levels.items()}
        counted = {name: one for name, one in self._values.items() if name == "level" or name in self._attributes}
        return {
            name.upper(): FacetField(name.upper(), one, labels if name == "level" else {})
            for name, one in counted.items()
        }

    def _order(self) -> Any:
        about = self._about
        named = {name: value.name for name, value in self._sorted.items()} | {one.name: one.value for one in PlaceOrder}
        named |= {"RELEVANCE": "relevance"} if self._cls.search else {}
        named |= {"DISTANCE": "distance"} if self._cls.location else {}
        members = {name: (name, about[value]) for name, value in named.items()}
        text = f"Values that lists of the hierarchy {self._cls.name} sort by."
        fields = enum_class(f"{self._title}OrderField", members, text)
        parts = {
            "field": (fields, "Value to sort by; texts are sorted ignoring case and accents."),
            "direction": (OrderDirection, "Direction.", OrderDirection.ASC),
            "languages": (list[str] | None, f"Of NAME: {_LANGUAGES}"),
        }
        return input_type(f"{self._title}OrderBy", "A value to sort a list by.", parts)

    def _condition(self) -> Any:
        name = f"{self._title}Condition"
        made: Any = class_of(name, {})
        parts: dict[str, tuple[Any, str]] = {
            "and": (list[made] | None, "All of these; met if there is none."),
            "or": (list[made] | None, "One of these; not met if there is none."),
            "not": (made | None, "Not this."),
            "key": (KeyCondition | None, "Condition on `key`; of children, only these are read."),
            "path": (PathCondition | None, "Condition on `path`; only these are read."),
            "children": (self._of_children(made) | None, "Condition on the children, which are read."),
        }
        if self._cls.search is not None:
            parts["search"] = (SearchCondition | None, "Matches a text, as in a search.")
        if self._cls.location is not None:
            parts["near"] = (NearCondition | None, "Lies near a point, by its coordinates.")
        for value in self._compared.values():
            parts[camel(value.name)] = (self._comparison(value) | None, f"Condition on `{camel(value.name)}`.")
        return input_type(name, "A condition on a node; all of its fields have to be met.", parts, made)

    def _of_children(self, condition: Any) -> Any:
        level: Any = self._level
        text = "A condition on the children of a node."
        parts = {
            "some": (condition | None, "Met by at least one child."),
            "none": (condition | None, "Met by no child; true for a node without children."),
            "level": (list[level] | None, "Only children of these levels count."),
        }
        return input_type(f"{self._title}ChildrenCondition", text, parts)

    def _comparison(self, value: NodeValue) -> Any:
        """The input with the operators of a value's type."""
        if value.name == "name":
            return NameCondition
        enum = enum_of(self._hints.get(value.name))
        kind = _TYPES.get(value.kind) or enum_type(cast(type[Enum], enum))
        if (kind, value.many) not in _conditions:
            _conditions[kind, value.many] = _comparison(enum.__name__ if enum else value.kind.value, kind, value)
        return _conditions[kind, value.many]


def _comparison(title: str, kind: Any, value: NodeValue, **more: Any) -> Any:
    if value.many:
        operators = {"contains": "Has this among its values."}
        title = f"{title}List"
    else:
        operators = _EQUAL | ({} if value.kind is Kind.BOOLEAN else _ONE_OF)
        operators |= {} if value.kind in (Kind.BOOLEAN, Kind.ENUM) else _RANGE
        operators |= _OF_TEXT if value.kind is Kind.TEXT else {}
    parts = _typed(operators, kind) | {"isNull": (bool, "Whether the node has no value.")} | more
    return _operators(title, parts, f"A condition on a value of the type {title}; all operators have to be met.")


def _typed(operators: Mapping[str, str], kind: Any) -> dict[str, tuple[Any, str]]:
    return {name: (list[kind] if name == "in" else kind, text) for name, text in operators.items()}


def _operators(title: str, parts: Mapping[str, tuple[Any, str]], description: str) -> Any:
    fields = {name: (each | None, about) for name, (each, about) in parts.items()}
    return input_type(f"{title}Condition", description, fields)


def _of_key(title: str, kind: Any, starts_with: str) -> Any:
    operators = _OF_KEY | {"startsWith": starts_with}
    text = f"A condition on a {title.lower()}, exact and in the order of the tree; all operators have to be met."
    return _operators(title, _typed(operators, kind), text)


SearchCondition: Any = input_type(
    "SearchCondition",
    "A text to search for, as searches do.",
    {
        "text": (str, "Beginnings of words, in any order."),
        "languages": (list[str] | None, "Search only names in these languages and default names."),
    },
)
NearCondition: Any = input_type(
    "NearCondition",
    "A circle on a sphere with the Earth's mean radius.",
    {
        "latitude": (float, "Latitude of its center in degrees, from -90 to 90."),
        "longitude": (float, "Longitude of its center in degrees, from -360 to 360."),
        "kilometers": (float, f"Its radius, up to {MAX_KILOMETERS:,}."),
    },
)
KeyCondition: Any = _of_key("Key", str, "Begins with this.")
PathCondition: Any = _of_key("Path", Path, "This, or the path of a descendant of the node at it.")
NameCondition: Any = _comparison("Name", str, NodeValue("name", Kind.TEXT), languages=(list[str], _LANGUAGES))
