"""Names of nodes, the default one and those in other languages, which an item has as the map attribute `names`; and
language tags: BCP 47 in canonical case, with the lookup of RFC 4647 (section 3.4).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import cast

from store.errors import BadData, BadInput, BadValue, FaultList, Rule, quantity, shorten, shown
from store.model.values import MAX_TEXT_CHARACTERS, Value

NAMES = "names"
MAX_LANGUAGES = 50  # of one node
_NONE: Mapping[str, str] = {}
MAX_TAG_CHARACTERS = 64  # RFC 5646 asks for room for 35
MAX_REQUESTED = 20  # languages of one lookup
_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")


def checked_name(name: object, label: str = "The name") -> str | None:
    """A name from outside, None where none is given; raises BadValue for an invalid one, which calls it `label`."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise BadValue(f"{label} is {shown(name)}, which is not a text; write a text.", Rule.TYPE)
    if not name or name.isspace():
        raise BadValue(f"{label} is empty; write a text.", Rule.EMPTY)
    if len(name) > MAX_TEXT_CHARACTERS:
        limit = f"at most {MAX_TEXT_CHARACTERS:,} are allowed"
        raise BadValue(f"{label} has {len(name):,} characters; {limit}.", Rule.MAX_LENGTH)
    try:
        name.encode()
    except UnicodeEncodeError:
        text = f"{label} has characters that are no text: {shown(name)}; leave them out."
        raise BadValue(text, Rule.CHARACTERS) from None
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
        text = f'{label}: {shown(names)} is not texts by language; write them like {{"de": "München"}}.'
        raise BadValue(text, Rule.TYPE)
    found, faults = dict[str, Value](), FaultList()
    for place, (tag, text) in enumerate(names.items() if isinstance(names, Mapping) else names):
        language = shorten(str(tag))
        with faults.below(str(place), "language"):
            language = canonical_language(tag)
            if language in found:
                raise BadValue(f"{label} has the language {language} twice; leave one out.", Rule.DUPLICATE)
            found[language] = None
        with faults.below(str(place), "text"):
            if max_length is not None and isinstance(text, str) and len(text) > max_length:
                size = f"{len(text):,} characters; at most {max_length:,} are allowed"
                raise BadValue(f"{label} in {language} has {size}.", Rule.MAX_LENGTH)
            found[language] = checked_name(text, f"{label} in {language}")
    faults.check()
    return found


def with_changes(
    attributes: Mapping[str, Value], changes: Mapping[str, Value], localized: Mapping[str, str] = _NONE
) -> dict[str, Value]:
    """Attributes after changes: None clears one; `names` and the `localized` ones, whose labels are given, change the
    languages that they have alone.

    Raises BadValue, or Faults, for names in more than 50 languages.
    """
    faults = FaultList()
    values: dict[str, Value] = {name: one for name, one in {**attributes, **changes}.items() if one is not None}
    for name, label in ((NAMES, NAMES), *localized.items()):
        changed = changes.get(name)
        if changed is not None:
            texts = merged_names(attributes.get(name), changed)
            if len(texts) > MAX_LANGUAGES:
                text = f"{label} has {len(texts)} languages; at most {MAX_LANGUAGES} are allowed."
                faults.add(BadValue(text, Rule.MAX_ITEMS).at(*(() if name == NAMES else ("attributes",)), name))
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
    """A tag in the case of RFC 5646, section 2.1.1: `zh-hant-tw` becomes `zh-Hant-TW`. Raises BadValue."""
    if not isinstance(tag, str) or len(tag) > MAX_TAG_CHARACTERS or not _TAG.fullmatch(tag):
        raise BadValue(f"{shown(tag)} is not a language tag; write one like de, de-AT or zh-Hant.", Rule.TYPE)
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
