"""List values: the values of a hierarchy's nodes that lists can be sorted and filtered by, by name."""

from enum import Enum
from typing import Any, get_args

from graph.hierarchies.node import Node
from resolvers.sorting.values import NodeValue
from store.model.attributes import COMPOUND, Attribute, Kind


def list_values(cls: type[Node]) -> dict[str, NodeValue]:
    """The values that every node has, and the attributes of all levels.

    Left out are attributes that two levels have with different types, since their values do not compare, and those
    that one level has without being sorted by it.
    """
    found = {
        "name": NodeValue("name", Kind.TEXT),
        "level": NodeValue("level", Kind.ENUM, members=tuple(cls.levels)),
        "child_count": NodeValue("child_count", Kind.INT),
        "updated_at": NodeValue("updated_at", Kind.DATETIME),
    }
    types: dict[str, set[Any]] = {}
    for level in (cls, *cls.levels.values()):
        for name, (hint, attribute) in level.attributes.items():
            types.setdefault(name, set()).add(hint)
            if not is_listed(attribute):
                types[name] |= {None, hint}
                continue
            kind = Kind.TEXT if attribute.kind is Kind.URL else attribute.kind
            renamed = found[name].renamed if name in found else ()
            renamed += ((level.level, attribute),) if attribute.was and level is not cls else ()
            found[name] = NodeValue(name, kind, attribute.many, enum_members(hint), renamed=renamed)
    return {name: value for name, value in found.items() if len(types.get(name, ())) <= 1}


def is_listed(attribute: Attribute) -> bool:
    """Whether lists are sorted and filtered by an attribute: not by one whose values are objects."""
    return attribute.sortable and attribute.kind not in COMPOUND


def enum_of(hint: Any) -> type[Enum] | None:
    """The enum of an attribute's type, which may be optional and in a list; None where it is another type."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return next((found for one in get_args(hint) if (found := enum_of(one)) is not None), None)


def enum_members(hint: Any) -> tuple[str, ...]:
    """The names of the members of the enum of an attribute's type, in their order."""
    enum = enum_of(hint)
    return () if enum is None else tuple(enum.__members__)
