"""Rows of SQLite: every item comes back as it was, and a node of a wrong shape is BAD_DATA with its key."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from store.errors import BadData
from store.model.items import Item, canonical_item
from store.model.records import Record
from store.sqlite.connection import Undecodable
from store.sqlite.rows import KEYS, decode, decode_record, row_of

NAMES = (
    *KEYS, "id", "level", "name", "above", "kids", "below", "revision", "updated_at", "changed_by", "came_by",
    "expires", "attributes", "population", "tree", "key", "at", "line", "names", "others", "latitude", "longitude",
)  # fmt: skip
TEXTS = some.text(some.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
LEAVES = TEXTS | some.integers(-(2**63), 2**63 - 1) | some.booleans() | some.sampled_from([0.5, -1e-130, 1.5e125])
VALUES = some.recursive(LEAVES, lambda one: some.lists(one, max_size=3) | some.dictionaries(TEXTS, one, max_size=3))
RECORD = Record.new(
    "place", ("r", "a b"), "CITY", "A", "1", "2026-11-20T12:00:00Z", {"attributes": 1, "area": 1.5}, above=["AREA"]
)


def read(item: Item) -> tuple[Any, ...]:
    """The row of an item as a SELECT returns it."""
    pk, sk, parent, rank, tier, _, body = row_of(item)
    return pk, sk, parent, rank, tier, body


def node_row(item: Item) -> tuple[Any, ...]:
    pk, sk, _, rank, _, body = read(item)
    return pk, sk, rank, body


@given(some.dictionaries(some.sampled_from(NAMES), VALUES), some.sampled_from(["all", "index", "none"]))
def test_any_item_comes_back_as_it_was(values: dict[str, Any], keys: str) -> None:
    item = {**values, "pk": "p", "sk": "s"}
    if keys != "none":
        item |= {"parent": "q", "rank": "r"}
    if keys == "all":
        item["tier"] = "t"
    canonical = canonical_item(item)
    assert decode(read(canonical)) == canonical


@pytest.mark.parametrize(
    "item",
    [
        RECORD.item(), {"pk": "id#place:1", "sk": "v0", "tree": "place#r", "key": "#a b#"},
        {"pk": "words/place#a", "sk": "a#0~#1", "parent": "words/place#a", "rank": "0~01a#1", "at": "r#a b#",
         "line": "abcdef", "level": "CITY", "others": "x"},
        {"pk": "cells/place#05", "sk": "1a40c92b7#1", "at": "r#", "line": "abcdef", "level": "CITY", "latitude": 1.5,
         "longitude": 2.5},
    ],
)  # fmt: skip
def test_a_body_repeats_no_column_and_no_name_of_an_attribute(item: Item) -> None:
    body = row_of(item)[-1]
    assert isinstance(body, bytes)
    values = [item[name] for name in KEYS if name in item]
    assert not [value for value in values if msgspec.msgpack.encode(value) in body]
    assert not [name for name in item if name not in {"attributes", "area"} and msgspec.msgpack.encode(name) in body]


def test_a_record_is_what_its_item_says() -> None:
    for record in (RECORD, msgspec.structs.replace(RECORD, changed_by="key:a", came_by="x", kids={"CITY": 2})):
        assert decode_record(node_row(record.item())) == record == Record.of(record.item())


@pytest.mark.parametrize("name", ["id", "level", "name", "above", "kids", "below", "revision", "updated_at"])
@pytest.mark.parametrize("value", [None, True, 1.5, [7], {"a": "b"}])
def test_a_node_of_a_wrong_shape_is_bad_data_with_its_key(name: str, value: Any) -> None:
    item = {**RECORD.item(), name: value}
    with pytest.raises(BadData, match='The item "place#r", "#a%20b#" is damaged: '):
        decode_record(node_row(item))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\xc1", b"\x07", b"\x90", b"\x91\xc0", b"\x91\x63", b"\x91\x91\x01", b"\x92\x01\xa1\xff",
        b"\x93\x01\xa0\xa0", None, 7,
    ],
)  # fmt: skip
def test_other_bytes_are_no_item(body: Any) -> None:
    for verb, row in ((decode, ("p", "s", None, "r", "t", body)), (decode_record, ("p", "s", "r", body))):
        with pytest.raises(Undecodable):
            verb(row)  # type: ignore[operator]
