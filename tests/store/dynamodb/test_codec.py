"""DynamoDB JSON: every item and node is decoded as it was encoded, and key ranges fit into keys."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from store.dynamodb.codec import condition, decode, encode, key_condition, may_be_key, parse_answer
from store.dynamodb.store import DynamoDBStore
from store.engine.patience import Patience
from store.engine.usage import ReadUsage
from store.errors import BadInput, Damaged, Unavailable
from store.model.attributes import Value
from store.model.items import MAX_ITEM_BYTES, Item, canonical_item, checked_item_size, size_of
from store.model.keys import Index
from store.model.ranges import KeyRange, below, subtree
from store.model.records import Record
from tests.faulty_engine import FaultyEngine
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


def answered(item: Any) -> Item:
    """An item of DynamoDB JSON after a journey as a response."""
    (found,) = parse_answer(json.dumps({"Items": [item]}).encode())["Items"]
    return decode(found)


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
    found = answered(encode(kept))
    assert (found, types_in(found)) == (kept, types_in(kept))  # type: ignore[arg-type]


@given(numbers)
def test_a_whole_number_of_64_bits_is_stored_as_one_and_takes_at_most_21_bytes(number: float) -> None:
    kept = canonical_item({"a": [number]})["a"][0]  # type: ignore[index]
    assert isinstance(kept, int) == (float(number).is_integer() and -(2**63) <= number < 2**63)
    assert 2 <= size_of({"": number}) <= 21


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
    ("sent", "value"),
    [
        *[({"N": text}, number) for text, number in {
            "41": 41, "-0": 0, "41.0": 41, "4.1E+1": 41, "1E+3": 1000, "0.1": 0.1, "9223372036854775807": 2**63 - 1,
            "9223372036854775808": 2.0**63, "-1E+125": -1e125, "1" + "0" * 125: 1e125,
            "12345678901234567890123456789012345678": 12345678901234567890123456789012345678.0,
        }.items()],
        ({"SS": ["b", "a"]}, ["b", "a"]), ({"NS": ["1", "2.5"]}, [1, 2.5]), ({"B": "aGk="}, "aGk="),
        ({"BS": ["aGk="]}, ["aGk="]), ({"NULL": True}, None),
    ],
)  # fmt: skip
def test_values_of_other_writers_are_read_alike(sent: dict[str, Any], value: Value) -> None:
    found = answered({"a": sent})["a"]
    assert (found, types_in(found)) == (value, types_in(value))


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_size_is_that_of_names_and_values_in_utf8() -> None:
    assert size_of({"pk": "a", "é": "日本"}) == 2 + 1 + 2 + 6
    assert size_of({"a": [], "b": {}, "c": True, "d": None}) == 4 + 3 + 3 + 1 + 1
    assert size_of({"a": ["xy", {"k": "v"}]}) == 1 + 3 + (1 + 2) + (1 + 3 + 1 + 1 + 1)


def test_the_size_limit_is_exact_and_names_the_item() -> None:
    room = MAX_ITEM_BYTES - len("pktsktext")
    assert checked_item_size({"pk": "t", "sk": "", "text": "x" * room}) == MAX_ITEM_BYTES
    with pytest.raises(BadInput, match=rf'"location:7" takes {MAX_ITEM_BYTES + 1 + 12} bytes'):
        checked_item_size({"pk": "t", "sk": "", "id": "location:7", "text": "x" * (room + 1)})


# -- expressions -------------------------------------------------------------------------------------------------------


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
        asked = key_condition(KeyRange(Index.TABLE, "t", *bounds))["ExpressionAttributeValues"]
        asked_lo, asked_hi = asked[":lo"]["S"].encode(), asked[":hi"]["S"].encode()
        assert 0 < len(asked_lo) <= 1024
        assert len(asked_hi) <= 1024
        for key in (bounds[0], bounds[0] + "#", bounds[1][:-1], long + "b", long + "\U0010ffff", long + "\uffff", long):
            if key and len(key.encode()) <= 1024 and bounds[0].encode() <= key.encode() < bounds[1].encode():
                assert asked_lo <= key.encode() <= asked_hi


def test_the_ends_of_subtrees_are_no_keys_and_those_of_pages_may_be() -> None:
    assert not may_be_key(subtree("t", "#NE#").hi)
    assert not may_be_key(below("t", "#NE#").lo)
    assert all(map(may_be_key, ("#NE#", "!", "STATE#a0")))


# -- nodes -------------------------------------------------------------------------------------------------------------

short_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
counts = st.dictionaries(st.sampled_from(["CITY", "STATE"]), st.integers(0, 10**6), max_size=2)
names = st.sampled_from(["population", "own0", "Nodes", "größe", "S"]) | st.text("aö_", min_size=1, max_size=3)
records = st.builds(
    Record,
    pk=st.just("location#US"), sk=st.just("#") | short_texts.map(lambda text: f"#{text}#"), rank=short_texts,
    id=short_texts, level=short_texts, name=short_texts, updated_at=short_texts,
    above=st.lists(short_texts, max_size=3), kids=counts, below=counts, revision=st.integers(1, 10**6),
    changed_by=st.none() | short_texts, attributes=st.dictionaries(names, values, max_size=4),
)  # fmt: skip
NODE = Record(
    pk="location#US", sk="#a#", rank="CITY#a#", id="location:a", level="CITY", name="a", above=["COUNTRY"],
    kids={}, below={}, revision=1, updated_at="2026-11-20T21:00:00Z", attributes={},
)  # fmt: skip
ROOT = replace(NODE, sk="#", kids={"STATE": 1}, below=None)


def page(*some: Item) -> bytes:
    return orjson.dumps({"Items": [encode(canonical_item(item)) for item in some], "Count": len(some)})


def shuffled(value: Any, random: Random) -> Any:
    """The same JSON with the members of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(one, random) for one in value]
    if isinstance(value, dict):
        return {name: shuffled(value[name], random) for name in random.sample(list(value), len(value))}
    return value


@asynccontextmanager
async def answering(bodies: list[bytes], keep_bytes: int = 0) -> AsyncIterator[DynamoDBStore]:
    """A store of a table that answers with these bodies, one after the other."""

    async def answer(operation: str, writer: asyncio.StreamWriter) -> None:
        body = bodies.pop(0)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    async with FaultyEngine(answer) as engine:
        patience = Patience(connect_seconds=60.0, read_seconds=600.0, timeouts=2, attempts=2)
        where: dict[str, Any] = {"region": "eu-west-1", "endpoint": engine.url, "patience": patience}
        async with DynamoDBStore("clade", keep_bytes=keep_bytes, **where) as store:
            yield store


async def nodes(store: DynamoDBStore) -> list[Record]:
    return await store.nodes(subtree("location#US", "#"), ReadUsage())


@pytest.mark.parametrize("keep_bytes", [0, 20_000, 10_000_000])
@settings(max_examples=examples(3, 10))
@given(pages=st.lists(st.lists(records, max_size=4), min_size=5, max_size=20), random=st.randoms(use_true_random=False))
async def test_nodes_equal_their_items_decoded_value_by_value(
    keep_bytes: int, pages: list[list[Record]], random: Random
) -> None:
    """In any order of attributes, cached or not, although equal keys and revisions come with other content."""
    bodies = [page(*[one.item() for one in some]) for some in pages]
    sent = [orjson.dumps(shuffled(orjson.loads(body), random)) for body in bodies for _ in range(3)]
    async with answering(sent, keep_bytes) as store:
        for some in pages:
            expected = [Record.of(answered(encode(canonical_item(one.item())))) for one in some]
            for _ in range(3):
                found = await nodes(store)
                assert found == expected
                assert [types_in(one.attributes) for one in found] == [types_in(one.attributes) for one in expected]


@pytest.mark.parametrize(
    "item",
    [
        {"pk": "location#US", "sk": "!", "n": 4}, {**NODE.item(), "expires": 10**11}, {**NODE.item(), "revision": 1.5},
        {**NODE.item(), "name": 7}, {**NODE.item(), "kids": {"CITY": "many"}}, {**NODE.item(), 'a "name"\n': 1},
        {**NODE.item(), **{f"many{number}": number for number in range(101)}}, {**NODE.item(), "below": None},
        {**ROOT.item(), "below": {"STATE": 1, "CITY": 2}},
    ],
    ids=["no node", "expires", "a broken number", "a number for a text", "texts for counts", "odd", "many names",
         "no counts", "a root with counts, as of layout 1"],
)  # fmt: skip
async def test_what_is_no_ordinary_node_is_read_like_an_item(item: Item) -> None:
    def read(one: Item) -> object:
        try:
            return Record.of(one)
        except Damaged as error:
            return str(error)

    async with answering([page(item)] * 2) as store:
        for _ in range(2):
            try:
                found: object = (await nodes(store))[0]
            except Damaged as error:
                found = str(error)
            assert found == read(canonical_item(item))


async def test_what_is_no_response_is_refused() -> None:
    wrong = [b"", b"[]", b'{"Items": [', b'{"Items": 7}']
    async with answering([page(NODE.item()), *wrong]) as store:
        assert await nodes(store) == [NODE]
        for _ in wrong:
            with pytest.raises(Unavailable, match="not DynamoDB's"):
                await nodes(store)
