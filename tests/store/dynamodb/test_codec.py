"""DynamoDB JSON: every item is decoded as it was encoded, and no expression contains a value."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.dynamodb.codec import condition, counted, decode, encode, key_condition, may_be_key, parse_answer
from store.errors import BadInput
from store.model.attributes import Value
from store.model.items import ABSENT, MAX_ITEM_BYTES, UNCONDITIONAL, Item, canonical_item, checked_item_size, size_of
from store.model.keys import Index
from store.model.ranges import KeyRange, below, subtree

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: number == 0 or 1e-130 <= abs(number) < 1e126
)
values: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
items = st.dictionaries(texts, values, max_size=8)


def sent_and_answered(item: Item) -> Item:
    """The item after a journey as JSON."""
    (answered,) = parse_answer(json.dumps({"Items": [encode(item)]}).encode())["Items"]
    return decode(answered)


def types_in(value: Value) -> object:
    """A value's types, all the way down, since 1, 1.0 and True are equal to Python."""
    match value:
        case list():
            return [types_in(one) for one in value]
        case dict():
            return {name: types_in(one) for name, one in value.items()}
        case _:
            return type(value)


@given(items)
def test_a_settled_item_comes_back_as_it_was(item: Item) -> None:
    kept = canonical_item(item)
    assert sent_and_answered(kept) == kept
    assert types_in(sent_and_answered(kept)) == types_in(kept)  # type: ignore[arg-type]


@given(items)
def test_settling_changes_no_value_but_leaves_out_none(item: Item) -> None:
    assert canonical_item(item) == {name: value for name, value in item.items() if value is not None}
    assert canonical_item(canonical_item(item)) == canonical_item(item)


@given(items)
def test_no_whole_number_of_64_bits_is_settled_as_a_float(item: Item) -> None:
    def floats(value: Value) -> list[float]:
        match value:
            case float():
                return [value]
            case list():
                return [found for one in value for found in floats(one)]
            case dict():
                return [found for one in value.values() for found in floats(one)]
            case _:
                return []

    for number in floats(canonical_item(item)):  # type: ignore[arg-type]
        assert not number.is_integer() or abs(number) >= 2**63


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("-inf"), 1e126, -1e126, 1e-131, 2**63, -(2**63) - 1, 1 << 20_000, b"x", {1}, object()],
    ids=lambda value: type(value).__name__,
)
def test_what_dynamodb_cannot_hold_is_refused_wherever_it_stands(value: object) -> None:
    for item in ({"a": value}, {"a": [value]}, {"a": {"b": [{"c": value}]}}):
        with pytest.raises(BadInput, match="stored") as caught:
            canonical_item(item)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "number"),
    [("41", 41), ("-0", 0), ("41.0", 41), ("4.1E+1", 41), ("1E+3", 1000), ("0.1", 0.1),
     ("9223372036854775807", 2**63 - 1), ("9223372036854775808", 2.0**63), ("18446744073709551616", 2.0**64),
     ("-1E+125", -1e125), ("1" + "0" * 125, 1e125),
     ("12345678901234567890123456789012345678", 12345678901234567890123456789012345678.0)],
)  # fmt: skip
def test_numbers_of_other_writers_are_read_alike(text: str, number: float) -> None:
    (answered,) = parse_answer(json.dumps({"Items": [{"n": {"N": text}}]}).encode())["Items"]
    found = decode(answered)["n"]
    assert (found, type(found)) == (number, type(number))


def test_values_of_other_writers_that_we_never_write_can_be_read() -> None:
    item = {
        "s": {"SS": ["b", "a"]},
        "n": {"NS": ["1", "2.5"]},
        "b": {"B": "aGk="},
        "c": {"BS": ["aGk="]},
        "x": {"NULL": True},
    }
    (answered,) = parse_answer(json.dumps({"Items": [item]}).encode())["Items"]
    assert decode(answered) == {"s": ["b", "a"], "n": [1, 2.5], "b": "aGk=", "c": ["aGk="], "x": None}


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_size_is_that_of_names_and_values_in_utf8() -> None:
    assert size_of({"pk": "a", "é": "日本"}) == 2 + 1 + 2 + 6
    assert size_of({"a": [], "b": {}, "c": True, "d": None}) == 4 + 3 + 3 + 1 + 1
    assert size_of({"a": ["xy", {"k": "v"}]}) == 1 + 3 + (1 + 2) + (1 + 3 + 1 + 1 + 1)


@given(numbers)
def test_no_number_takes_more_than_21_bytes(number: float) -> None:
    assert 2 <= size_of({"": number}) <= 21


def test_the_size_limit_is_exact_and_names_the_item() -> None:
    room = MAX_ITEM_BYTES - len("pktsktext")
    assert checked_item_size({"pk": "t", "sk": "", "text": "x" * room}) == MAX_ITEM_BYTES
    with pytest.raises(BadInput, match=rf'"location:7" takes {MAX_ITEM_BYTES + 1 + 12} bytes'):
        checked_item_size({"pk": "t", "sk": "", "id": "location:7", "text": "x" * (room + 1)})


# -- expressions -------------------------------------------------------------------------------------------------------


def test_no_condition_is_no_expression() -> None:
    assert condition(UNCONDITIONAL, now=1) == {}


def test_absence_is_also_of_what_has_expired() -> None:
    assert condition(ABSENT, now=7) == {
        "ConditionExpression": "(attribute_not_exists(#c0)) OR #expires <= :now",
        "ExpressionAttributeNames": {"#c0": "pk", "#expires": "expires"},
        "ExpressionAttributeValues": {":now": {"N": "7"}},
    }


@given(st.dictionaries(texts, values, min_size=1, max_size=5))
def test_names_and_values_of_a_condition_are_never_part_of_its_expression(when: Item) -> None:
    made = condition(when, now=7)
    names, given_values = made["ExpressionAttributeNames"], made["ExpressionAttributeValues"]
    assert set(names.values()) == {*when, "expires"}
    assert len(given_values) == 1 + sum(value is not None for value in when.values())
    plain = made["ConditionExpression"]
    for placeholder in sorted([*names, *given_values], key=len, reverse=True):
        assert placeholder in plain
        plain = plain.replace(placeholder, "")
    assert not set(plain.replace("attribute_not_exists", "").replace("AND", "").replace("OR", "")) - set(" ()<>=")


@given(texts, texts)
def test_a_key_range_holds_everything_between_its_bounds_and_fits_into_a_key(lo: str, hi: str) -> None:
    for long in ("", "a" * 1020, "a" * 1023):
        bounds = sorted([long + lo, long + hi], key=str.encode)
        span = KeyRange(Index.TABLE, "t", *bounds)
        asked = key_condition(span)["ExpressionAttributeValues"]
        asked_lo, asked_hi = asked[":lo"]["S"].encode(), asked[":hi"]["S"].encode()
        assert 0 < len(asked_lo) <= 1024
        assert len(asked_hi) <= 1024
        for key in (bounds[0], bounds[0] + "#", bounds[1][:-1], long + "b", long + "\U0010ffff", long + "\uffff", long):
            if key and len(key.encode()) <= 1024 and bounds[0].encode() <= key.encode() < bounds[1].encode():
                assert asked_lo <= key.encode() <= asked_hi


def test_the_table_itself_has_no_index_name_and_the_others_have() -> None:
    assert "IndexName" not in key_condition(subtree("t", "#"))
    assert key_condition(KeyRange(Index.BY_PARENT, "t", "a", "b"))["IndexName"] == "by_parent"
    assert key_condition(KeyRange(Index.BY_LEVEL, "t", "a", "b"))["IndexName"] == "by_level"


def test_counting_keeps_the_range_and_leaves_out_what_has_expired() -> None:
    query = key_condition(below("t", "#"))
    made = counted(query, now=7)
    assert (made["Select"], made["KeyConditionExpression"]) == ("COUNT", query["KeyConditionExpression"])
    assert made["ExpressionAttributeNames"] == {**query["ExpressionAttributeNames"], "#expires": "expires"}
    assert made["ExpressionAttributeValues"] == {**query["ExpressionAttributeValues"], ":now": {"N": "7"}}


def test_the_ends_of_subtrees_are_no_keys_and_those_of_pages_may_be() -> None:
    assert not may_be_key(subtree("t", "#NE#").hi)
    assert not may_be_key(below("t", "#NE#").lo)
    assert may_be_key("#NE#")
    assert may_be_key("!")
    assert may_be_key("STATE#a0")
