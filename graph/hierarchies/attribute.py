"""Attributes of a level: how a class declares them, and their types in the store and in GraphQL."""

import datetime
import decimal
import inspect
import types
import typing
from dataclasses import dataclass, replace
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
_SAME: dict[Any, Any] = {decimal.Decimal: Decimal, datetime.date: Date, datetime.datetime: DateTime}
"""Python's own types, which mean the scalars of the same names."""

_TYPES = "str, int, Long, float, Decimal, bool, Date, DateTime, an Enum, or a list of one of these"


class WrongClass(TypeError):
    """A class of a hierarchy is written wrongly. The sentence names the class, the fact and the way out."""


@dataclass(frozen=True)
class _Described:
    """The value that `attribute()` leaves in a class body until the class is registered."""

    description: str
    max_length: int
    search: bool


def attribute(description: str, *, max_length: int = MAX_TEXT_CHARACTERS, search: bool = False) -> Any:
    """Declare an attribute of a level: `population: int | None = attribute("Number of inhabitants.")`.

    The type is one of str, int (32 bits), Long, float, Decimal, bool, Date, DateTime, an Enum, or a list of one of
    these; Python's `decimal.Decimal`, `datetime.date` and `datetime.datetime` mean the same. It is always optional,
    since any node may lack the attribute. `description` is what clients see; a text may have `max_length` characters.
    With `search` its words are found by the search of its hierarchy, which has `search=` in its class.
    """
    return _Described(description, max_length, search)


def own_attributes(cls: type) -> dict[str, tuple[Any, Attribute]]:
    """The attributes that a class body itself declares: by name their type in GraphQL and their type in the store.

    Raises WrongClass where the body holds anything else.
    """
    try:
        annotated, hints = inspect.get_annotations(cls), typing.get_type_hints(cls)
    except NameError as error:
        raise WrongClass(f"{cls.__name__} has an attribute of the type {error.name}, which is not defined.") from None
    _check_body(cls, annotated)
    found = {}
    for name in annotated:
        described = cls.__dict__.get(name)
        where = f"{cls.__name__}.{name}"
        if not isinstance(described, _Described) or not str(described.description).strip():
            raise WrongClass(f'{where} has no description; write {name}: … = attribute("…").')
        hint, made = _attribute(where, hints[name], described.description)
        if described.search and made.kind not in (Kind.TEXT, Kind.ENUM):
            raise WrongClass(f"{where} has search=True and is no text; only str and Enum have words to be found.")
        found[name] = (hint, replace(made, max_length=described.max_length, search=described.search))
    return found


def _check_body(cls: type, annotated: typing.Container[str]) -> None:
    """Refuse what a class of a hierarchy cannot have, such as methods: it would have no effect."""
    for name, value in vars(cls).items():
        where = f"{cls.__name__}.{name}"
        if name in annotated or (name.startswith("__") and name.endswith("__")):
            continue
        if isinstance(value, _Described):
            raise WrongClass(f"{where} has no type; write {name}: str | None = attribute(…).")
        kind = "a method or a resolver" if hasattr(value, "__get__") or callable(value) else "no attribute"
        example = f'{name}: str | None = attribute("…")'
        raise WrongClass(f"{where} is {kind}; a class of a hierarchy has attributes alone, as in {example}.")


def _attribute(where: str, hint: Any, description: str) -> tuple[Any, Attribute]:
    """An attribute's type in GraphQL, and the attribute; `where` is class and name."""
    name = where.rpartition(".")[2]
    inner = [arg for arg in get_args(hint) if arg is not type(None)]
    if get_origin(hint) not in (types.UnionType, typing.Union) or len(inner) == len(get_args(hint)):
        raise WrongClass(f"{where} is not optional, and any node may lack an attribute; write {name}: … | None.")
    many = len(inner) == 1 and get_origin(inner[0]) is list
    inner = list(get_args(inner[0])) if many else inner
    kind: Any = inner[0] if len(inner) == 1 else None
    kind = _SAME.get(kind, kind)
    shown: Any = types.GenericAlias(list, kind) if many else kind
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = frozenset(member.name for member in kind)
        return shown | None, Attribute(name, Kind.ENUM, description, many, members, kind.__name__)
    if kind not in _KINDS:
        raise WrongClass(f"{where} has a type that no attribute can have; write {_TYPES}, and | None behind it.")
    return shown | None, Attribute(name, _KINDS[kind], description, many)
