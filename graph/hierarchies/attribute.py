"""Attributes of a level: how a class declares them, and their types in the store and in GraphQL."""

import datetime
import decimal
import inspect
import types
import typing
from collections.abc import Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NewType, get_args, get_origin

from graph.hierarchies.attribute_options import Options, WrongClass, with_options
from store.model.attributes import MAX_TEXT_CHARACTERS, Attribute, Kind

Long = NewType("Long", int)
Decimal = NewType("Decimal", str)
Date = NewType("Date", str)
DateTime = NewType("DateTime", str)
Url = NewType("Url", str)
Money = NewType("Money", dict)  # type: ignore[type-arg]  # {"amount": "12.50", "currency": "EUR"}
Localized = NewType("Localized", dict)  # type: ignore[type-arg]  # texts by language tag

_KINDS: dict[Any, Kind] = {
    str: Kind.TEXT,
    int: Kind.INT,
    Long: Kind.LONG,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    bool: Kind.BOOLEAN,
    Date: Kind.DATE,
    DateTime: Kind.DATETIME,
    Url: Kind.URL,
    Money: Kind.MONEY,
    Localized: Kind.LOCALIZED,
}
_SAME: dict[Any, Any] = {decimal.Decimal: Decimal, datetime.date: Date, datetime.datetime: DateTime}
"""Python's own types, which mean the scalars of the same names."""

_TYPES = (
    "str, int, Long, float, Decimal, bool, Date, DateTime, Url, Money, an Enum, a dataclass of attributes, or a list "
    "of one of these, or Localized"
)

Declared = dict[str, tuple[Any, Attribute]]
"""By name: the type of an attribute in GraphQL, and the attribute in the store."""


def attribute(
    description: str,
    *,
    required: bool = False,
    default: Any = None,
    minimum: Any = None,
    maximum: Any = None,
    max_length: int = MAX_TEXT_CHARACTERS,
    pattern: str | None = None,
    search: bool = False,
    sortable: bool = True,
    deprecated: str | None = None,
    was: str | Sequence[str] = (),
    tags: Sequence[str] = (),
    shareable: bool = False,
    inaccessible: bool = False,
) -> Any:
    """Declare an attribute of a level: `population: int | None = attribute("Number of inhabitants.")`.

    The type is one of str, int (32 bits), Long, float, Decimal, bool, Date, DateTime, Url, Money, an Enum, a dataclass
    of attributes, or a list of one of these, or Localized; Python's `decimal.Decimal`, `datetime.date` and
    `datetime.datetime` mean the same. It is always optional, since a stored node may lack the attribute. `description`
    is what clients see.

    Rules for what is written, of each value of a list: `required` of a new node; `minimum` and `maximum` (inclusive);
    `max_length` in characters; `pattern`, a regular expression that a whole text has to match. `default` is stored
    with a new node without a value. With `search` its words are found by the search of its hierarchy, which has
    `search=` in its class; lists are ordered and filtered by it if it is `sortable`. `deprecated` says what to use
    instead. `was` is its former name, or several. `tags`, `shareable` and `inaccessible` are directives of Federation.
    """
    former = (was,) if isinstance(was, str) else tuple(was)
    words = (tags,) if isinstance(tags, str) else tuple(tags)
    return Options(
        description, required, default, minimum, maximum, max_length, pattern, search, sortable, deprecated, former,
        words, shareable, inaccessible,
    )  # fmt: skip


def own_attributes(cls: type, within: tuple[type, ...] = ()) -> Declared:
    """The attributes that a class body itself declares.

    `within` are the nested values around it. Raises WrongClass where the body holds anything else.
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
        if not isinstance(described, Options) or not str(described.description).strip():
            raise WrongClass(f'{where} has no description; write {name}: … = attribute("…").')
        hint, plain = typed(where, hints[name], described.description, within)
        found[name] = hint, with_options(where, plain, described, nested=bool(within))
    return found


@cache
def value_attributes(cls: type, within: tuple[type, ...] = ()) -> Declared:
    """The attributes of a nested value, a dataclass. Raises WrongClass for one that is written wrongly."""
    if cls in within:
        raise WrongClass(f"{cls.__name__} contains a value of its own type; remove that attribute.")
    if not (cls.__doc__ or "").strip() or str(cls.__doc__).startswith(f"{cls.__name__}("):  # which dataclass writes
        raise WrongClass(f"{cls.__name__} has no docstring; add one, which is the description that clients see.")
    found = own_attributes(cls, (*within, cls))
    if not found:
        raise WrongClass(f'{cls.__name__} has no attributes; write one, as in text: str | None = attribute("…").')
    return found


def _check_body(cls: type, annotated: typing.Container[str]) -> None:
    """Refuse what a class of a hierarchy cannot have, such as methods: it would have no effect."""
    for name, value in vars(cls).items():
        where = f"{cls.__name__}.{name}"
        if name in annotated or (name.startswith("__") and name.endswith("__")):
            continue
        if isinstance(value, Options):
            raise WrongClass(f"{where} has no type; write {name}: str | None = attribute(…).")
        kind = "a method or a resolver" if hasattr(value, "__get__") or callable(value) else "no attribute"
        example = f'{name}: str | None = attribute("…")'
        raise WrongClass(
            f"{where} is {kind}; a class of a hierarchy has only attributes, as in {example}, and methods with "
            '@computed("…").'
        )


def typed(where: str, hint: Any, description: str, within: tuple[type, ...] = ()) -> tuple[Any, Attribute]:
    """An attribute's type in GraphQL, and the attribute; `where` is class and name. Raises WrongClass."""
    name = where.rpartition(".")[2]
    inner = [arg for arg in get_args(hint) if arg is not type(None)]
    if get_origin(hint) not in (types.UnionType, typing.Union) or len(inner) == len(get_args(hint)):
        raise WrongClass(f"{where} is not optional, but nodes may lack any attribute; write {name}: … | None.")
    many = len(inner) == 1 and get_origin(inner[0]) is list
    inner = list(get_args(inner[0])) if many else inner
    kind: Any = inner[0] if len(inner) == 1 else None
    kind = _SAME.get(kind, kind)
    shown: Any = types.GenericAlias(list, kind) if many else kind
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = frozenset(kind.__members__)
        return shown | None, Attribute(name, Kind.ENUM, description, many, members, kind.__name__)
    if isinstance(kind, type) and is_dataclass(kind):
        parts = tuple(attribute for _, attribute in value_attributes(kind, within).values())
        return shown | None, Attribute(name, Kind.NESTED, description, many, enum=kind.__name__, parts=parts)
    if kind not in _KINDS or (kind is Localized and (many or within)):
        raise WrongClass(f"{where} has a type that attributes cannot have; write {_TYPES}, and | None behind it.")
    return shown | None, Attribute(name, _KINDS[kind], description, many)
