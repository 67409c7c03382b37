"""Served hierarchies as data: the root field `hierarchies`, for tools that serve any hierarchy, and the enums of all
hierarchies and of all their levels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from strawberry.types.field import StrawberryField

from graph.hierarchies.node import Node, description
from graph.hierarchies.registry import (
    camel,
    enum_members,
    field_of,
    input_field_of,
    list_field_of,
    list_values,
    search_field_of,
)
from graph.types.fields import attribute_of, enum_class, field, object_type
from resolvers.session.request import Request
from store.model.attributes import Attribute, Kind, Value
from store.model.hierarchy import SearchScope
from store.model.values import TEXTS

_SELECTIONS = {Kind.MONEY: "{ amount currency }", Kind.LOCALIZED: "{ texts { language text } }"}


class HierarchyEnums:
    """`hierarchy` has the names of the served hierarchies, in capitals, `level` those of all their levels."""

    def __init__(self, classes: Sequence[type[Node]]) -> None:
        names = {cls.name.upper(): (cls.name, description(cls)) for cls in classes}
        self.hierarchy = enum_class("HierarchyName", names, "The served hierarchies.")
        levels = {level.label: (level.label, description(level)) for cls in classes for level in cls.levels.values()}
        self.level = enum_class("NodeLevel", levels, "The levels of all served hierarchies.")
        self._labels = {(cls.name, name): level.label for cls in classes for name, level in cls.levels.items()}

    def label(self, hierarchy: str, level: str | None) -> str | None:
        """The present name of a level by its name in the table; None for one that no class defines."""
        return None if level is None else self._labels.get((hierarchy, level))


class Served(NamedTuple):
    """A served hierarchy, as a request sees it."""

    cls: type[Node]
    request: Request


def hierarchies_field(classes: Sequence[type[Node]], enums: HierarchyEnums) -> StrawberryField:
    """`hierarchies`: those that the caller may read in part or whole, in the order in which they are served."""

    def readable(root: Any, info: Any) -> list[Served]:
        request = info.context.request
        return [Served(cls, request) for cls in classes if request.grants is None or cls.name in request.grants.read]

    text = "The served hierarchies that the caller may read, with their levels and attributes."
    return field(readable, list[_hierarchy_type(enums)], text)  # type: ignore[misc]


def _hierarchy_type(enums: HierarchyEnums) -> Any:
    level_type: Any = _level_type(enums)
    fields = {
        "name": field(attribute_of("cls.name"), enums.hierarchy, "Name of the hierarchy."),
        "title": field(lambda one, info: one.cls.prefix + one.cls.title, str, "Name of the interface of its nodes."),
        "description": field(lambda one, info: description(one.cls), str, "Description of the hierarchy."),
        "field": field(
            lambda one, info: field_of(one.cls.prefix + one.cls.title), str,
            "Field of Query that finds one of its nodes.",
        ),
        "list_field": field(lambda one, info: list_field_of(one.cls), str, "Field of Query that lists its roots."),
        "search_field": field(
            lambda one, info: search_field_of(one.cls) if one.cls.search else None, str | None,
            "Field of Query that searches it by words; null if it has no search.",
        ),
        "search_needs_under": field(
            lambda one, info: one.cls.search is not None and one.cls.search.scope is SearchScope.TREE, bool,
            "Whether a search takes one tree at a time, so that `under` is required.",
        ),
        "latitude_field": field(_coordinate(0), str | None, "Field with the latitude of a node, if it has one."),
        "longitude_field": field(_coordinate(1), str | None, "Field with the longitude of a node, if it has one."),
        "may_write": field(
            _may_write, bool,
            "Whether the caller may change some of its nodes.",
        ),
        "levels": field(
            lambda one, info: [(one.cls, level) for level in one.cls.levels.values()], list[level_type], "Its levels."
        ),
    }  # fmt: skip
    return object_type("HierarchyInfo", "A served hierarchy.", fields)


def _may_write(one: Served, info: Any) -> bool:
    writes = one.request.caller.writes
    return one.request.writer is not None and (writes is None or bool(writes.write.get(one.cls.name)))


def _coordinate(place: int) -> Callable[[Served, Any], str | None]:
    return lambda one, info: camel(one.cls.location[place]) if one.cls.location else None


def _level_type(enums: HierarchyEnums) -> Any:
    def under(pair: tuple[type[Node], type[Node]], info: Any) -> list[str]:
        names = pair[0].definition().levels[pair[1].level].under
        return sorted(pair[0].levels[name].label for name in names if name is not None)

    fields = {
        "name": field(lambda pair, info: pair[1].label, enums.level, "Name of the level."),
        "title": field(lambda pair, info: pair[0].prefix + pair[1].title, str, "Name of the type of its nodes."),
        "description": field(lambda pair, info: description(pair[1]), str, "Description of the level."),
        "under": field(under, list[enums.level], "The levels that its nodes may be under."),  # type: ignore[name-defined]
        "may_be_root": field(lambda pair, info: None in pair[1].under, bool, "Whether its nodes may be roots."),
        "input_field": field(
            lambda pair, info: camel(input_field_of(pair[1].__name__)), str,
            "Field of the input `attributes` of mutations that has the attributes of this level.",
        ),
        "attributes": field(
            _attributes, list[_ATTRIBUTE], "Its attributes and computed fields, with those of the hierarchy."
        ),
    }  # fmt: skip
    return object_type("HierarchyLevel", "A level of a hierarchy.", fields)


@dataclass(frozen=True)
class ListedAttribute:
    """An attribute or a computed field of a level, with the type in its class."""

    attribute: Attribute
    hint: Any
    computed: bool = False
    order: str | None = None
    """Its value of `orderBy`, None where lists are not sorted by it."""
    facet: str | None = None
    """Its value of `facets`, None where lists are not counted by it."""


def _attributes(pair: tuple[type[Node], type[Node]], info: Any) -> list[ListedAttribute]:
    cls, level = pair
    counted = {name: name.upper() for name in list_values(cls)}
    stored = [
        ListedAttribute(one, hint, order=None if one.many else counted.get(one.name), facet=counted.get(one.name))
        for hint, one in level.attributes.values()
    ]
    return [*stored, *[ListedAttribute(one.attribute, one.hint, computed=True) for one in level.computed.values()]]


def _type(one: ListedAttribute, info: Any) -> str:
    kind = one.attribute.enum or one.attribute.kind.value
    return f"[{kind}!]" if one.attribute.many else kind


def _bound(value: Value) -> str | None:
    return None if value is None else str(value)


def _max_length(one: ListedAttribute, info: Any) -> int | None:
    is_text = one.attribute.kind in TEXTS or one.attribute.kind is Kind.LOCALIZED
    return one.attribute.max_length if is_text and not one.computed else None


def _selection(attribute: Attribute) -> str | None:
    """The selection of all fields of an attribute's type; None for a type without fields."""
    if attribute.kind is not Kind.NESTED:
        return _SELECTIONS.get(attribute.kind)
    parts = (" ".join(filter(None, (camel(part.name), _selection(part)))) for part in attribute.parts)
    return f"{{ {' '.join(parts)} }}"


_ATTRIBUTE: Any = object_type(
    "HierarchyAttribute",
    "An attribute or a computed field of a level.",
    {
        "name": field(lambda one, info: camel(one.attribute.name), str, "Name of its field."),
        "type": field(_type, str, 'Type of its field, such as "[String!]".'),
        "selection": field(
            lambda one, info: _selection(one.attribute), str | None,
            'Selection of all fields of its type, such as "{ amount currency }"; null for a type without fields.',
        ),
        "values": field(
            lambda one, info: list(enum_members(one.hint)) or None, list[str] | None,
            "Values of its type in their order; null unless the type is an enum.",
        ),
        "order_field": field(
            attribute_of("order"), str | None, "Value of `orderBy` for it; null if lists cannot be sorted by it."
        ),
        "facet_field": field(
            attribute_of("facet"), str | None, "Value of `facets` for it; null if lists cannot be counted by it."
        ),
        "description": field(lambda one, info: one.attribute.description, str, "Description."),
        "required": field(
            lambda one, info: one.attribute.rules.required, bool, "Whether a new node needs a value."
        ),
        "unique": field(lambda one, info: one.attribute.unique, bool, "Whether each value belongs to one node."),
        "minimum": field(
            lambda one, info: _bound(one.attribute.rules.minimum), str | None,
            "Least value that is written, of a list for each element, as text; null without a minimum.",
        ),
        "maximum": field(
            lambda one, info: _bound(one.attribute.rules.maximum), str | None,
            "Greatest value that is written, of a list for each element, as text; null without a maximum.",
        ),
        "max_length": field(
            _max_length, int | None,
            "Maximum number of characters of a text that is written; null for types that are no text.",
        ),
        "pattern": field(
            lambda one, info: one.attribute.rules.pattern or None, str | None,
            "Regular expression that matches a text that is written as a whole, in the syntax of Rust's regex; null "
            "without one.",
        ),
        "computed": field(attribute_of("computed"), bool, "Whether it follows from other attributes."),
        "deprecated": field(lambda one, info: one.attribute.deprecated or None, str | None, "What to use instead."),
    },
)  # fmt: skip
