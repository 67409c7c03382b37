"""Language tags: BCP 47 tags in canonical case, and the lookup of RFC 4647 (section 3.4) among tags."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from store.errors import BadInput
from store.text import quantity, shorten

MAX_TAG_CHARACTERS = 64  # RFC 5646 asks for room for 35
MAX_REQUESTED = 20  # languages of one lookup
_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")


def canonical_language(tag: object) -> str:
    """A tag in the case of RFC 5646, section 2.1.1: `zh-hant-tw` becomes `zh-Hant-TW`. Raises BadInput."""
    if not isinstance(tag, str) or len(tag) > MAX_TAG_CHARACTERS or not _TAG.fullmatch(tag):
        raise BadInput(f"{shorten(repr(tag))} is not a language tag of BCP 47; use one such as de, de-AT or zh-Hant.")
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
