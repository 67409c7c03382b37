"""Names of nodes, the default one and those in other languages, which an item has as the map attribute `names`; and
language tags: BCP 47 in canonical case, with the lookup of RFC 4647 (section 3.4).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import cast

from store.errors import MAX_LENGTH, BadData, BadInput, FaultList, broken_rule, quantity, shorten, shown
from store.model.values import MAX_TEXT_CHARACTERS, Value

NAMES = "names"
MAX_LANGUAGES = 50  # of one node
_NONE: Mapping[str, str] = {}
MAX_TAG_CHARACTERS = 64  # RFC 5646 asks for room for 35
MAX_REQUESTED = 20  # languages of one lookup
_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")


def checked_name(name: object, label: str = "A name") -> str | None:
    """A name from outside, None where none is given; raises BadInput for an invalid one, which calls it `label`."""
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise BadInput(f"{label} must be a non-empty string, not {shown(name)}.")
    if len(name) > MAX_TEXT_CHARACTERS:
        raise BadInput(f"{label} has {len(name):,} characters; at most {MAX_TEXT_CHARACTERS:,} are allowed.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{label} is not valid text: {shown(name)}.") from None
    return name


def checked_names(names: object, label: str = NAMES, max_length: int | None = None) -> dict[str, Value] | None:
    """Changes of names from outside, an object or a tuple of pairs: texts by canonical tags, None for a language to
    clear; None clears all.

    `label` is the attribute's name in messages, `max_length` its rule. Raises the faults of all tags and texts, and of
    two texts of one language, at their places among the pairs.
    """
    if names is None:
        return None
    if not isinstance(names, Mapping | tuple):
        raise BadInput(f'{label} must be texts by language, such as {{"de": "München"}}, not {shown(names)}.')
    found, faults = dict[str, Value](), FaultList()
    for place, (tag, text) in enumerate(names.items() if isinstance(names, Mapping) else names):
        language = shorten(str(tag))
        with faults.below(str(place), "language"):
            language = canonical_language(tag)
            if language in found:
                raise BadInput(f"{label} has the language {language} twice; omit one.")
            found[language] = None
        with faults.below(str(place), "text"):
            if max_length is not None and isinstance(text, str) and len(text) > max_length:
                size = f"{len(text):,} characters"
                raise broken_rule(MAX_LENGTH, f"{label} in {language} has {size}; at most {max_length:,} are allowed.")
            found[language] = checked_name(text, f"{label} in {language}")
    faults.check()
    return found


def with_changes(
    attributes: Mapping[str, Value], changes: Mapping[str, Value], localized: Mapping[str, str] = _NONE
) -> dict[str, Value]:
    """Attributes after changes: None clears one; `names` and the `localized` ones, whose labels are given, change the
    languages that they have alone.

    Raises BadInput, or Faults, for names in more than 50 languages.
    """
    faults = FaultList()
    values: dict[str, Value] = {name: one for name, one in {**attributes, **changes}.items() if one is not None}
    for name, label in ((NAMES, NAMES), *localized.items()):
        changed = changes.get(name)
        if changed is not None:
            texts = merged_names(attributes.get(name), changed)
            if len(texts) > MAX_LANGUAGES:
                fault = BadInput(f"A node has {label} in {len(texts)} languages; at most {MAX_LANGUAGES} are allowed.")
                faults.add(fault.at(*(() if name == NAMES else ("attributes",)), name))
            del values[name]
            if texts:
                values[name] = dict(sorted(texts.items()))
    faults.check()
    return values


def merged_names(stored: Value, changed: Value) -> dict[str, Value]:
    """Stored names with changes, by language; a damaged value counts as none."""
    before = stored if isinstance(stored, dict) else {}
    names = {**before, **cast(dict[str, Value], changed)}
    return {language: text for language, text in names.items() if text is not None}


def names_of(attributes: Mapping[str, Value]) -> Mapping[str, str]:
    """Stored names by language. Raises BadData where they are not texts by language."""
    names = attributes.get(NAMES)
    if names is None:
        return _NONE
    if not are_names(names):
        raise BadData("The attribute names of a node is not an object of texts by language.")
    return cast(dict[str, str], names)


def are_names(value: Value) -> bool:
    """Whether a stored value holds texts by language."""
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def canonical_language(tag: object) -> str:
    """A tag in the case of RFC 5646, section 2.1.1: `zh-hant-tw` becomes `zh-Hant-TW`. Raises BadInput."""
    if not isinstance(tag, str) or len(tag) > MAX_TAG_CHARACTERS or not _TAG.fullmatch(tag):
        raise BadInput(f"{shown(tag)} is not a language tag of BCP 47; use one such as de, de-AT or zh-Hant.")
    first, *others = tag.lower().split("-")
    found, is_extension = [first], False
    for subtag in others:
        if len(subtag) == 1:
            is_extension = True
        elif not is_extension and len(subtag) == 2:
            subtag = subtag.upper()
        elif not is_extension and len(subtag) == 4 and subtag.isalpha():
            subtag = subtag.capitalize()
        found.append(subtag)
    return "-".join(found)


def lookup(available: Collection[str], languages: Sequence[str]) -> str | None:
    """The best of the available canonical tags for the requested ones, in their order: the tag itself, or else what is
    left of it when subtags are removed from its end. None where there is none.

    Raises BadInput for more than 20 requested tags, or an invalid one.
    """
    if len(languages) > MAX_REQUESTED:
        raise BadInput(f"languages has {quantity(len(languages), 'tag')}; at most {MAX_REQUESTED} are allowed.")
    return next((tag for tag in _candidates(tuple(languages)) if tag in available), None)


@lru_cache(256)
def _candidates(languages: tuple[str, ...]) -> tuple[str, ...]:
    """The tags that requested ones stand for, the best first."""
    return tuple(found for tag in languages for found in _shortened(tag))


def _shortened(tag: str) -> list[str]:
    """The tag and what it is shortened to: `zh-Hant-TW`, `zh-Hant`, `zh`."""
    subtags = canonical_language(tag).split("-")
    # A tag does not end in a single letter or digit, which only begins an extension.
    ends = [end for end in range(len(subtags), 0, -1) if end == len(subtags) or len(subtags[end - 1]) > 1]
    return ["-".join(subtags[:end]) for end in ends]
