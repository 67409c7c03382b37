"""Name fields of nodes and revisions: the default name, and names in other languages, by argument.

Languages are an argument instead of a header, since responses are cached by their arguments.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import strawberry

from graph.types.field import Fields, argument, attribute_of, field, object_type, required
from store.errors import BadInput
from store.model.attributes import Value
from store.model.names import NAMES, canonical_language, checked_names, lookup
from store.model.records import Record

_LANGUAGES = 'Language tags of BCP 47, the best first, such as ["de-AT", "en"].'
_NAME = "Name in the first of `languages` that the node has, else the default name."
_NAME_LANGUAGE = "Language of `name` with the same `languages`; null for the default name."


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
        "names": field(_names, list[_LOCALIZED_NAME], "Names in other languages, ordered by language tag."),
    }


def given_names(given: Mapping[str, Any]) -> dict[str, Value]:
    """The change of `names` that the arguments of a mutation ask for. Raises BadInput."""
    names: Sequence[LocalizedNameInput] | None = given.get("names_", ())
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


def _names(record: Record, info: Any) -> list[LocalizedName]:
    return [LocalizedName(*one) for one in sorted(record.names.items())]
