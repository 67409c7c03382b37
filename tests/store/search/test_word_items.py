"""Word items: their keys, both orders, sizes and the cap of a node's items, against the plain model."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import BadData
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.items import size_of
from store.model.keys import MAX_PARTITION_KEY_BYTES, MAX_SEGMENTS, MAX_SORT_KEY_BYTES
from store.model.records import MAX_ID_CHARACTERS, Record
from store.search.folding import fold
from store.search.lineage import id_hash, lineage
from store.search.word_items import MAX_ITEMS, WordItem, by_text, by_weight, word_items
from tests.hierarchies import LOCATION, hierarchy
from tests.search_model import NodeWords

CITY = replace(
    LOCATION.levels["CITY"],
    attributes={
        **LOCATION.levels["CITY"].attributes,
        "codes": Attribute("codes", Kind.TEXT, "Codes.", many=True, search=True),
    },
)
SEARCHED = replace(
    LOCATION, levels={**LOCATION.levels, "CITY": CITY}, search=Search(SearchScope.HIERARCHY, "population")
)
BY_TREE = replace(SEARCHED, search=Search(SearchScope.TREE, "population"))


def city(name: str, key: str = "k-1", node_id: str = "1", **values: Any) -> Record:
    return Record.new("location", ("US", key), "CITY", name, node_id, "", values, above=["COUNTRY"])


LINE = lineage(["location:us", "location:1"])
NAMES = st.text(st.sampled_from("abc Öß東京ก한국-"), min_size=1, max_size=60)


@given(
    NAMES, st.dictionaries(st.sampled_from(["de", "ja"]), NAMES), st.lists(NAMES, max_size=4), st.sampled_from("xya-")
)
def test_items_are_those_of_the_model(name: str, names: dict[str, str], codes: list[str], key: str) -> None:
    record = city(name, key, names=names, codes=codes)
    items = word_items(SEARCHED, record, LINE)
    model = NodeWords(SEARCHED, record.item())
    assert {item["sk"].partition("#")[0]: item["sk"].partition("#")[2][0] == "0" for item in items} == model.found
    assert len(items) <= MAX_ITEMS
    assert len({(item["pk"], item["sk"]) for item in items}) == len(items)
    for item in items:
        read = WordItem.of("location", item)
        assert read is not None
        assert (read.id, read.level, read.key, read.line, read.depth) == (record.id, "CITY", record.key, LINE, 1)
        assert (read.words.names.get(""), set(read.words.others)) == (model.names.get("", ""), set(model.others))


@given(
    st.lists(st.tuples(NAMES, st.integers(-5, 5)), min_size=1, max_size=12), st.sampled_from(["a", "ab", "abc", "東"])
)
def test_both_orders(cities: list[tuple[str, int]], text: str) -> None:
    items = []
    for number, (name, population) in enumerate(cities):
        items += word_items(SEARCHED, city(name, node_id=str(number), population=population), LINE)
    texts = by_text("words/location#", text)
    found = sorted(
        (item["sk"] for item in items if item["pk"] == texts.partition and texts.lo <= item["sk"] < texts.hi),
        key=str.encode,
    )
    assert len(found) == sum(item["sk"].startswith(text) for item in items)
    exact = [sk for sk in found if sk.startswith(f"{text}#0")]
    weights = [cities[int(sk.rpartition("#")[2])][1] for sk in exact]
    assert found[: len(exact)] == exact
    assert weights == sorted(weights, reverse=True)
    heavy = by_weight("words/location#", text)
    ranked = sorted(
        (item["rank"] for item in items if item["parent"] == heavy.partition and heavy.lo <= item["rank"] < heavy.hi),
        key=str.encode,
    )
    places = [(rank[0] == "1", -cities[int(rank.rpartition("#")[2])][1]) for rank in ranked]
    assert places == sorted(places)


@pytest.mark.parametrize("searched", [SEARCHED, BY_TREE], ids=["hierarchy", "tree"])
@pytest.mark.parametrize("letter", ["x", "ж", "東", "𠮷", "한"])
def test_keys_fit_into_those_of_dynamodb(searched: Hierarchy, letter: str) -> None:
    longest = hierarchy("h" * 64, *searched.levels.values())
    longest = replace(longest, search=searched.search)
    words = " ".join([letter * 99] * 300)
    record = Record.new(
        longest.name, ("𠮷" * 225, *["k"] * 31), "CITY", words, "i" * MAX_ID_CHARACTERS, "",
        {"codes": [words], "names": {"de": words}, "population": -1.2345678901234567e-125}, above=["CITY"] * 31,
    )  # fmt: skip
    items = word_items(longest, record, lineage(f"h:{n}" for n in range(MAX_SEGMENTS)))
    assert 0 < len(items) <= MAX_ITEMS
    for item in items:
        assert all(len(str(item[name]).encode()) <= MAX_SORT_KEY_BYTES for name in ("sk", "rank"))
        assert all(len(str(item[name]).encode()) <= MAX_PARTITION_KEY_BYTES for name in ("pk", "parent"))
        assert size_of(item) < 100_000


def test_a_node_has_at_most_forty_items_of_which_names_come_first() -> None:
    record = city("東" * 30, names={"ja": "京" * 30}, codes=["late"])
    found = NodeWords(SEARCHED, record.item())
    items = word_items(SEARCHED, record, LINE)
    assert len(items) == len(found.found) == MAX_ITEMS
    assert sum(item["sk"].startswith("東") for item in items) == 30


def test_what_is_cut_does_not_depend_on_the_order_in_which_a_store_returns_names() -> None:
    names = {language: letter * 30 for language, letter in zip(("ja", "de", "fr"), "京東ก", strict=True)}
    one, other = (city("Omaha", names=dict(order)) for order in (names.items(), reversed(names.items())))
    assert word_items(SEARCHED, one, LINE) == word_items(SEARCHED, other, LINE)


def test_trees_that_are_searched_by_themselves_have_partitions_of_their_own() -> None:
    (item,) = word_items(BY_TREE, city("Omaha", "omaha"), LINE)
    root = id_hash("location:us")
    assert (item["pk"], item["parent"]) == (f"words/location#{root}#o", f"words/location#{root}#oma")


def test_a_hierarchy_without_search_has_no_items() -> None:
    assert word_items(LOCATION, city("Omaha"), LINE) == []


@pytest.mark.parametrize(
    "damage", [{"rank": 1}, {"rank": "x"}, {"at": None}, {"line": 3}, {"names": ["x"]}, {"others": 1}]
)
def test_a_damaged_item_is_bad_data(damage: dict[str, Any]) -> None:
    (item,) = word_items(SEARCHED, city("Omaha", "omaha"), LINE)
    assert item["sk"].startswith(fold("OMAHA"))
    with pytest.raises(BadData, match=r'The item "words/location#o", "omaha.*" is damaged'):
        WordItem.of("location", {**item, **damage})
