"""Attribute types: parsing, canonical form and validation of each kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import BadInput
from store.model.attributes import Attribute, Kind, Value
from store.model.items import canonical_item
from store.model.values.kinds import IS_CANONICAL

MEMBERS = frozenset({"OPEN", "CLOSED"})


def attribute(kind: Kind, *, many: bool = False) -> Attribute:
    return Attribute("size", kind, "…", many=many, members=MEMBERS if kind is Kind.ENUM else frozenset(), enum="State")


TAKEN = [
    (Kind.TEXT, "é 🌍", "é 🌍"), (Kind.TEXT, "", ""), (Kind.TEXT, " a ", " a "),
    (Kind.INT, "42", 42), (Kind.INT, " -7 ", -7), (Kind.INT, 41.0, 41), (Kind.INT, 2**31 - 1, 2**31 - 1),
    (Kind.INT, "+1", 1),
    (Kind.LONG, "9223372036854775807", 2**63 - 1), (Kind.LONG, -(2**63), -(2**63)),
    (Kind.FLOAT, "1.5", 1.5), (Kind.FLOAT, "1e3", 1000.0), (Kind.FLOAT, 3, 3.0), (Kind.FLOAT, "0", 0.0),
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
    (Kind.FLOAT, "nan"), (Kind.FLOAT, "inf"), (Kind.FLOAT, "1e126"), (Kind.FLOAT, "1e-131"), (Kind.FLOAT, "many"),
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


@pytest.mark.parametrize(("kind", "given_value"), REFUSED, ids=lambda value: repr(value)[:24])
def test_the_error_of_an_invalid_value_names_attribute_value_and_kind(kind: Kind, given_value: object) -> None:
    with pytest.raises(
        BadInput, match=r"^size: .+ is not a valid (Int|Long|Float|Decimal|Boolean|Date|DateTime|String|State)"
    ) as caught:
        attribute(kind).parse(given_value)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize(("kind", "_given", "stored"), TAKEN)
def test_a_stored_value_is_still_valid_when_the_store_gives_it_back(kind: Kind, _given: object, stored: Value) -> None:
    """A float that is whole comes back as an int."""
    assert attribute(kind).is_valid(canonical_item({"a": stored})["a"])


def test_lists_are_taken_as_lists_or_as_text_with_semicolons() -> None:
    assert attribute(Kind.INT, many=True).parse("1; 2;;3 ") == [1, 2, 3]
    assert attribute(Kind.TEXT, many=True).parse(["a;b", "c"]) == ["a;b", "c"]
    assert attribute(Kind.ENUM, many=True).parse("") == []
    with pytest.raises(BadInput, match="size: 'x' is not a valid Int"):
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
