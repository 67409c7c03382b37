"""Options of attributes: the rules and directives that `attribute()` takes, checked against the type of each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from graph.hierarchies.patterns import matcher
from store.errors import BadInput
from store.model.attributes import MAX_TEXT_CHARACTERS, Attribute, Kind, Value
from store.model.values import ORDERED, TEXTS, Rules, ordered

_TAG = re.compile(r"[_A-Za-z0-9/-]{1,128}")  # as Federation's composition requires


class WrongClass(TypeError):
    """A class of a hierarchy is written wrongly. The sentence names the class, the fact and the way out."""


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
    deprecated: str | None
    was: tuple[str, ...]
    tags: tuple[str, ...]
    shareable: bool
    inaccessible: bool


def with_options(where: str, plain: Attribute, options: Options, *, nested: bool) -> Attribute:
    """An attribute with its options; `where` is class and name, `nested` one that is a part of a nested value.

    Raises WrongClass for an option that does not fit the attribute's type.
    """
    for fact, way_out in _problems(plain, options, nested):
        raise WrongClass(f"{where} has {fact}; {way_out}.")
    rules = Rules(options.required, pattern=options.pattern or "", matches=_matches(where, options.pattern))
    rules = replace(
        rules,
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
        inaccessible=options.inaccessible,
    )  # fmt: skip
    if options.default is None:
        return whole
    try:
        return replace(whole, default=whole.parse(plain_value(options.default)))
    except BadInput as error:
        raise WrongClass(f"{where} has an invalid default: {error}") from None


def plain_value(value: Any) -> Any:
    """A Python value as JSON has it: members of enums by name, dates and decimals as text, also in lists."""
    match value:
        case Enum():
            return value.name
        case date() | datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case list() | tuple():
            return [plain_value(one) for one in value]
        case dict():
            return {name: plain_value(one) for name, one in value.items()}
    return value


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
    if nested and (options.search or options.was):
        yield "search= or was=, which a part of a nested value cannot have", "leave it out"
    for name in options.was:
        if not isinstance(name, str) or not name.isidentifier() or name == plain.name:
            yield f"was={name!r}", "write the former name of the attribute"
    for tag in options.tags:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            yield f"the tag {tag!r}", "a tag has letters, digits, _, - and / alone, at most 128"


def _matches(where: str, pattern: str | None) -> Any:
    if pattern is None:
        return None
    try:
        return matcher(pattern)
    except ValueError as error:
        raise WrongClass(f"{where} has a pattern that {error}; write another one.") from None


def _bound(where: str, plain: Attribute, name: str, value: Any) -> Value:
    if value is None:
        return None
    try:
        return replace(plain, many=False).parse(plain_value(value))
    except BadInput as error:
        raise WrongClass(f"{where} has an invalid {name}: {error}") from None
