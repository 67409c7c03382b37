"""DynamoDB JSON: values and nodes are decoded as they were encoded, sizes, and key ranges that fit into keys."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import orjson
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from store.dynamodb.codec import decode, encode, key_condition, parse_answer
from store.dynamodb.store import DynamoDBStore
from store.engine import Patience, ReadUsage
from store.errors import BadInput, DamagedItem, Unavailable
from store.model.attributes import Value
from store.model.keys import Index, KeyRange, subtree
from store.model.records import Item, Record, canonical_item, size_of
from tests.proxy import Call, Forward, Proxy

VALUES: dict[str, Value] = {
    "text": "é\x00\u2028日本😀\"\\", "empty": "", "true": True, "false": False, "zero": 0, "int": 41, "low": -(2**63),
    "high": 2**63 - 1, "float": 0.1 + 0.2, "small": -1.5e-130, "large": 1.7e125, "beyond": 2.0**63, "": "no name",
    "list": ["a", 1, 2.5, None, [True], {"b": []}, {}], "map": {"CITY": 3, "a#b": {"c": None, "S": "N"}, "": "e"},
}  # fmt: skip


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


def test_an_item_has_all_values_but_none_and_comes_back_as_it_was() -> None:
    kept = canonical_item({**VALUES, "none": None, "whole": 41.0, "minus zero": -0.0})
    assert kept == {**VALUES, "whole": 41, "minus zero": 0} == canonical_item(kept)
    assert types_in(kept) == types_in({**VALUES, "whole": 41, "minus zero": 0})  # type: ignore[arg-type]
    found = answered(encode(kept))
    assert (found, types_in(found)) == (kept, types_in(kept))  # type: ignore[arg-type]


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
            "9223372036854775808": 2.0**63, "-1E+125": -1e125, "1" + "0" * 125: 1e125, "-9223372036854775808": -(2**63),
            "-9223372036854775808.0": -(2**63),
            "12345678901234567890123456789012345678": 12345678901234567890123456789012345678.0,
        }.items()],
        ({"SS": ["b", "a"]}, ["b", "a"]), ({"NS": ["1", "2.5"]}, [1, 2.5]), ({"B": "aGk="}, "aGk="),
        ({"BS": ["aGk="]}, ["aGk="]), ({"NULL": True}, None),
    ],
)  # fmt: skip
def test_values_of_other_writers_are_read_alike(sent: dict[str, Any], value: Value) -> None:
    found = answered({"a": sent})["a"]
    assert (found, types_in(found)) == (value, types_in(value))


# -- sizes and key ranges ----------------------------------------------------------------------------------------------


def test_a_size_is_that_of_names_and_values_in_utf8() -> None:
    assert size_of({"pk": "a", "é": "日本"}) == 2 + 1 + 2 + 6
    assert size_of({"a": [], "b": {}, "c": True, "d": None}) == 4 + 3 + 3 + 1 + 1
    assert size_of({"a": ["xy", {"k": "v"}]}) == 1 + 3 + (1 + 2) + (1 + 3 + 1 + 1 + 1)
    assert all(2 <= size_of({"": number}) <= 21 for number in VALUES.values() if type(number) in (int, float))


texts = st.text(st.characters(exclude_categories=["Cs"]))


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


# -- nodes, as a store reads them from responses -----------------------------------------------------------------------

NODE = Record(
    pk="location#US", sk="#a#", rank="CITY#a#", id="location:a", level="CITY", name="a", above=["COUNTRY"],
    kids={}, below={}, revision=1, updated_at="2026-11-20T21:00:00Z", attributes={},
)  # fmt: skip
ROOT = replace(NODE, sk="#", kids={"STATE": 1}, below=None)
OTHERS = {"own0": "x", "Nodes": 1, "größe": {"b": 1, "a": 2}, "S": ["N"], "names": {"fr": "A", "de": "a"}}
FULL = replace(NODE, kids={"B": 2, "A": 10**6}, below={"B": 9, "A": 10**6}, changed_by="me", attributes=VALUES)
PAGES = [
    [], [NODE], [ROOT, NODE], [FULL, replace(NODE, attributes={"größe": None, "text": "other content"})],
    [replace(ROOT, attributes=OTHERS), replace(FULL, sk="#b#", attributes={**OTHERS, "text": ""})],
]  # fmt: skip


@asynccontextmanager
async def answering(bodies: list[bytes], keep_bytes: int = 0) -> AsyncIterator[DynamoDBStore]:
    """A store of a table that answers with these bodies, one after the other."""

    async def answer(call: Call, forward: Forward) -> web.Response:
        return web.Response(body=bodies.pop(0))

    patience = Patience(connect_seconds=60.0, read_seconds=600.0, timeouts=2, attempts=2)
    async with Proxy(usual=answer) as engine:
        where: dict[str, Any] = {"region": "eu-west-1", "endpoint": engine.url, "patience": patience}
        async with DynamoDBStore("clade", keep_bytes=keep_bytes, **where) as store:
            yield store


def page(*some: Item, random: Random | None = None) -> bytes:
    body = {"Items": [encode(canonical_item(item)) for item in some], "Count": len(some)}
    return orjson.dumps(shuffled(body, random) if random else body)


def shuffled(value: Any, random: Random) -> Any:
    """The same JSON with the members of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(one, random) for one in value]
    if isinstance(value, dict):
        return {name: shuffled(value[name], random) for name in random.sample(list(value), len(value))}
    return value


async def nodes(store: DynamoDBStore) -> list[Record]:
    return await store.nodes(subtree("location#US", "#"), ReadUsage())


@pytest.mark.parametrize("keep_bytes", [0, 5_000, 10_000_000])
async def test_nodes_equal_their_items_in_any_order_of_attributes_cached_or_not(keep_bytes: int) -> None:
    random, some = Random(keep_bytes), PAGES * 4  # noqa: S311
    async with answering([page(*[one.item() for one in made], random=random) for made in some], keep_bytes) as store:
        for made in some:
            expected = [Record.of(answered(encode(canonical_item(one.item())))) for one in made]
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
        except DamagedItem as error:
            return str(error)

    async with answering([page(item)] * 2) as store:
        for _ in range(2):
            try:
                found: object = (await nodes(store))[0]
            except DamagedItem as error:
                found = str(error)
            assert found == read(canonical_item(item))


async def test_what_is_no_response_is_refused() -> None:
    wrong = [b"", b"[]", b'{"Items": [', b'{"Items": 7}']
    async with answering([page(NODE.item()), *wrong]) as store:
        assert await nodes(store) == [NODE]
        for _ in wrong:
            with pytest.raises(Unavailable, match="not DynamoDB's"):
                await nodes(store)
