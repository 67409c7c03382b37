"""Folding against the plain model, in many scripts."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from store.errors import BadInput
from store.search.folding import (
    MAX_TEXT_CHARACTERS,
    MAX_WORDS,
    SearchText,
    beginnings,
    fold,
    group,
    is_group,
)
from tests import search_model

SCRIPTS = "aZß1é–_ ıİŁøæÅ²½ﬁ Ωσς АйЁ עִב عَ हि ก็ำไท ລາວ မြန် ខ្មែ 東京都々 ひらガｶ゙ 한국 ㄅ 𠮷 🙂+#\t"
TEXTS = st.one_of(
    st.text(st.sampled_from(SCRIPTS), max_size=30), st.text(st.characters(max_codepoint=0x52F), max_size=30)
)
FOLDED = {
    "São Paulo (SP)": "sao+paulo+sp",
    "Łódź": "lodz",
    "STRASSE straße": "strasse+strasse",
    "東京Tower": "東京+tower",
    "N'Djamena": "n+djamena",
    "½": "1+2",
    "– _ –": "",
}


@given(TEXTS)
@example("İI")
@example("ŉ ǰ ΐ")
def test_a_text_is_folded_as_by_the_model(text: str) -> None:
    assert fold(text) == search_model.fold(text)


@given(TEXTS)
def test_folding_a_folded_text_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize("text", FOLDED)
def test_case_accents_and_punctuation_are_dropped(text: str) -> None:
    assert fold(text) == FOLDED[text]


@given(TEXTS)
def test_beginnings_are_those_of_the_model(text: str) -> None:
    assert beginnings(fold(text)) == search_model.beginnings(fold(text))


def test_scripts_without_spaces_begin_at_each_character() -> None:
    assert beginnings(fold("東京都")) == ["東京都", "京都", "都"]
    assert beginnings(fold("ไทย")) == ["ไทย", "ทย", "ย"]
    assert beginnings(fold("한국")) == [fold("한국"), fold("국")]
    assert beginnings(fold("New York")) == ["new+york", "york"]


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), TEXTS)
def test_a_text_matches_where_each_of_its_words_begins_a_word(text: str, names: list[str], others: str) -> None:
    try:
        searched = SearchText.of(text)
    except BadInput:
        assert len(text) > MAX_TEXT_CHARACTERS or not 0 < len(set(search_model.words(text))) <= MAX_WORDS
        return
    folded = [search_model.fold(name) for name in names]
    known = [found for one in (*folded, search_model.fold(others)) for found in search_model.beginnings(one)]
    own = search_model.fold(text)
    if not all(any(found.startswith(word) for found in known) for word in search_model.words(text)):
        expected = None
    else:
        expected = 0 if own in folded else 1 if any(name.startswith(own) for name in folded) else 2
    assert searched.match(folded, search_model.fold(others)) == expected


@given(TEXTS, TEXTS)
def test_words_that_begin_with_another_one_are_in_its_group(word: str, rest: str) -> None:
    word = fold(word).partition("+")[0]
    if word and is_group(word):
        assert group(fold(word + rest)) == group(word) or not fold(word + rest).startswith(word)


@pytest.mark.parametrize("text", ["a" * (MAX_TEXT_CHARACTERS + 1), " ".join(map(str, range(MAX_WORDS + 1)))])
def test_texts_that_are_too_long_or_have_too_many_words_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        SearchText.of(text)
