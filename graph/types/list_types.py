"""Lists in the schema: Relay connections, and the inputs of conditions and orders."""

from collections.abc import Callable, Mapping
from enum import Enum
from inspect import Parameter
from typing import Any, cast

import strawberry
from graphql import GraphQLResolveInfo, GraphQLSchema

from graph.hierarchies.attribute import Date, DateTime, Decimal, Long
from graph.hierarchies.list_values import enum_of, list_values
from graph.hierarchies.names import camel
from graph.hierarchies.node import Node
from graph.operation.lookahead import CONDITION_VALUES, ORDER_VALUES
from graph.types.field import Fields, argument, class_of, field, object_type
from graph.types.value_types import Path, enum_type
from resolvers.planning.page import Page
from resolvers.sorting.node_values import NodeValue
from resolvers.sorting.ordering import PlaceOrder
from store.model.attributes import Kind
from store.model.records import Record

PAGE_INFO: dict[str, Callable[..., Any]] = {
    "hasNextPage": lambda page, info=None: page.has_next,
    "hasPreviousPage": lambda page, info=None: page.has_previous,
    "startCursor": lambda page, info=None: page.cursor(page.records[0]) if page.records else None,
    "endCursor": lambda page, info=None: page.cursor(page.records[-1]) if page.records else None,
}
"""The resolvers of PageInfo, which plans call as well."""

_CURSOR = str | None
_END = "Cursor of the last item, for `after`; null for an empty page."
_PREVIOUS = "Whether there are items before this page; with `first`, whether `after` was given."

PageInfo = object_type(
    "PageInfo",
    "The position of a page in its list, after Relay's specification of cursor connections.",
    {
        "has_next_page": field(PAGE_INFO["hasNextPage"], bool, "Whether there are items after this page."),
        "has_previous_page": field(PAGE_INFO["hasPreviousPage"], bool, _PREVIOUS),
        "start_cursor": field(PAGE_INFO["startCursor"], _CURSOR, "Cursor of the first item; null for an empty page."),
        "end_cursor": field(PAGE_INFO["endCursor"], _CURSOR, _END),
    },
)


class ConnectionTypes:
    """The connection and the edge of one type of items. Types refer to each other, so their fields are set later."""

    def __init__(self, title: str, item: str) -> None:
        self._item = item
        self.edge: Any = class_of(f"{title}Edge", {})
        self.connection: Any = class_of(f"{title}Connection", {})

    def publish(self, kind: Any, description: str) -> None:
        """Make both types of a list of items of this kind."""
        item = self._item
        edge: Any = self.edge
        cursor = f"Cursor of the {item}, for `after` and `before`."
        edge_fields = {
            "cursor": field(lambda edge, info: edge[0].cursor(edge[1]), str, cursor),
            "node": field(lambda edge, info: edge[1], kind, f"The {item}."),
        }
        fields = {
            "edges": field(_edges, list[edge], f"Edges of the page: its {item}s with their cursors."),
            "nodes": field(lambda page, info: page.records, list[kind], f"The {item}s of the page."),
            "page_info": field(lambda page, info: page, PageInfo, "Position of the page in the list."),
            "total_count": field(
                lambda page, info: page.total, int | None, f"Number of {item}s in the whole list.",
                semantic_non_null=True,
            ),
        }  # fmt: skip
        set_fields(edge, edge_fields)
        set_fields(self.connection, fields)
        strawberry.type(edge, description=f"A {item} with its cursor.")
        strawberry.type(self.connection, description=description)


def set_fields(cls: type, fields: Fields) -> None:
    """Give fields to a class that was made without."""
    for name, made in fields.items():
        setattr(cls, name, made)


def _edges(page: Page, info: GraphQLResolveInfo[Any]) -> list[tuple[Page, Record]]:
    return [(page, record) for record in page.records]


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
_IS_NULL = "Whether the node has no value."

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
    "position": "Position among the siblings, after the level; must be the last. Not for descendants.",
    "level": "Level, in the order in which the hierarchy defines them.",
    "child_count": "Number of children.",
    "updated_at": "Time of the last change of the content.",
}
_LANGUAGES = "Language tags of BCP 47 in order of preference; omitted for the default names."
_PLACES = tuple(PlaceOrder)


@strawberry.enum(description="Direction of an order; nodes without a value come last in both.")
class OrderDirection(Enum):
    ASC = strawberry.enum_value("ASC", description="From the least to the greatest.")
    DESC = strawberry.enum_value("DESC", description="From the greatest to the least.")


_conditions: dict[tuple[Any, bool], Any] = {}
"""The inputs with the operators of each type that all hierarchies share, and of lists of it."""


class ListInputs:
    """The inputs of one hierarchy."""

    def __init__(self, cls: type[Node]) -> None:
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
        self.arguments: list[Parameter] = [
            argument("orderBy", list[order] | None, "By the first field, then by the next."),
            argument("where", condition | None, "Only nodes that meet this condition."),
        ]

    def register(self, schema: GraphQLSchema) -> None:
        """Give graphql-core's inputs the values that their fields stand for."""
        kinds = schema.type_map
        kinds[f"{self._title}OrderField"].extensions[ORDER_VALUES] = self._sorted
        values = {camel(name): value for name, value in self._compared.items()}
        kinds[f"{self._title}Condition"].extensions[CONDITION_VALUES] = values

    def _order(self) -> type:
        make: Any = Enum  # mypy follows only enums that are written out
        about = _ABOUT | {name: one.description for name, one in self._attributes.items()}
        named = {name: value.name for name, value in self._sorted.items()} | {one.name: one.value for one in _PLACES}
        members = {name: strawberry.enum_value(name, description=about[value]) for name, value in named.items()}
        plain = make(f"{self._title}OrderField", members)
        fields = strawberry.enum(plain, description=f"Values that lists of the hierarchy {self._cls.name} sort by.")
        parts = {
            "field": (fields, "Value to sort by; texts are sorted ignoring case and accents.", {}),
            "direction": (OrderDirection, "Direction.", {"default": OrderDirection.ASC}),
            "languages": (list[str] | None, f"Of NAME: {_LANGUAGES}", _OPTIONAL),
        }
        return _input(f"{self._title}OrderBy", "A value to sort a list by.", parts)

    def _condition(self) -> type:
        name = f"{self._title}Condition"
        made = type(name, (), {})
        parts: dict[str, tuple[Any, str | None, Mapping[str, Any]]] = {
            "and": (list[made] | None, "All of these; met if there is none.", _OPTIONAL),  # type: ignore[valid-type]
            "or": (list[made] | None, "One of these; not met if there is none.", _OPTIONAL),  # type: ignore[valid-type]
            "not": (made | None, "Not this.", _OPTIONAL),
        }
        parts["key"] = (KeyCondition | None, "Condition on `key`; of children, only these are read.", _OPTIONAL)
        parts["path"] = (PathCondition | None, "Condition on `path`; only these are read.", _OPTIONAL)
        for value in self._compared.values():
            parts[camel(value.name)] = (self._comparison(value) | None, None, _OPTIONAL)
        return _input(name, "A condition on a node; all of its fields have to be met.", parts, made)

    def _comparison(self, value: NodeValue) -> Any:
        """The input with the operators of a value's type."""
        if value.name == "name":
            return NameCondition
        enum = enum_of(self._hints.get(value.name))
        kind = _TYPES.get(value.kind) or enum_type(cast(type[Enum], enum))
        if (kind, value.many) not in _conditions:
            _conditions[kind, value.many] = _comparison(enum.__name__ if enum else value.kind.value, kind, value)
        return _conditions[kind, value.many]


_OPTIONAL: Mapping[str, Any] = {"default": strawberry.UNSET}


def _comparison(title: str, kind: Any, value: NodeValue, **more: Any) -> type:
    if value.many:
        operators = {"contains": "Has this among its values."}
        title = f"{title}List"
    else:
        operators = _EQUAL | ({} if value.kind is Kind.BOOLEAN else _ONE_OF)
        operators |= {} if value.kind in (Kind.BOOLEAN, Kind.ENUM) else _RANGE
        operators |= _OF_TEXT if value.kind is Kind.TEXT else {}
    parts = {name: (list[kind] if name == "in" else kind, text) for name, text in operators.items()}
    parts["isNull"] = (bool, _IS_NULL)
    return _operators(title, parts | more, f"A condition on a {title}: all operators have to be met.")


def _operators(title: str, parts: Mapping[str, tuple[Any, str]], description: str) -> type:
    fields = {name: (each | None, about, _OPTIONAL) for name, (each, about) in parts.items()}
    return _input(f"{title}Condition", description, fields)


def _input(
    name: str, description: str, parts: Mapping[str, tuple[Any, str | None, Mapping[str, Any]]], cls: type | None = None
) -> type:
    """An input with these fields: type, description and default of each by its name in the schema."""
    made = type(name, (), {}) if cls is None else cls
    made.__annotations__ = {f"part{number}": kind for number, (kind, _, _) in enumerate(parts.values())}
    for number, (part, (_, text, default)) in enumerate(parts.items()):
        setattr(made, f"part{number}", strawberry.field(name=part, description=text, **default))
    return strawberry.input(made, name=name, description=description)


def _of_key(title: str, kind: Any, starts_with: str) -> type:
    operators = _OF_KEY | {"startsWith": starts_with}
    text = f"A condition on a {title.lower()}, exact and in the order of the tree; all operators have to be met."
    return _operators(
        title, {name: (list[kind] if name == "in" else kind, about) for name, about in operators.items()}, text
    )


KeyCondition: Any = _of_key("Key", str, "Begins with this.")
PathCondition: Any = _of_key("Path", Path, "This, or the path of a descendant of the node at it.")
NameCondition: Any = _comparison("Name", str, NodeValue("name", Kind.TEXT), languages=(list[str], _LANGUAGES))
