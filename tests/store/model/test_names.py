"""Changes of names in languages, and their limits."""

import pytest

from store.errors import BadData, BadInput
from store.model.names import MAX_LANGUAGES, checked_names, names_of, with_changes


def test_changes_set_and_clear_single_languages():
    stored = {"population": 1, "names": {"de": "Wien", "en": "Vienna"}}
    assert with_changes(stored, {"names": {"fr": "Vienne", "en": None}})["names"] == {"de": "Wien", "fr": "Vienne"}
    assert with_changes(stored, {"names": {"de": None, "en": None}}) == {"population": 1}
    assert with_changes(stored, {"names": None}) == {"population": 1}
    assert with_changes(stored, {"population": None}) == {"names": stored["names"]}
    assert with_changes({}, {"names": {"de": None}}) == {}


def test_names_are_stored_in_the_order_of_tags():
    assert list(with_changes({"names": {"en": "a"}}, {"names": {"zh": "b", "de": "c"}})["names"]) == ["de", "en", "zh"]


def test_a_node_has_names_in_at_most_50_languages():
    full = {"names": {f"de-{number:03}": "x" for number in range(MAX_LANGUAGES)}}
    assert with_changes(full, {"names": {"de-000": "y"}})["names"]["de-000"] == "y"
    with pytest.raises(BadInput, match="names in 51 languages; at most 50"):
        with_changes(full, {"names": {"en": "x"}})
    assert with_changes(full, {"names": {"en": "x", "de-000": None}})["names"]["en"] == "x"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["de"], "names must be texts by language"), ("de", "names must be texts by language"),
        ({"d": "x"}, "language tag"), ({"de": ""}, "non-empty"), ({"de": 1}, "non-empty"),
        ({"de": "x" * 16_385}, "at most 16,384"), ({"de": "\ud800"}, "not valid text"),
        ({"de-at": "x", "de-AT": "y"}, "the language de-AT twice; omit one"),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_invalid_names_are_refused_with_a_way_out(names, reason):
    with pytest.raises(BadInput, match=reason):
        checked_names(names)


def test_damaged_names_are_an_error_and_can_be_replaced():
    with pytest.raises(BadData, match="names"):
        names_of({"names": ["de"]})
    assert with_changes({"names": ["de"]}, {"names": {"de": "x"}}) == {"names": {"de": "x"}}
