"""Types of attributes: custom scalars, and the GraphQL types of enums and objects, which are amounts of money, texts by
language and nested values; each as an output and as an input. Scalars are serialized as they are stored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NewType, get_args, get_origin

import strawberry
from strawberry.types.scalar import ScalarDefinition

from graph.hierarchies.attribute import Date, DateTime, Decimal, Localized, Long, Money, Url, value_attributes
from graph.hierarchies.node import description
from graph.types.field import attribute_of, field, object_type, required
from graph.types.field import input_type as input_of
from graph.types.node_fields import LocalizedName, by_language
from store.errors import BadInput
from store.model.attributes import Attribute, Kind, Value
from store.model.names import lookup

_XML_SCHEMA = "https://www.w3.org/TR/xmlschema11-2/"
_RFC_3339 = "https://www.rfc-editor.org/rfc/rfc3339#section-5.6"
_RFC_3986 = "https://www.rfc-editor.org/rfc/rfc3986"

Path = NewType("Path", str)


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput("A Path is a string, such as US/NE/Omaha.")
    return value


def _scalar(kind: Kind, description: str, specification: str) -> ScalarDefinition:
    """A scalar of attributes. A text or number that is no value of its kind is taken as it is, and refused by the
    attribute or the condition that it is for: so a mutation names all faults of its input.
    """
    parse = Attribute("A value", kind, "").parse

    def parsed(value: Any) -> Any:
        try:
            return parse(value)
        except BadInput:
            if isinstance(value, str | int | float):
                return value
            raise

    return strawberry.scalar(
        name=kind.value, description=description, specified_by_url=specification, parse_value=parsed
    )


SCALARS: dict[object, ScalarDefinition] = {
    Path: strawberry.scalar(
        name="Path",
        description="Path of a node: the keys from the root down, separated by /, such as US/MO/St. Louis. "
        "Within a key, / is escaped as %2F and % as %25.",
        specified_by_url=f"{_RFC_3986}#section-3.3",
        parse_value=_path,
    ),
    Long: _scalar(Kind.LONG, "Signed 64-bit integer.", f"{_XML_SCHEMA}#long"),
    Decimal: _scalar(
        Kind.DECIMAL,
        "Decimal of up to 38 digits, as a string with all its decimal places, such as 1299.00.",
        f"{_XML_SCHEMA}#decimal",
    ),
    Date: _scalar(Kind.DATE, "Calendar date in RFC 3339, such as 2026-10-05.", _RFC_3339),
    DateTime: _scalar(Kind.DATETIME, "Date and time in UTC in RFC 3339, such as 2026-10-05T12:30:00Z.", _RFC_3339),
    Url: _scalar(Kind.URL, "Absolute URL of http or https, such as https://example.com/a.", _RFC_3986),
}


_LANGUAGES = required(
    "languages", list[str], 'Language tags of BCP 47 in order of preference, such as ["de-AT", "en"].'
)


@dataclass(frozen=True)
class Part:
    """The resolver of a part of a nested value, or of an amount of money."""

    name: str

    def __call__(self, value: Mapping[str, Value], info: Any) -> Value:
        return value.get(self.name)


def _text(texts: Mapping[str, str], info: Any, languages_: Sequence[str]) -> str | None:
    language = lookup(texts, languages_)
    return None if language is None else texts[language]


def _language(texts: Mapping[str, str], info: Any, languages_: Sequence[str]) -> str | None:
    return lookup(texts, languages_)


def _texts(texts: Mapping[str, str], info: Any) -> list[LocalizedName]:
    return [LocalizedName(*one) for one in sorted(texts.items())]


_MONEY: Any = object_type(
    "Money",
    "An amount of money.",
    {
        "amount": field(Part("amount"), Decimal, "Amount, in units of the currency."),
        "currency": field(Part("currency"), str, "Currency code of ISO 4217, such as EUR."),
    },
)
_LOCALIZED_TEXT: Any = object_type(
    "LocalizedText",
    "A text in a language.",
    {
        "language": field(attribute_of("language"), str, "Language tag of BCP 47, such as de or zh-Hant."),
        "text": field(attribute_of("text"), str, "Text in this language."),
    },
)
_LOCALIZED: Any = object_type(
    "Localized",
    "A text in several languages.",
    {
        "text": field(
            _text, str | None, "Text in the first of these languages that there is; null if there is none.", _LANGUAGES
        ),
        "language": field(_language, str | None, "Language of `text` for the same languages.", _LANGUAGES),
        "texts": field(_texts, list[_LOCALIZED_TEXT], "All texts, ordered by language tag."),
    },
)


@strawberry.input(name="MoneyInput", description="An amount of money.")
class MoneyInput:
    amount: Decimal = strawberry.field(description="Amount, in units of the currency.")
    currency: str = strawberry.field(description="Currency code of ISO 4217, such as EUR.")


@strawberry.input(name="LocalizedTextInput", description="A text in a language.")
class LocalizedTextInput:
    language: str = strawberry.field(description="Language tag of BCP 47, such as de or zh-Hant.")
    text: str | None = strawberry.field(default=None, description="Text in this language; null or omitted clears it.")


def output_type(hint: Any) -> Any:
    """The type of a field for the type of an attribute, which is optional."""
    return _mapped(hint, _output) | None


def input_type(hint: Any) -> Any:
    """The type of an input's field for the type of an attribute."""
    return _mapped(hint, _input) | None


@cache
def enum_type(cls: type[Enum]) -> Any:
    """The GraphQL enum of an attribute's enum. Its values are the names of the members, as they are stored: with those
    of the class Strawberry could neither write a stored value nor tell apart two members with the same one.
    """
    make: Any = Enum  # mypy follows only enums that are written out
    members = {
        name: strawberry.enum_value(name, description=getattr(member.value, "description", None))
        for name, member in cls.__members__.items()
    }
    return strawberry.enum(make(cls.__name__, members))


def deprecation(attribute: Attribute) -> str | None:
    """The reason of `@deprecated` of an attribute's fields, if any."""
    return attribute.deprecated or None


def input_description(attribute: Attribute) -> str:
    """The description of an attribute in an input: with its rules and its default."""
    default = "" if attribute.default is None else f" Default for a new node: {attribute.default}."
    return f"{attribute.description}{attribute.rules.words()}{default}"


def plain_input(value: Any) -> Any:
    """A value of an input as JSON: enums by name, inputs as objects by the names of attributes, languages as keys.

    Raises BadInput for two texts of one language.
    """
    if isinstance(value, list):
        is_localized = bool(value) and isinstance(value[0], LocalizedTextInput)
        return by_language("A text", value) if is_localized else [plain_input(one) for one in value]
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value):
        parts = {name: getattr(value, name) for name in value.__dataclass_fields__}
        return {name: plain_input(part) for name, part in parts.items() if part is not strawberry.UNSET}
    return value


def _mapped(hint: Any, mapped: Callable[[Any], Any]) -> Any:
    """A type without null, with its innermost type replaced."""
    (kind,) = [one for one in get_args(hint) if one is not type(None)]
    if get_origin(kind) is list:
        return list[mapped(get_args(kind)[0])]  # type: ignore[misc]
    return mapped(kind)


def _output(kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return enum_type(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _nested_output(kind)
    return _MONEY if kind is Money else _LOCALIZED if kind is Localized else kind


def _input(kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return enum_type(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _nested_input(kind)
    return MoneyInput if kind is Money else list[LocalizedTextInput] if kind is Localized else kind


@cache
def _nested_output(cls: type) -> Any:
    fields = {
        name: field(Part(name), output_type(hint), attribute.description, deprecated=deprecation(attribute))
        for name, (hint, attribute) in value_attributes(cls).items()
    }
    return object_type(cls.__name__, description(cls), fields)


@cache
def _nested_input(cls: type) -> Any:
    parts = {name: (input_type(hint), attribute) for name, (hint, attribute) in value_attributes(cls).items()}
    return input_object(f"{cls.__name__}Input", description(cls), parts)


def input_object(name: str, text: str, parts: Mapping[str, tuple[Any, Attribute]]) -> type:
    """An input with a field of each attribute, which may be left out."""
    described = {part: (kind, input_description(attribute)) for part, (kind, attribute) in parts.items()}
    reasons = {part: attribute.deprecated for part, (_, attribute) in parts.items() if attribute.deprecated}
    made: type = input_of(name, text, described, deprecated=reasons)
    return made
