"""The inputs of one hierarchy's mutations: the attributes of each level, and one input that also says the level."""

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
            "The attributes of one level, which also says the level.",
            {member: (kind, f"Of the level {self._levels[member].level}.") for member, kind in members.items()},
            one_of=True,
        )

    def read(self, given: Any) -> tuple[str | None, Values]:
        """The level that an input says, and its values as stored; raises BadInput for one that cannot be taken."""
        if given is None:
            return None, {}
        for member, level in self._levels.items():
            inner = getattr(given, member, strawberry.UNSET)
            if inner is not strawberry.UNSET and inner is not None:
                return level.level, _values({name: one for name, (_, one) in level.attributes.items()}, inner)
        raise BadInput("The attributes are of one level; none is null.")


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
        return [_plain(one) for one in value]
    return value.name if isinstance(value, Enum) else value


def _level_input(cls: type[Node], level: type[Node]) -> Any:
    """The input of one level; a level without attributes is said by `true`."""
    if not level.attributes:
        return bool
    parts = {name: (kind, attribute.description) for name, (kind, attribute) in level.attributes.items()}
    title = f"{cls.prefix}{level.__name__}Attributes"
    return _input(title, f"The attributes of {level.level}; null clears one, one that is left out stays.", parts)


def _input(name: str, description: str, parts: Mapping[str, tuple[Any, str]], *, one_of: bool = False) -> type:
    namespace: dict[str, Any] = {"__annotations__": {part: kind for part, (kind, _) in parts.items()}}
    for part, (_, told) in parts.items():
        namespace[part] = strawberry.field(default=strawberry.UNSET, description=told)
    made = type(name, (), namespace)
    return strawberry.input(made, name=name, description=description, one_of=one_of)


def _maybe(kind: Any) -> Any:
    return kind | None
