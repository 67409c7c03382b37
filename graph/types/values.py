"""Value types: the GraphQL types of attributes with enums or objects as values, which are amounts of money, texts by
language and nested values; each as an output and as an input.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin

import strawberry

from graph.hierarchies.attribute import Decimal, Declared, Localized, Money, value_attributes
from graph.hierarchies.node import description
from graph.hierarchies.registry import camel
from graph.types.fields import (
    LANGUAGES,
    LOCALIZED_TEXT,
    LocalizedTextInput,
    best_language,
    enum_class,
    field,
    input_type,
    localized_texts,
    object_type,
    texts_of,
)
from store.model.attributes import Attribute, Kind, Value


@dataclass(frozen=True)
class Part:
    """The resolver of a part of a nested value, or of an amount of money."""

    name: str

    def __call__(self, value: Mapping[str, Value], info: Any) -> Value:
        return value.get(self.name)


def _text(texts: Mapping[str, str], info: Any, languages: Sequence[str] | None = None) -> str | None:
    language = best_language(texts, languages)
    return None if language is None else texts[language]


_MONEY: Any = object_type(
    "Money",
    "An amount of money.",
    {
        "amount": field(Part("amount"), Decimal, "Amount, in units of the currency."),
        "currency": field(Part("currency"), str, "Currency code of ISO 4217, such as EUR."),
    },
)
_LOCALIZED: Any = object_type(
    "Localized",
    "A text in several languages.",
    {
        "text": field(_text, str | None, "Text in the first of `languages` that there is, else null.", LANGUAGES),
        "language": field(
            lambda texts, info, languages=None: best_language(texts, languages), str | None,
            "Language of `text` with the same `languages`.", LANGUAGES,
        ),
        "texts": field(
            lambda texts, info: localized_texts(texts), list[LOCALIZED_TEXT], "All texts, ordered by language tag.",
        ),
    },
)  # fmt: skip


@strawberry.input(name="MoneyInput", description="An amount of money.")
class MoneyInput:
    amount: Decimal = strawberry.field(description="Amount, in units of the currency.")
    currency: str = strawberry.field(description="Currency code of ISO 4217, such as EUR.")


def output_type(hint: Any) -> Any:
    """The type of a field for the type of an attribute, which is optional."""
    return _graphql_type(hint, _nested_output, {Money: _MONEY, Localized: _LOCALIZED}) | None


@cache
def enum_type(cls: type[Enum]) -> Any:
    """The GraphQL enum of an attribute's enum. Its values are the names of the members, as they are stored: with those
    of the class Strawberry could neither write a stored value nor tell apart two members with the same one.
    """
    members = cls.__members__.items()
    return enum_class(cls.__name__, {name: (name, getattr(one.value, "description", None)) for name, one in members})


def plain_input(value: Any, attribute: Attribute) -> Any:
    """A value of an attribute's input as JSON: enums by name, objects by the names of attributes; texts by language as
    pairs.
    """
    if value is None:
        return None
    if attribute.kind is Kind.LOCALIZED:
        return texts_of(value)
    if isinstance(value, list):
        return [plain_input(one, attribute) for one in value]
    if isinstance(value, Enum):
        return value.name
    if attribute.kind is Kind.NESTED:
        given = {part: value[name] for part in attribute.parts if (name := camel(part.name)) in value}
        return {part.name: plain_input(one, part) for part, one in given.items()}
    return value


def _graphql_type(hint: Any, nested: Callable[[type], Any], objects: Mapping[Any, Any]) -> Any:
    """The type for the type of an attribute, without null: `nested` makes that of a nested value."""
    (kind,) = [one for one in get_args(hint) if one is not type(None)]
    is_list = get_origin(kind) is list
    if is_list:
        (kind,) = get_args(kind)
    made: Any
    if isinstance(kind, type) and issubclass(kind, Enum):
        made = enum_type(kind)
    elif isinstance(kind, type) and is_dataclass(kind):
        made = nested(kind)
    else:
        made = objects.get(kind, kind)
    return list[made] if is_list else made


@cache
def _nested_output(cls: type) -> Any:
    fields = {
        name: field(Part(name), output_type(hint), attribute.description, deprecated=attribute.deprecated)
        for name, (hint, attribute) in value_attributes(cls).items()
    }
    return object_type(cls.__name__, description(cls), fields)


@cache
def _nested_input(cls: type) -> Any:
    return input_object(f"{cls.__name__}Input", description(cls), value_attributes(cls))


def input_object(name: str, described: str, attributes: Declared) -> Any:
    """An input with a field of each attribute, which may be left out; described with its rules and its default."""
    objects = {Money: MoneyInput, Localized: list[LocalizedTextInput]}
    fields = {}
    for part, (hint, attribute) in attributes.items():
        default = "" if attribute.default is None else f" Default for a new node: {attribute.default}."
        kind = _graphql_type(hint, _nested_input, objects) | None
        text = f"{attribute.description}{attribute.rules.words()}{default}"
        fields[camel(part)] = kind, text, strawberry.UNSET, attribute.deprecated
    return input_type(name, described, fields)
