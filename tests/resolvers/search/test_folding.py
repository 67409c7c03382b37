"""Folding compared with a second implementation, for random texts of many scripts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from store.search.folding import SearchText, beginnings, fold
from tests.brute_search import begins_inside, folded

SIGNS = st.sampled_from("aZßéåÅİıŁøÆœ'’-_ .,+#0٣½東京々〇都ひカーヶ가각ᆨกรุงเທລမြန់ខ្មែрЖΩςאبनी\u0301\u0308\u3099")
TEXTS = st.text(st.one_of(SIGNS, st.characters(exclude_categories=["Cs"], max_codepoint=0x2FFF)), max_size=30)


@settings(max_examples=500)
@given(TEXTS)
def test_words_are_those_of_the_second_implementation(text):
    assert fold(text) == "+".join(folded(text))


@settings(max_examples=300)
@given(TEXTS)
def test_a_word_begins_at_each_beginning_and_nowhere_else(text):
    words = folded(text)
    expected = ["+".join([word[place:], *words[number + 1 :]]) for number, word in enumerate(words)
                for place, sign in enumerate(word) if place == 0 or begins_inside(sign)]  # fmt: skip
    assert beginnings(fold(text)) == expected


def test_signs_that_repeat_a_character_are_a_part_of_its_run():
    assert fold("佐々木") == "佐々木"
    assert SearchText.of("々木").match([fold("佐々木")], "") == 2
    assert SearchText.of("佐木").match([fold("佐々木")], "") is None
