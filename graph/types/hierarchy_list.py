"""Served hierarchies as data: the root field `hierarchies`, for tools that serve any hierarchy, and the enums of all
hierarchies and of all their levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.hierarchies.names import camel, field_of, list_field_of
from graph.hierarchies.node import Node, description
from graph.types.field import attribute_of, field, object_type
from store.model.attributes import Attribute

_make: Any = Enum  # mypy follows only enums that are written out


@dataclass(frozen=True)
class LevelNames:
    """The present names of levels by hierarchy and name in the table."""

    names: Mapping[tuple[str, str], str]

    def present(self, hierarchy: str, level: str | None) -> str | None:
        """The present name of a level; None for one that no class defines."""
        return None if level is None else self.names.get((hierarchy, level))


class HierarchyEnums:
    """`hierarchy` has the names of the served hierarchies, in capitals, `level` those of all their levels."""

    def __init__(self, classes: Sequence[type[Node]]) -> None:
        names = {cls.name.upper(): strawberry.enum_value(cls.name, description=description(cls)) for cls in classes}
        self.hierarchy = strawberry.enum(_make("HierarchyName", names), description="The served hierarchies.")
        labels = {level.label: level for cls in classes for level in cls.levels.values()}
        values = {label: strawberry.enum_value(label, description=description(one)) for label, one in labels.items()}
        self.level = strawberry.enum(_make("NodeLevel", values), description="The levels of all served hierarchies.")
        found = {(cls.name, name): level.label for cls in classes for name, level in cls.levels.items()}
        self.names = LevelNames(found)


def hierarchies_field(classes: Sequence[type[Node]], enums: HierarchyEnums) -> StrawberryField:
    """`hierarchies`: those that the caller may read in part or whole, in the order in which they are served."""

    def readable(root: Any, info: Any) -> list[type[Node]]:
        grants = info.context.request.grants
        return [cls for cls in classes if grants is None or grants.tops(cls.name)]

    text = "The served hierarchies that the caller may read, with their levels and attributes."
    return field(readable, list[_hierarchy_type(enums)], text)  # type: ignore[misc]


def _hierarchy_type(enums: HierarchyEnums) -> Any:
    level_type: Any = _level_type(enums)
    fields = {
        "name": field(attribute_of("name"), enums.hierarchy, "Name of the hierarchy."),
        "title": field(lambda cls, info: cls.prefix + cls.title, str, "Name of the interface of its nodes."),
        "description": field(lambda cls, info: description(cls), str, "Description of the hierarchy."),
        "field": field(
            lambda cls, info: field_of(cls.prefix + cls.title), str, "Field of Query that finds one of its nodes."
        ),
        "list_field": field(lambda cls, info: list_field_of(cls), str, "Field of Query that lists its roots."),
        "levels": field(
            lambda cls, info: [(cls, level) for level in cls.levels.values()], list[level_type], "Its levels."
        ),
    }
    return object_type("Hierarchy", "A served hierarchy.", fields)


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
        "attributes": field(
            _attributes, list[_ATTRIBUTE], "Its attributes and computed fields, with those of the hierarchy."
        ),
    }
    return object_type("HierarchyLevel", "A level of a hierarchy.", fields)


def _attributes(pair: tuple[type[Node], type[Node]], info: Any) -> list[tuple[Attribute, bool]]:
    level = pair[1]
    stored = [(attribute, False) for _, attribute in level.attributes.values()]
    return [*stored, *[(one.attribute, True) for one in level.computed.values()]]


def _type_text(attribute: Attribute) -> str:
    kind = attribute.enum or attribute.kind.value
    return f"[{kind}!]" if attribute.many else kind


_ATTRIBUTE: Any = object_type(
    "HierarchyAttribute",
    "An attribute or a computed field of a level.",
    {
        "name": field(lambda pair, info: camel(pair[0].name), str, "Name of its field."),
        "type": field(lambda pair, info: _type_text(pair[0]), str, 'Type of its field, such as "[String!]".'),
        "description": field(lambda pair, info: pair[0].description, str, "Description."),
        "required": field(lambda pair, info: pair[0].rules.required, bool, "Whether a new node needs a value."),
        "computed": field(lambda pair, info: pair[1], bool, "Whether it follows from other attributes."),
        "deprecated": field(lambda pair, info: pair[0].deprecated or None, str | None, "What to use instead."),
    },
)
