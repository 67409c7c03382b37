"""Fields of nodes and revisions with values of a record alone. Plans write the simple ones into their generated code.

Languages of names are an argument instead of a header, since responses are cached by their arguments.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import strawberry

from graph.hierarchies.computed import Computed
from graph.hierarchies.node import Node
from graph.types.field import Fields, argument, attribute_of, field, object_type, required
from store.errors import BadData, BadInput
from store.model.attributes import Attribute, Value
from store.model.keys import decode_segment, last_segment
from store.model.names import NAMES, canonical_language, checked_names, lookup
from store.model.paths import format_path
from store.model.records import Record

_LANGUAGES = 'Language tags of BCP 47, the best first, such as ["de-AT", "en"].'
_NAME = "Name in the first of `languages` that it has, or the default."
_NAME_LANGUAGE = "Language of `name`; null for the default name."


@dataclass(frozen=True)
class DisplayName:
    """The name in the best of some languages, else the default name. Plans write the latter into their code."""

    def __call__(self, record: Record, info: Any, languages_: Sequence[str] | None = None) -> str:
        if languages_ is None:
            return record.name
        names = record.names
        language = lookup(names, languages_)
        return record.name if language is None else names[language]


class LocalizedName(NamedTuple):
    """A name in one language, by its canonical tag."""

    language: str
    text: str


@dataclass(frozen=True)
class NamesList:
    """All names in other languages, ordered by tag."""

    def __call__(self, record: Record, info: Any) -> list[LocalizedName]:
        return [LocalizedName(*one) for one in sorted(record.names.items())]


_LOCALIZED_NAME: Any = object_type(
    "LocalizedName",
    "A name of a node in another language than that of its default name.",
    {
        "language": field(attribute_of("language"), str, "Language tag of BCP 47, such as de or zh-Hant."),
        "text": field(attribute_of("text"), str, "Display name in this language."),
    },
)


@strawberry.input(description="A name of a node in a language.")
class LocalizedNameInput:
    language: str = strawberry.field(description="Language tag of BCP 47, such as de or zh-Hant.")
    text: str | None = strawberry.field(
        default=None, description="Display name in this language; null or omitted clears it."
    )


def name_fields() -> Fields:
    """`name`, `nameLanguage` and `names`, in this order."""
    languages = argument("languages", list[str] | None, f"{_LANGUAGES} By default the default name.")
    return {
        "name": field(DisplayName(), str, _NAME, languages),
        "name_language": field(_language, str | None, _NAME_LANGUAGE, required("languages", list[str], _LANGUAGES)),
        "names": field(NamesList(), list[_LOCALIZED_NAME], "Names in other languages, ordered by tag."),
    }


def given_names(names: Sequence[LocalizedNameInput] | None) -> dict[str, Value]:
    """The change of `names` that an input asks for, None: to clear all. Raises BadInput."""
    if names is None:
        return {NAMES: None}
    found = by_language("names", names)
    return {NAMES: checked_names(found)} if found else {}


def by_language(what: str, texts: Iterable[Any]) -> dict[str, str | None]:
    """The texts of inputs by their canonical languages. Raises BadInput, about `what`, for two of one language."""
    found: dict[str, str | None] = {}
    for one in texts:
        language = canonical_language(one.language)
        if language in found:
            raise BadInput(f"{what} has the language {language} twice; omit one.")
        found[language] = one.text
    return found


def _language(record: Record, info: Any, languages_: Sequence[str]) -> str | None:
    return lookup(record.names, languages_)


@dataclass(frozen=True)
class RecordField:
    """An attribute of the record itself."""

    name: str

    def __call__(self, record: Record, info: Any) -> Any:
        return getattr(record, self.name)


@dataclass(frozen=True)
class AttributeField:
    """An attribute of the hierarchy. Raises BadData where the stored value is not of its type."""

    attribute: Attribute

    def __call__(self, record: Record, info: Any) -> Value:
        value = self.attribute.value_in(record.attributes)
        if value is None or self.attribute.is_valid(value):
            return value
        raise BadData(f"{label(record)}: attribute {self.attribute.name} is not of its type.")


@dataclass(frozen=True, eq=False)
class ComputedField:
    """A computed field of nodes with these attributes. Raises BadData for a value of another type."""

    computed: Computed
    attributes: Mapping[str, Attribute]

    def __call__(self, record: Record, info: Any) -> Value:
        try:
            return self.computed.value(record, self.attributes)
        except BadData as error:
            raise BadData(f"{label(record)}: {error}") from None


@dataclass(frozen=True)
class Count:
    """The number of children (`kids`) or descendants (`descendant_counts`), of one level or of all."""

    counts: str

    def __call__(self, record: Record, info: Any, level_: Enum | str | None = None) -> int:
        counts: dict[str, int] = getattr(record, self.counts)
        return sum(counts.values()) if level_ is None else counts.get(_name(level_), 0)


def path(record: Record, info: Any) -> str:
    return format_path(record.path)


def key(record: Record, info: Any) -> str:
    return decode_segment(last_segment(record.pk, record.sk))


def _name(level: Enum | str) -> str:
    """A level as it is stored: Strawberry passes a member of the enum, a plan its value."""
    return level if isinstance(level, str) else str(level.value)


def level_of(record: Record, levels: Mapping[str, type[Node]]) -> type[Node]:
    """The class of a record's level. Raises BadData where the hierarchy has no such level."""
    try:
        return levels[record.level]
    except KeyError:
        raise BadData(f"{label(record)}: unknown level {record.level}.") from None


def label(record: Record) -> str:
    """A node in messages."""
    return f"The {record.hierarchy} {format_path(record.path)}"
