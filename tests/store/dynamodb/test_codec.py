"""DynamoDB JSON: every item and node is decoded as it was encoded, and no expression contains a value."""

import json
from random import Random
from typing import Any, cast

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from store.dynamodb.codec import condition, counted, decode, encode, key_condition, may_be_key, parse_answer
from store.dynamodb.node_codec import NodeAnswer, NodeParser
from store.engine.record_cache import RecordCache
from store.errors import BadInput, Damaged
from store.model.attributes import Value
from store.model.items import ABSENT, MAX_ITEM_BYTES, UNCONDITIONAL, Item, canonical_item, checked_item_size, size_of
from store.model.keys import Index
from store.model.ranges import KeyRange, below, subtree
from store.model.records import Record
from tests.selection import examples

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
def test_a_canonical_item_has_all_values_but_none_and_comes_back_as_it_was(item: Item) -> None:
    kept = canonical_item(item)
    assert kept == canonical_item(kept) == {name: value for name, value in item.items() if value is not None}
    assert sent_and_answered(kept) == kept
    assert types_in(sent_and_answered(kept)) == types_in(kept)  # type: ignore[arg-type]


@given(numbers)
def test_a_whole_number_of_64_bits_is_stored_as_one(number: float) -> None:
    kept = canonical_item({"a": [number]})["a"][0]  # type: ignore[index]
    assert isinstance(kept, int) == (float(number).is_integer() and -(2**63) <= number < 2**63)


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


# -- nodes, from the bytes of a response -------------------------------------------------------------------------------

short_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
names = st.sampled_from(["population", "own0", "Nodes", "größe", "S"]) | st.text("aö_", min_size=1, max_size=3)
counts = st.dictionaries(st.sampled_from(["CITY", "STATE"]), st.integers(0, 10**6), max_size=2)
records = st.builds(
    Record,
    pk=st.just("location#US"), sk=st.just("#") | short_texts.map(lambda text: f"#{text}#"), rank=short_texts,
    id=short_texts, level=short_texts, name=short_texts, updated_at=short_texts,
    above=st.lists(short_texts, max_size=3), kids=counts, below=counts, revision=st.integers(1, 10**6),
    changed_by=st.none() | short_texts, attributes=st.dictionaries(names, values, max_size=4),
)  # fmt: skip
PARSERS = [NodeParser(RecordCache(keep_bytes)) for keep_bytes in (0, 20_000, 10_000_000)]
NODE = Record(
    pk="location#US", sk="#a#", rank="CITY#a#", id="location:a", level="CITY", name="a", above=["COUNTRY"],
    kids={}, below={}, revision=1, updated_at="2026-11-20T21:00:00Z", attributes={},
)  # fmt: skip


def response(*items: Item, **more: object) -> bytes:
    """A response's body, as DynamoDB writes it."""
    return orjson.dumps({"Items": [encode(canonical_item(item)) for item in items], "Count": len(items), **more})


def shuffled(value: Any, random: Random) -> Any:
    """The same JSON with the members of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(one, random) for one in value]
    if isinstance(value, dict):
        return {name: shuffled(value[name], random) for name in random.sample(list(value), len(value))}
    return value


@settings(max_examples=examples(20, 60))
@given(st.lists(records, max_size=4), st.randoms(use_true_random=False))
def test_nodes_from_bytes_equal_those_decoded_value_by_value(made: list[Record], random: Random) -> None:
    """In any order of attributes, cached or not, although equal keys and revisions come with other content."""
    body = response(*[one.item() for one in made])
    anew = [Record.of(decode(item)) for item in parse_answer(body)["Items"]]
    for parser in PARSERS:
        parser.parse(body)  # from which it learns names
        for _ in range(2):
            sent = orjson.dumps(shuffled(orjson.loads(body), random))
            nodes = cast(NodeAnswer, parser.parse(sent))["Nodes"]
            assert nodes == anew
            assert [types_in(one.attributes) for one in nodes] == [types_in(one.attributes) for one in anew]


def test_what_stands_beside_the_nodes_is_kept() -> None:
    key, capacity = {"pk": {"S": "location#US"}, "sk": {"S": "#a#"}}, {"CapacityUnits": 0.5}
    found = PARSERS[0].parse(response(NODE.item(), LastEvaluatedKey=key, ConsumedCapacity=capacity))
    assert found == {"Nodes": [NODE], "LastEvaluatedKey": key, "ConsumedCapacity": capacity}


@pytest.mark.parametrize(
    "item",
    [
        {"pk": "location#US", "sk": "!", "n": 4}, {**NODE.item(), "expires": 7}, {**NODE.item(), "revision": 1.5},
        {**NODE.item(), "name": 7}, {**NODE.item(), "kids": {"CITY": "many"}}, {**NODE.item(), 'a "name"\n': 1},
        {**NODE.item(), **{f"many{number}": number for number in range(101)}},
    ],
    ids=["no node", "expires", "a broken number", "a number for a text", "texts for counts", "odd", "many names"],
)  # fmt: skip
def test_what_is_no_ordinary_node_is_an_item(item: Item) -> None:
    parser = NodeParser(RecordCache(0))
    for _ in range(2):
        assert [decode(one) for one in parser.parse(response(item))["Items"]] == [canonical_item(item)]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"Items": [', b'{"Items": 7}'])
def test_what_is_no_response_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        PARSERS[0].parse(body)


def test_roots_alone_may_have_no_counts() -> None:
    root = replace(NODE, sk="#", kids={"STATE": 1}, below=None)
    body = response(root.item(), {**root.item(), "below": {"STATE": 1, "CITY": 2}})  # the second is of layout 1
    assert cast(NodeAnswer, PARSERS[0].parse(body))["Nodes"] == [root, root]
    item = {name: value for name, value in NODE.item().items() if name != "below"}
    assert "Nodes" not in PARSERS[0].parse(response(item))
    with pytest.raises(Damaged, match="lacks 'below'"):
        Record.of(item)
