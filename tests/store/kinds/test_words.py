"""Folding of texts in many scripts, compared with a plain model, and weights whose order as text is that of numbers."""

import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from store.errors import BadInput
from store.kinds.words import (
    MAX_TEXT_CHARACTERS,
    MAX_WORDS,
    WEIGHT,
    SearchText,
    beginnings,
    descending,
    fold,
    group,
    is_group,
)
from tests import search_model

SCRIPTS = (
    "aZß1é–_ '’ʼʻ‐‑´.-ꞋıİŁøæÐÅ²½ﬁ Ωσς АйЁ עִב عَ हि ก็ำไท ລາວ မြန် ខ្មែ 東京都々 ひらガｶ゙ 한국 ㄅ 𠮷 🙂+#\t"
    "آأإٱةهھہۃەىيیےئكکڪـ٣۳४๓３ךכםןףץґГ\u0600\u06dd\xad\u034f\u061c\u200b\u200c\u200d\u200e\u202e\u2060\u2066\ufeff\ufffa"
)
TEXTS = st.one_of(
    st.text(st.sampled_from(SCRIPTS), max_size=30), st.text(st.characters(max_codepoint=0x52F), max_size=30)
)
SIGNED = st.lists(st.sampled_from(["o", "fal", "fallon", "d", "da", "東", " ", "'", "-", ". "]), max_size=8).map(
    "".join
)
FOLDED = {
    "São Paulo (SP)": "sao+paulo+sp", "Łódź": "lodz", "STRASSE straße": "strasse+strasse", "東京Tower": "東京+tower",
    "N'Djamena": "n-djamena", "½": "1+2", "– _ –": "", "佐々木": "佐々木", "Washington, D.C.": "washington+d-c",
    "Nāʻālehu": "na-alehu", "ʻEwa O´Brien": "ewa+o-brien", "rock 'n' roll--": "rock+n+roll", "a-'b": "a+b",
    "T-シャツ": "t+シャツ", "한-미": fold("한") + "-" + fold("미"), "Þórður": "thordur",
}  # fmt: skip
BEGINNINGS = {
    "東京都": ["東京都", "京都", "都"], "ไทย": ["ไทย", "ทย", "ย"], "한국": [fold("한국"), fold("국")],
    "New York": ["new+york", "york"], "L'Isle-d'Abeau 2": ["lisledabeau+2", "isledabeau+2", "dabeau+2", "abeau+2", "2"],
}  # fmt: skip


@given(TEXTS)
@example("İI")
@example("ŉ ǰ ΐ")
def test_a_text_and_its_beginnings_are_folded_as_by_the_model(text: str) -> None:
    assert fold(text) == search_model.fold(text)
    assert fold(fold(text)) == fold(text)
    assert beginnings(fold(text)) == search_model.beginnings(fold(text))


def test_case_accents_and_punctuation_are_dropped_and_scripts_without_spaces_begin_at_each_character() -> None:
    assert {text: fold(text) for text in FOLDED} == FOLDED
    assert {text: beginnings(fold(text)) for text in BEGINNINGS} == BEGINNINGS


@given(SIGNED | TEXTS, st.lists(SIGNED | TEXTS, min_size=1, max_size=3), SIGNED | TEXTS)
def test_a_text_matches_where_each_of_its_words_begins_a_word(text: str, names: list[str], others: str) -> None:
    try:
        searched = SearchText.of(text)
    except BadInput:
        count = max(len(set(search_model.words(text))), len(set(search_model.parts(text))))
        assert len(text) > MAX_TEXT_CHARACTERS or count > MAX_WORDS
        return
    folded = [search_model.fold(name) for name in names]
    known = [found for one in (*folded, search_model.fold(others)) for found in search_model.beginnings(one)]
    assert searched.match(folded, search_model.fold(others)) == search_model.match(text, folded, known)
    # Each pair of ranges leads to all nodes that match.
    if searched.words and searched.match(folded, search_model.fold(others)) is not None:
        ranges, pairs = searched.ranges
        assert set(ranges) >= {text for pair in pairs for text in pair}
        assert all(any(found.startswith(pair) for found in known) for pair in pairs)
        assert len(ranges) <= 2 * MAX_WORDS + 1


@pytest.mark.parametrize(
    "text", ["a" * (MAX_TEXT_CHARACTERS + 1), *[sign.join(map(str, range(MAX_WORDS + 1))) for sign in " -"]]
)
def test_texts_that_are_too_long_or_have_too_many_words_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        SearchText.of(text)


@given(TEXTS, TEXTS)
def test_words_that_begin_with_another_one_are_in_its_group(word: str, rest: str) -> None:
    word = fold(word).partition("+")[0]
    if word and is_group(word):
        assert group(fold(word + rest)) == group(word) or not fold(word + rest).startswith(word)


# -- weights -----------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e125, max_value=1e125),
    st.decimals(-1000, 1000, places=3).map(str),
)
ROUND = st.builds(lambda digits, zeros: digits * 10**zeros, st.integers(-(10**6), 10**6), st.integers(0, 20))
AFTERWARDS = st.text(st.sampled_from("01239!#:a"), max_size=3)  # of a sort key


@given(NUMBERS, NUMBERS, AFTERWARDS, AFTERWARDS)
def test_texts_are_in_the_order_of_numbers_whatever_follows(one, other, after_one, after_other) -> None:
    assert re.fullmatch(WEIGHT, descending(one))
    if Decimal(str(one)) > Decimal(str(other)):
        assert (descending(one) + after_one).encode() < (descending(other) + after_other).encode()
    elif Decimal(str(one)) == Decimal(str(other)):
        assert descending(one) == descending(other)


@given(st.integers(-(2**63), 2**63 - 1) | ROUND)
@example(1)
@example(10**18 - 1)
@example(10**18)
def test_a_whole_number_has_the_same_text_as_a_decimal(number) -> None:
    assert descending(number) == descending(str(number)) == descending(f"{number}.0")


@pytest.mark.parametrize("value", [None, True, "x", "NaN", "Infinity", "1e999999", [], {}, 0, -0.0, "0.00"])
def test_what_is_no_number_counts_as_zero(value: object) -> None:
    assert descending(1) < descending(value) == descending(0) < descending(-1)
