"""Attributes: canonical form and validation of each kind; names in languages, and the lookup of RFC 4647."""

import math
import re

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from store.errors import BadData, BadInput, BadValue, Rule
from store.model.attributes import Attribute, Kind, Value
from store.model.names import (
    MAX_LANGUAGES,
    MAX_REQUESTED,
    canonical_language,
    checked_names,
    lookup,
    names_of,
    with_changes,
)
from store.model.records import canonical_item
from store.model.values import IS_CANONICAL

MEMBERS = frozenset({"OPEN", "CLOSED"})


def attribute(kind: Kind, *, many: bool = False) -> Attribute:
    return Attribute("size", kind, "…", many=many, members=MEMBERS if kind is Kind.ENUM else frozenset(), enum="State")


TAKEN = [
    (Kind.TEXT, "é 🌍", "é 🌍"), (Kind.TEXT, "", ""), (Kind.TEXT, " a ", " a "),
    (Kind.INT, "42", 42), (Kind.INT, " -7 ", -7), (Kind.INT, 41.0, 41), (Kind.INT, 2**31 - 1, 2**31 - 1),
    (Kind.INT, "+1", 1),
    (Kind.LONG, "9223372036854775807", 2**63 - 1), (Kind.LONG, -(2**63), -(2**63)),
    (Kind.FLOAT, "1.5", 1.5), (Kind.FLOAT, "1e3", 1000.0), (Kind.FLOAT, 3, 3.0), (Kind.FLOAT, "0e9", 0.0),
    (Kind.FLOAT, 1e-130, 1e-130), (Kind.FLOAT, " -.5 ", -0.5), (Kind.FLOAT, "7.", 7.0),
    (Kind.DECIMAL, "799.90", "799.90"), (Kind.DECIMAL, "1E+3", "1000"), (Kind.DECIMAL, 0.1, "0.1"),
    (Kind.DECIMAL, 5, "5"),
    (Kind.DECIMAL, "9" * 38, "9" * 38), (Kind.DECIMAL, "-0.05", "-0.05"),
    (Kind.BOOLEAN, "TRUE", True), (Kind.BOOLEAN, "no", False), (Kind.BOOLEAN, "0", False), (Kind.BOOLEAN, True, True),
    (Kind.DATE, "2026-02-28", "2026-02-28"), (Kind.DATE, " 2024-02-29 ", "2024-02-29"),
    (Kind.DATETIME, "2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z"),
    (Kind.DATETIME, "2026-11-20T12:00:00+02:00", "2026-11-20T10:00:00Z"),
    (Kind.DATETIME, "2026-11-20T12:00:00.250Z", "2026-11-20T12:00:00.250000Z"),
    (Kind.ENUM, "OPEN", "OPEN"), (Kind.ENUM, " CLOSED ", "CLOSED"),
]  # fmt: skip

REFUSED = [
    (Kind.TEXT, 5), (Kind.TEXT, None), (Kind.TEXT, "\ud800"),
    (Kind.INT, "4.5"), (Kind.INT, 4.5), (Kind.INT, 2**31), (Kind.INT, "-2147483649"), (Kind.INT, True),
    (Kind.INT, "1_000"),
    (Kind.INT, float("nan")), (Kind.INT, float("inf")), (Kind.INT, ""), (Kind.INT, None), (Kind.INT, "٣"),
    (Kind.LONG, 2**63), (Kind.LONG, "9" * 20), (Kind.LONG, "9" * 5000),
    (Kind.FLOAT, "nan"), (Kind.FLOAT, "inf"), (Kind.FLOAT, "1e126"), (Kind.FLOAT, "1e-131"), (Kind.FLOAT, "1e-400"),
    (Kind.FLOAT, "many"),
    (Kind.FLOAT, 10**400), (Kind.FLOAT, False), (Kind.FLOAT, "1_000"), (Kind.FLOAT, "٣"),
    (Kind.DECIMAL, "1E9999999"), (Kind.DECIMAL, "9" * 39), (Kind.DECIMAL, "NaN"), (Kind.DECIMAL, "-Infinity"),
    (Kind.DECIMAL, "12,50"), (Kind.DECIMAL, True), (Kind.DECIMAL, [1]), (Kind.DECIMAL, "1_000"), (Kind.DECIMAL, "٣"),
    (Kind.BOOLEAN, "maybe"), (Kind.BOOLEAN, 1), (Kind.BOOLEAN, ""), (Kind.BOOLEAN, None),
    (Kind.DATE, "2026-02-30"), (Kind.DATE, "20.11.2026"), (Kind.DATE, 20261120),
    (Kind.DATETIME, "2026-11-20T12:00:00"), (Kind.DATETIME, "2026-11-20"), (Kind.DATETIME, "0001-01-01T00:00:00+14:00"),
    (Kind.ENUM, "open"), (Kind.ENUM, ""), (Kind.ENUM, 1), (Kind.ENUM, {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given_value", "stored"), TAKEN)
def test_a_value_is_stored_in_one_form(kind: Kind, given_value: object, stored: Value) -> None:
    found = attribute(kind).parse(given_value)
    assert (found, type(found)) == (stored, type(stored))
    assert attribute(kind).is_valid(found)
    assert attribute(kind).parse(found) == found
    # A float that is whole comes back from a store as an int.
    assert attribute(kind).is_valid(canonical_item({"a": stored})["a"])


@pytest.mark.parametrize(("kind", "given_value"), REFUSED, ids=lambda value: repr(value)[:24])
def test_the_error_of_an_invalid_value_names_attribute_value_and_kind(kind: Kind, given_value: object) -> None:
    with pytest.raises(BadValue, match=r"^size: .+ (is|has) .+\.$") as caught:
        attribute(kind).parse(given_value)
    assert len(str(caught.value)) < 150
    assert caught.value.rule is (Rule.CHARACTERS if given_value == "\ud800" else Rule.TYPE)


@pytest.mark.parametrize(
    ("kind", "edges", "outside", "text"),
    [
        (Kind.INT, (-(2**31), 2**31 - 1), (-(2**31) - 1, 2**31), "-2147483648 to 2147483647"),
        (
            Kind.LONG,
            (-(2**63), 2**63 - 1),
            (-(2**63) - 1, 2**63, 10**400),
            "-9223372036854775808 to 9223372036854775807",
        ),
        (
            Kind.FLOAT,
            (9.99e125, -9.99e125, 1e-130, -1e-130, 0),
            (1e126, -1e126, 9e-131, 1e308, math.inf, 10**400),
            "0, or 1e-130 to below 1e126 with either sign",
        ),
        (
            Kind.DECIMAL,
            ("9" * 38, "-" + "9" * 38, "1e-37", "-1e-37", "0"),
            ("1e38", "-1e38", "9e-38", "1" * 39),
            "at most 38 digits",
        ),
    ],
)
def test_the_error_of_a_number_out_of_range_names_the_range(kind, edges, outside, text):
    for edge in edges:
        attribute(kind).parse(edge)
    for number in outside:
        with pytest.raises(BadInput, match=re.escape(f" is out of range; write {text}.")):
            attribute(kind).parse(number)


def test_a_number_that_lost_digits_on_its_way_is_no_decimal() -> None:
    """As one of JSON does that has more than 64 bits; smaller ones keep the digits that they were written with."""
    assert [attribute(Kind.DECIMAL).parse(one) for one in (0.1, 2**64 - 1, -(2.0**53 - 1))] == [
        "0.1", "18446744073709551615", "-9007199254740991.0",
    ]  # fmt: skip
    for number in (orjson.loads(str(2**65 + 1)), -(2.0**53), 1e308, math.inf):
        with pytest.raises(BadInput, match="may have been rounded on its way here; write so large a number as a text"):
            attribute(Kind.DECIMAL).parse(number)


def test_lists_are_taken_as_lists_or_as_text_with_semicolons() -> None:
    assert attribute(Kind.INT, many=True).parse("1; 2;;3 ") == [1, 2, 3]
    assert attribute(Kind.TEXT, many=True).parse(["a;b", "c"]) == ["a;b", "c"]
    assert attribute(Kind.ENUM, many=True).parse("") == []
    with pytest.raises(BadInput, match='size: "x" is not a whole number'):
        attribute(Kind.INT, many=True).parse([1, "x"])
    with pytest.raises(BadInput, match="size: 7 is not a list"):
        attribute(Kind.INT, many=True).parse(7)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", Kind)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("0001-01-01T00:00:00+14:00"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=4,
    )
)
def test_anything_is_valid_or_not_and_parsed_or_refused(kind: Kind, many: bool, value: Value) -> None:
    one = attribute(kind, many=many)
    assert one.is_valid(value) in (True, False)
    try:
        parsed = one.parse(value)
    except BadInput:
        return
    assert one.is_valid(parsed)
    canonical_item({"a": parsed})


@given(
    st.sampled_from([*IS_CANONICAL]),
    st.integers(0, 10),
    st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
)
def test_a_value_that_needs_no_parser_is_parsed_as_itself(kind: Kind, max_length: int, value: Value) -> None:
    attribute = Attribute("x", kind, "", max_length=max_length)
    if IS_CANONICAL[kind](value, max_length):
        parsed = attribute.parse(value)
        assert (parsed, type(parsed)) == (value, type(value))


def test_a_stored_value_of_another_kind_is_not_valid() -> None:
    assert not attribute(Kind.INT).is_valid("42")
    assert not attribute(Kind.INT).is_valid(True)
    assert not attribute(Kind.TEXT).is_valid(["a"])
    assert not attribute(Kind.TEXT, many=True).is_valid("a")
    assert not attribute(Kind.DATETIME).is_valid("2026-11-20T12:00:00+02:00")
    assert not attribute(Kind.ENUM).is_valid("OTHER")
    assert attribute(Kind.TEXT, many=True).is_valid([])


# -- names in languages ------------------------------------------------------------------------------------------------

SUBTAGS = st.sampled_from(["at", "AT", "ch", "Latn", "cyrl", "x", "a", "1996", "nedis"])
TAGS = st.builds(
    lambda first, rest: "-".join([first, *rest]), st.sampled_from(["de", "EN", "sr"]), st.lists(SUBTAGS, max_size=4)
)


@pytest.mark.parametrize(
    "tag", ["de", "de-AT", "zh-Hant-TW", "sl-rozaj-biske", "es-419", "en-a-bbbb-gb", "de-1996", "sr-Latn", "de-x-at"]
)
def test_tags_are_stored_in_canonical_case(tag: str) -> None:
    assert {canonical_language(tag), canonical_language(tag.lower()), canonical_language(tag.upper())} == {tag}


@pytest.mark.parametrize(
    "tag",
    ["", "d", "de_AT", "de-", "-de", "de--AT", "*", "de-AT ", "deutschland", "1de", "de-abcdefghi", "de\n", "dé",
     "a" * 8 + "-a" * 30, None, 7, ["de"]],
    ids=repr,
)  # fmt: skip
def test_other_texts_are_refused_with_examples(tag: str) -> None:
    with pytest.raises(BadInput, match="not a language tag; write one like de, de-AT or zh-Hant"):
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
@example(["de-AT"], ["de"])
@example(["de", "en"], ["fr", "en", "de"])
@given(st.lists(TAGS, max_size=6), st.lists(TAGS, max_size=6))
def test_the_lookup_is_that_of_rfc_4647(available: list[str], wanted: list[str]) -> None:
    names = sorted({canonical_language(tag) for tag in available})
    assert lookup(names, wanted) == plain_lookup(names, wanted)


def test_every_requested_tag_is_checked_and_their_number_is_bounded() -> None:
    with pytest.raises(BadInput, match="language tag"):
        lookup(["de"], ["de", "e!"])
    assert lookup(["de"], ["en"] * (MAX_REQUESTED - 1) + ["de"]) == "de"
    with pytest.raises(BadInput, match="21 tags; at most 20"):
        lookup(["de"], ["de"] * 21)


def test_changes_set_and_clear_single_languages_in_the_order_of_tags() -> None:
    stored = {"population": 1, "names": {"de": "Wien", "en": "Vienna"}}
    assert with_changes(stored, {"names": {"fr": "Vienne", "en": None}})["names"] == {"de": "Wien", "fr": "Vienne"}
    for cleared in ({"de": None, "en": None}, None):
        assert with_changes(stored, {"names": cleared}) == {"population": 1}
    assert with_changes(stored, {"population": None}) == {"names": stored["names"]}
    assert with_changes({}, {"names": {"de": None}}) == {}
    assert list(with_changes({"names": {"en": "a"}}, {"names": {"zh": "b", "de": "c"}})["names"]) == ["de", "en", "zh"]


def test_a_node_has_names_in_at_most_50_languages_and_damaged_ones_can_be_replaced() -> None:
    full = {"names": {f"de-{number:03}": "x" for number in range(MAX_LANGUAGES)}}
    assert with_changes(full, {"names": {"de-000": "y"}})["names"]["de-000"] == "y"
    with pytest.raises(BadInput, match="names has 51 languages; at most 50"):
        with_changes(full, {"names": {"en": "x"}})
    assert with_changes(full, {"names": {"en": "x", "de-000": None}})["names"]["en"] == "x"
    with pytest.raises(BadData, match="names"):
        names_of({"names": ["de"]})
    assert with_changes({"names": ["de"]}, {"names": {"de": "x"}}) == {"names": {"de": "x"}}


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["de"], "not texts by language; write them like"), ("de", "not texts by language"),
        ({"d": "x"}, "language tag"), ({"de": ""}, "is empty"), ({"de": 1}, "not a text"),
        ({"de": "x" * 16_385}, "at most 16,384"), ({"de": "\ud800"}, "characters that are no text"),
        ({"de-at": "x", "de-AT": "y"}, "the language de-AT twice; leave one out"),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_invalid_names_are_refused_with_a_way_out(names: object, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        checked_names(names)
