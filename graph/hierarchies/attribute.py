"""Attributes of a level: how a class declares them, and their types and rules in the store and in GraphQL."""

import datetime
import decimal
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Annotated, Any, NewType, get_args, get_origin

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from store.errors import BadInput
from store.model.attributes import CODES, MAX_TEXT_CHARACTERS, Attribute, Kind, Value
from store.model.values import NUMBERS, ORDERED, TEXTS, Rules, ordered

DISCLOSED = "disclosed"
MAX_PATTERN_CHARACTERS = 500
_TAG = re.compile(r"[_A-Za-z0-9/-]{1,128}")  # as Federation's composition requires

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


class WrongClass(TypeError):
    """A class of a hierarchy is written wrongly. The sentence names the class, the fact and the way out."""


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
    unique: bool | str = False,
    deprecated: str | None = None,
    was: str | Sequence[str] = (),
    tags: Sequence[str] = (),
    shareable: bool = False,
    inaccessible: bool = False,
    federation_key: bool = False,
) -> Any:
    """Declare an attribute of a level: `population: int | None = attribute("Number of inhabitants.")`.

    The type is one of str, int (32 bits), Long, float, Decimal, bool, Date, DateTime, Url, Money, an Enum, a dataclass
    of attributes, or a list of one of these, or Localized; Python's `decimal.Decimal`, `datetime.date` and
    `datetime.datetime` mean the same. It is always optional, since a stored node may lack the attribute. `description`
    is what clients see.

    Rules for what is written, of each value of a list: `required` of a new node; `minimum` and `maximum` (inclusive);
    `max_length` in characters; `pattern`, a regular expression that a whole text has to match. `default` is stored
    with a new node without a value. With `search` its words are found by the search of its hierarchy, which has
    `search=` in its class; lists are ordered and filtered by it if it is `sortable`. No two nodes of the hierarchy have
    the same value of one that is `unique`, and nodes are named by it; with `unique="disclosed"` whoever may write some
    node may set it, and so learn that a value is taken. `deprecated` says what to use instead. `was` is its former
    name, or several. `tags`, `shareable` and `inaccessible` are directives of Federation; with `federation_key` other
    subgraphs name nodes by a unique one.
    """
    former = (was,) if isinstance(was, str) else tuple(was)
    words = (tags,) if isinstance(tags, str) else tuple(tags)
    return Options(
        description, required, default, minimum, maximum, max_length, pattern, search, sortable, unique, deprecated,
        former, words, shareable, inaccessible, federation_key,
    )  # fmt: skip


def own_attributes(cls: type, within: tuple[type, ...] = (), location: tuple[str, str] | None = None) -> Declared:
    """The attributes that a class body itself declares.

    `within` are the nested values around it, `location` the names of latitude and longitude, which have the bounds of
    the Earth by themselves. Raises WrongClass where the body holds anything else.
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
        if location is not None and name in location and plain.kind in NUMBERS:
            described = _on_earth(where, plain, described, is_latitude=name == location[0])
        found[name] = hint, with_options(where, plain, described, nested=bool(within))
    return found


def _on_earth(where: str, plain: Attribute, options: "Options", *, is_latitude: bool) -> "Options":
    """The options of a latitude or longitude in degrees with bounds. Raises WrongClass for own ones beyond the Earth.

    A longitude may also be declared to be counted on around it, as nodes near a point are found.
    """
    most, farthest = (90, 90) if is_latitude else (180, 360)
    for name in ("minimum", "maximum"):
        own = _bound(where, plain, name, getattr(options, name))
        if own is not None and not -farthest <= ordered(plain.kind, own) <= farthest:  # type: ignore[operator]
            meant = "latitude" if is_latitude else "longitude"
            raise WrongClass(
                f"{where} has a {name} of {own} and is a {meant}; write one from -{farthest} to {farthest} degrees."
            )
    least, greatest = options.minimum, options.maximum
    return replace(options, minimum=-most if least is None else least, maximum=most if greatest is None else greatest)


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


@dataclass(frozen=True)
class Options:
    """What `attribute()` was given, which it leaves in a class body until the class is registered."""

    description: str
    required: bool
    default: Any
    minimum: Any
    maximum: Any
    max_length: int
    pattern: str | None
    search: bool
    sortable: bool
    unique: bool | str
    deprecated: str | None
    was: tuple[str, ...]
    tags: tuple[str, ...]
    shareable: bool
    inaccessible: bool
    federation_key: bool


def with_options(where: str, plain: Attribute, options: Options, *, nested: bool) -> Attribute:
    """An attribute with its options; `where` is class and name, `nested` one that is a part of a nested value.

    Raises WrongClass for an option that does not fit the attribute's type.
    """
    for fact, way_out in _problems(plain, options, nested):
        raise WrongClass(f"{where} has {fact}; {way_out}.")
    try:
        matches = None if options.pattern is None else matcher(options.pattern)
    except ValueError as error:
        raise WrongClass(f"{where} has a pattern that {error}; write another one.") from None
    rules = Rules(
        options.required,
        pattern=options.pattern or "",
        matches=matches,
        minimum=_bound(where, plain, "minimum", options.minimum),
        maximum=_bound(where, plain, "maximum", options.maximum),
    )
    if None not in (rules.minimum, rules.maximum):
        low, high = ordered(plain.kind, rules.minimum), ordered(plain.kind, rules.maximum)
        if low > high:  # type: ignore[operator]
            raise WrongClass(f"{where} has a minimum above its maximum; swap them.")
    whole = replace(
        plain, rules=rules, max_length=options.max_length, search=options.search, sortable=options.sortable,
        was=options.was, deprecated=options.deprecated or "", tags=options.tags, shareable=options.shareable,
        inaccessible=options.inaccessible, unique=bool(options.unique), disclosed=options.unique == DISCLOSED,
        federation_key=options.federation_key,
    )  # fmt: skip
    if options.default is None:
        return whole
    try:
        return replace(whole, default=whole.parse(plain_value(options.default)))
    except BadInput as error:
        raise WrongClass(f"{where} has an invalid default: {error}") from None


def _problems(plain: Attribute, options: Options, nested: bool) -> Iterator[tuple[str, str]]:
    """Options that do not fit: the fact and the way out."""
    kind = plain.kind
    if options.search and kind not in (Kind.TEXT, Kind.ENUM):
        yield "search=True and is not a text", "only str and Enum have words to be found"
    if (options.minimum is not None or options.maximum is not None) and kind not in ORDERED:
        yield "minimum= or maximum=", "only numbers, dates and times have an order"
    if options.pattern is not None and kind not in TEXTS:
        yield "pattern= and is not a text", "only str and Url match a pattern"
    if not isinstance(options.max_length, int) or options.max_length < 1:
        yield f"max_length={options.max_length!r}", "write a number of characters"
    elif options.max_length != MAX_TEXT_CHARACTERS and kind not in (*TEXTS, Kind.LOCALIZED):
        yield "max_length= and is not a text", "only texts have a length"
    if options.unique not in (False, True, DISCLOSED):
        yield f"unique={options.unique!r}", 'write unique=True or unique="disclosed"'
    elif options.unique and (plain.kind not in CODES or plain.many):
        yield "unique= and a type of which values are not unique", "only str, int, Long, Date and Enum can be"
    elif options.unique and options.default is not None:
        yield "unique= and a default, which only one node could have", "leave out one of them"
    if options.federation_key and not options.unique:
        yield "federation_key=True without unique=", "add unique=True, or leave it out"
    if nested and (options.search or options.was or options.unique):
        yield "search=, was= or unique=, which a part of a nested value cannot have", "leave it out"
    for name in options.was:
        if not isinstance(name, str) or not name.isidentifier() or name == plain.name:
            yield f"was={name!r}", "write the former name of the attribute"
    for tag in options.tags:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            yield f"the tag {tag!r}", "a tag has letters, digits, _, - and / alone, at most 128"


def _bound(where: str, plain: Attribute, name: str, value: Any) -> Value:
    if value is None:
        return None
    try:
        return replace(plain, many=False).parse(plain_value(value))
    except BadInput as error:
        raise WrongClass(f"{where} has an invalid {name}: {error}") from None


def plain_value(value: Any) -> Any:
    """A Python value as JSON has it: members of enums by name, dates and decimals as text, also in lists."""
    match value:
        case Enum():
            return value.name
        case datetime.date() | datetime.datetime():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case list() | tuple():
            return [plain_value(one) for one in value]
        case dict():
            return {name: plain_value(one) for name, one in value.items()}
    return value


def matcher(pattern: str) -> Callable[[str], bool]:
    """The function that says whether a text matches a pattern as a whole. Raises ValueError for an invalid pattern.

    Patterns have the syntax of Rust's `regex`, a dependency of pydantic, which matches in time linear in the text: no
    text can make one hang. In return they have neither backreferences nor look-around.
    """
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ValueError(f"has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS} are allowed")
    _compiled(pattern)  # alone, so that no parenthesis of it closes ours
    whole = _compiled(rf"\A(?:{pattern})\z")

    def matches(text: str) -> bool:
        try:
            whole.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches


def _compiled(pattern: str) -> TypeAdapter[str]:
    hint: Any = Annotated[str, StringConstraints(pattern=pattern)]
    try:
        return TypeAdapter(hint)
    except SchemaError as error:
        reason = str(error).strip().splitlines()[-1].removeprefix("error: ").strip().rstrip(".")
        raise ValueError(f"is not a regular expression that can be matched in linear time: {reason}") from None
