"""How a level's own attributes are written in its class, and what they become in the store and in GraphQL."""

import inspect
import types
import typing
from dataclasses import replace
from enum import Enum
from typing import Any, NewType, get_args, get_origin

from store.model.attributes import MAX_TEXT_CHARACTERS, Attribute, Kind

Long = NewType("Long", int)
Decimal = NewType("Decimal", str)
Date = NewType("Date", str)
DateTime = NewType("DateTime", str)

_KINDS: dict[Any, Kind] = {
    str: Kind.TEXT,
    int: Kind.INT,
    Long: Kind.LONG,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    bool: Kind.BOOLEAN,
    Date: Kind.DATE,
    DateTime: Kind.DATETIME,
}


class WrongClass(TypeError):
    """A class of a hierarchy is not written as it must be; the sentence names it and tells how."""


class _Described:
    """What `attribute()` leaves in a class body until the class registers."""

    def __init__(self, description: str, max_length: int) -> None:
        self.description = description
        self.max_length = max_length


def attribute(description: str, *, max_length: int = MAX_TEXT_CHARACTERS) -> Any:
    """One own attribute of a level: `population: int | None = attribute("How many people live there.")`.

    The type is one of str, int (32 bits), Long, float, Decimal, bool, Date, DateTime, an Enum, or a list of one of
    these, and always optional, since any node may lack it. A text may have `max_length` characters.
    """
    return _Described(description, max_length)


def own_attributes(cls: type) -> dict[str, tuple[Any, Attribute]]:
    """The attributes that a class body itself declares: for each name its Python type and what the store knows of it.

    Raises WrongClass with a sentence that names the class and the attribute.
    """
    hints = typing.get_type_hints(cls)
    found = {}
    for name in inspect.get_annotations(cls):
        described = cls.__dict__.get(name)
        if not isinstance(described, _Described):
            raise WrongClass(f'{cls.__name__}.{name} needs a description: = attribute("…").')
        made = _attribute(f"{cls.__name__}.{name}", hints[name], described.description)
        found[name] = (hints[name], replace(made, max_length=described.max_length))
    return found


def _attribute(where: str, hint: Any, description: str) -> Attribute:
    if get_origin(hint) not in (types.UnionType, typing.Union) or type(None) not in get_args(hint):
        raise WrongClass(f"{where} must be optional, as in: str | None.")
    (inner,) = [arg for arg in get_args(hint) if arg is not type(None)]
    many = get_origin(inner) is list
    if many:
        (inner,) = get_args(inner)
    name = where.rpartition(".")[2]
    if isinstance(inner, type) and issubclass(inner, Enum):
        members = frozenset(member.name for member in inner)
        return Attribute(name, Kind.ENUM, description, many, members, inner.__name__)
    if inner not in _KINDS:
        raise WrongClass(f"{where} has a type that no attribute can have; see attribute() for those it can.")
    return Attribute(name, _KINDS[inner], description, many)
