"""Mutation inputs of one hierarchy: the attributes of each level, and one input with exactly one level's attributes."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import strawberry

from graph.hierarchies.names import input_field_of
from graph.hierarchies.node import Node
from store.errors import BadInput
from store.model.attributes import Attribute, Value

Values = dict[str, Value]


class Inputs:
    """`attributes` is the input that holds the attributes of exactly one level."""

    def __init__(self, cls: type[Node]) -> None:
        self._levels = {input_field_of(level.__name__): level for level in cls.levels.values()}
        members = {member: _maybe(_level_input(cls, level)) for member, level in self._levels.items()}
        self.attributes = _input(
            f"{cls.prefix}{cls.__name__}Attributes",
            "Attributes of exactly one level, which is also the level of a new node.",
            {member: (kind, f"Attributes of {self._levels[member].level}.") for member, kind in members.items()},
            one_of=True,
        )

    def read(self, given: Any) -> tuple[str | None, Values]:
        """The level of an input, and its values as they are stored. Raises BadInput for an input without a level."""
        if given is None:
            return None, {}
        for member, level in self._levels.items():
            inner = getattr(given, member, strawberry.UNSET)
            if inner is not strawberry.UNSET and inner is not None:
                attributes = {name: attribute for name, (_, attribute) in level.attributes.items()}
                return level.level, _values(attributes, inner)
        raise BadInput("attributes has null for its level; give the attributes of one level.")


def _values(attributes: Mapping[str, Attribute], given: Any) -> Values:
    """The values that were given, None where one is to be cleared."""
    found = {name: getattr(given, name, strawberry.UNSET) for name in attributes}
    return {
        name: None if value is None else attributes[name].parse(_plain(value))
        for name, value in found.items()
        if value is not strawberry.UNSET
    }


def _plain(value: Any) -> Any:
    """A member of an enum as its name, also in a list."""
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return value.name if isinstance(value, Enum) else value


def _level_input(cls: type[Node], level: type[Node]) -> Any:
    """The input of one level; `true` for a level without attributes."""
    if not level.attributes:
        return bool
    parts = {name: (kind, attribute.description) for name, (kind, attribute) in level.attributes.items()}
    title = f"{cls.prefix}{level.__name__}Attributes"
    return _input(title, f"Attributes of {level.level}; null clears an attribute, an omitted one is unchanged.", parts)


def _input(name: str, description: str, parts: Mapping[str, tuple[Any, str]], *, one_of: bool = False) -> type:
    namespace: dict[str, Any] = {"__annotations__": {part: kind for part, (kind, _) in parts.items()}}
    for part, (_, text) in parts.items():
        namespace[part] = strawberry.field(default=strawberry.UNSET, description=text)
    made = type(name, (), namespace)
    return strawberry.input(made, name=name, description=description, one_of=one_of)


def _maybe(kind: Any) -> Any:
    return kind | None
