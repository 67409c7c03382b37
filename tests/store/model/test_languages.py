"""Language tags in canonical case, and the lookup against a plain model of RFC 4647."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from store.errors import BadInput
from store.model.names import MAX_REQUESTED, canonical_language, lookup

CANONICAL = {
    "de": "de", "DE-at": "de-AT", "ZH-HANT-tw": "zh-Hant-TW", "sl-ROZAJ-Biske": "sl-rozaj-biske", "es-419": "es-419",
    "en-a-BBBB-gb": "en-a-bbbb-gb", "de-1996": "de-1996", "sr-latn": "sr-Latn", "de-X-AT": "de-x-at",
}  # fmt: skip
INVALID = ["", "d", "de_AT", "de-", "-de", "de--AT", "*", "de-AT ", "deutschland", "1de", "de-abcdefghi", "de\n", "dé"]

SUBTAGS = st.sampled_from(["at", "AT", "ch", "Latn", "cyrl", "x", "a", "1996", "nedis"])
TAGS = st.builds(
    lambda first, rest: "-".join([first, *rest]), st.sampled_from(["de", "EN", "sr"]), st.lists(SUBTAGS, max_size=4)
)


@pytest.mark.parametrize("tag", CANONICAL)
def test_tags_are_stored_in_canonical_case(tag):
    assert canonical_language(tag) == CANONICAL[tag]
    assert canonical_language(CANONICAL[tag]) == CANONICAL[tag]


@pytest.mark.parametrize("tag", [*INVALID, "a" * 8 + "-a" * 30, None, 7, ["de"]], ids=repr)
def test_other_texts_are_refused_with_examples(tag):
    with pytest.raises(BadInput, match="not a language tag of BCP 47; use one such as de, de-AT or zh-Hant"):
        canonical_language(tag)


def plain_lookup(available: list[str], wanted: list[str]) -> str | None:
    """The lookup of RFC 4647, section 3.4, as it is written there, without regard to case."""
    by_lower = {tag.lower(): tag for tag in available}
    for tag in wanted:
        rest = tag.lower()
        while rest:
            if rest in by_lower:
                return by_lower[rest]
            rest = rest.rpartition("-")[0]
            while rest[-2:-1] == "-":  # a single letter goes with the subtag after it, also if that is one itself
                rest = rest[:-2]
    return None


@example(["de-AT-x"], ["de-at-x-x-at"])
@given(st.lists(TAGS, max_size=6), st.lists(TAGS, max_size=6))
def test_the_lookup_is_that_of_rfc_4647(available, wanted):
    names = sorted({canonical_language(tag) for tag in available})
    assert lookup(names, wanted) == plain_lookup(names, wanted)


def test_a_longer_tag_is_no_match_and_the_first_language_wins():
    assert lookup(["de-AT"], ["de"]) is None
    assert lookup(["de", "en"], ["fr", "en", "de"]) == "en"
    assert lookup(["de", "en"], []) is None


def test_every_requested_tag_is_checked_and_their_number_is_bounded():
    with pytest.raises(BadInput, match="language tag"):
        lookup(["de"], ["de", "e!"])
    assert lookup(["de"], ["en"] * (MAX_REQUESTED - 1) + ["de"]) == "de"
    with pytest.raises(BadInput, match="21 tags; at most 20"):
        lookup(["de"], ["de"] * 21)
