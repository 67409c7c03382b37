"""Node codec: records parsed from bytes equal those decoded value by value."""

from decimal import Decimal
from random import Random
from typing import Any, cast

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from store.dynamodb import node_codec
from store.dynamodb.codec import Answer, decode, encode, parse_answer
from store.dynamodb.node_codec import NodeAnswer, NodeParser
from store.errors import BadData
from store.model.attributes import Value
from store.model.items import Item, canonical_item
from store.model.records import Record
from tests.selection import examples

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
numbers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0.1, -2.5, 1e-130, 1e125, 41.0, 1e30, -(2.0**80)])
values: st.SearchStrategy[Value] = st.recursive(
    texts | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["population", "own0", "Nodes", "größe", "S"]) | st.text("aö_", min_size=1, max_size=3)
counts = st.dictionaries(st.sampled_from(["CITY", "STATE"]), st.integers(0, 10**6), max_size=2)
records = st.builds(
    Record,
    pk=st.just("location#US"), sk=st.just("#") | texts.map(lambda text: f"#{text}#"), rank=texts, id=texts,
    level=texts, name=texts,
    updated_at=texts, above=st.lists(texts, max_size=3), kids=counts, below=counts, revision=st.integers(1, 10**6),
    changed_by=st.none() | texts, came_by=st.just("") | texts, attributes=st.dictionaries(names, values, max_size=4),
)  # fmt: skip


def node(name: str, **attributes: Value) -> Record:
    return Record(
        pk="location#US", sk=f"#{name}#", rank=f"CITY#{name}#", id=f"location:{name}", level="CITY", name=name,
        above=["COUNTRY"], kids={}, below={}, revision=1, updated_at="2026-11-20T21:00:00Z", attributes=attributes,
    )  # fmt: skip


def told(*items: Item, **more: object) -> bytes:
    """An answer's body, as DynamoDB writes it."""
    return orjson.dumps({"Items": [encode(canonical_item(item)) for item in items], "Count": len(items), **more})


def parser_of() -> NodeParser:
    return NodeParser(keep=False)


def nodes_of(items: list[Item]) -> list[Record]:
    return [Record.of(item) for item in items]


@given(st.lists(records, max_size=4))
def test_what_is_read_at_once_is_what_is_read_value_by_value(made: list[Record]) -> None:
    body, parser = told(*[one.item() for one in made]), parser_of()
    slowly = nodes_of([decode(item) for item in parse_answer(body)["Items"]])
    at_once = cast(NodeAnswer, parser.parse(body))["Nodes"]
    assert at_once == slowly
    assert list(map(shown, at_once)) == list(map(shown, slowly))


LONG_LIVED = parser_of()


def shuffled(value: Any, random: Random) -> Any:
    """The same JSON with the members of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(one, random) for one in value]
    if isinstance(value, dict):
        return {name: shuffled(value[name], random) for name in random.sample(list(value), len(value))}
    return value


@settings(max_examples=examples(10, 40))
@given(st.lists(records, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_attributes_makes_no_difference(made: list[Record], random: Random) -> None:
    body = told(*[one.item() for one in made])
    anew = nodes_of([decode(item) for item in parse_answer(body)["Items"]])
    for _ in range(3):
        found = LONG_LIVED.parse(orjson.dumps(shuffled(orjson.loads(body), random)))
        assert (nodes := _nodes(found)) == anew
        assert list(map(shown, nodes)) == list(map(shown, anew))


def _nodes(found: Answer) -> list[Record]:
    return cast(NodeAnswer, found).get("Nodes") or nodes_of([decode(item) for item in found.get("Items", [])])


@pytest.mark.parametrize(
    "number",
    [
        "0", "-7", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
        "1.50", "100", "99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001",
        "1E+2", "1E+125", "-1E-130",
    ],
)  # fmt: skip
def test_a_number_is_an_integer_of_64_bits_or_the_nearest_float(number: str) -> None:
    """As Python reads it; so one that Clade wrote comes back as it was."""
    exact = Decimal(number)
    expected = int(exact) if exact == int(exact) and -(2**63) <= exact < 2**63 else float(exact)
    wire = encode(canonical_item(node("a").item()))
    body = orjson.dumps({"Items": [{**wire, "area": {"N": number}, "areas": {"NS": [number]}}]})
    (found,) = _nodes(parser_of().parse(body))
    slowly = decode(parse_answer(body)["Items"][0])
    for values in (found.attributes, slowly):
        assert (values["area"], values["areas"]) == (expected, [expected])
        assert type(values["area"]) is type(expected)


def test_records_that_are_to_be_cached_keep_what_is_serialized_of_them() -> None:
    for keep, fragments in ((True, {}), (False, None)):
        (found,) = _nodes(NodeParser(keep=keep).parse(told(node("a").item())))
        assert found.fragments == fragments


def shown(record: Record) -> bytes:
    """Its attributes in one order, with their types, since 1, 1.0 and True are equal to Python."""
    return orjson.dumps(record.attributes, option=orjson.OPT_SORT_KEYS)


def test_attributes_are_learnt_once_and_may_be_absent() -> None:
    parser = parser_of()
    made = [node("a", code="x"), node("b")]
    assert parser.parse(told(*[one.item() for one in made])) == {"Nodes": made, "ConsumedCapacity": None}
    made.append(node("c", population=1))
    assert parser.parse(told(*[one.item() for one in made])) == {"Nodes": made, "ConsumedCapacity": None}


def test_what_stands_beside_the_nodes_is_kept() -> None:
    key, capacity = {"pk": {"S": "location#US"}, "sk": {"S": "#a#"}}, {"CapacityUnits": 0.5}
    found = parser_of().parse(told(node("a").item(), LastEvaluatedKey=key, ConsumedCapacity=capacity))
    assert found == {"Nodes": [node("a")], "LastEvaluatedKey": key, "ConsumedCapacity": capacity}


@pytest.mark.parametrize(
    "item",
    [
        {"pk": "location#US", "sk": "!", "n": 4}, {**node("a").item(), "expires": 7},
        {**node("a").item(), "revision": 1.5}, {**node("a").item(), "name": 7},
        {**node("a").item(), "kids": {"CITY": "many"}}, {**node("a").item(), 'a "name"\n': 1},
    ],
    ids=["no node", "what expires", "a broken number", "a number for a text", "texts for counts", "an odd name"],
)  # fmt: skip
def test_what_is_no_ordinary_node_is_left_to_the_ordinary_way(item: Item) -> None:
    parser, body = parser_of(), told(item)
    for _ in range(2):
        assert [decode(one) for one in parser.parse(body)["Items"]] == [canonical_item(item)]


def test_no_more_names_are_learnt_than_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_codec, "MAX_NAMES", 2)
    parser, many = parser_of(), told(node("a", b=1, c=2, d=3).item())
    for _ in range(2):
        assert "Items" in parser.parse(many)
    few = told(node("a", b=1, c=2).item())
    assert "Nodes" in parser.parse(few)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"Items": [', b'{"Items": 7}'])
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        parser_of().parse(body)


def test_roots_are_read_at_once_whether_they_have_the_counts_of_layout_1_or_none() -> None:
    root = replace(node("US"), sk="#", kids={"STATE": 1}, below=None)
    body = told(root.item(), {**root.item(), "below": {"STATE": 1, "CITY": 2}})
    assert cast(NodeAnswer, parser_of().parse(body))["Nodes"] == [root, root]


def test_another_node_without_counts_is_not_read_at_once() -> None:
    item = {name: value for name, value in node("Omaha").item().items() if name != "below"}
    assert "Nodes" not in parser_of().parse(told(item))
    with pytest.raises(BadData, match="missing required field `below`"):
        Record.of(item)
