"""Search items as values: keys of words in both orders, cells of places, damaged items, and lineages."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.hierarchies.locations import Location
from store.errors import DamagedItem
from store.kinds.cells import CellItem, cell_items
from store.kinds.lineage import STEP, MovedNode, Moves, id_hash, lineage, moved_key, steps
from store.kinds.marker import targets
from store.kinds.words import MAX_ITEMS, WordItem, by_text, by_weight, word_items
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Search, SearchScope
from store.model.keys import MAX_PARTITION_KEY_BYTES, MAX_SEGMENTS, MAX_SORT_KEY_BYTES, KeyRange
from store.model.records import MAX_ID_CHARACTERS, Item, Record, size_of
from tests.hierarchies import LOCATION, hierarchy
from tests.search_model import NodeWords

CODES = Attribute("codes", Kind.TEXT, "Codes.", many=True, search=True)
CITY = replace(LOCATION.levels["CITY"], attributes={**LOCATION.levels["CITY"].attributes, "codes": CODES})
SEARCHED = replace(
    LOCATION, levels={**LOCATION.levels, "CITY": CITY}, search=Search(SearchScope.HIERARCHY, "population")
)
WORDS = targets(SEARCHED, None)["words"]
BY_TREE = replace(SEARCHED, search=Search(SearchScope.TREE, "population"))
PLACED = Location.definition()
LINE = lineage(["location:us", "location:1"])
NAMES = st.text(st.sampled_from("abc Öß東京ก한국-'.ʻ"), min_size=1, max_size=60)


def city(name: str = "Omaha", key: str = "omaha", node_id: str = "1", **values: Any) -> Record:
    return Record.new("location", ("US", key), "CITY", name, node_id, "", values, above=["COUNTRY"])


def within(span: KeyRange, items: list[Item]) -> list[str]:
    """The sort keys of a range, in their order."""
    own = [item for item in items if item[span.index.partition] == span.partition]
    found = [str(item[span.index.sort]) for item in own]
    return sorted((sort for sort in found if span.lo <= sort < span.hi), key=str.encode)


# -- words -------------------------------------------------------------------------------------------------------------


@given(
    NAMES, st.dictionaries(st.sampled_from(["de", "ja"]), NAMES), st.lists(NAMES, max_size=4), st.sampled_from("xya-")
)
def test_items_are_those_of_the_model(name: str, names: dict[str, str], codes: list[str], key: str) -> None:
    record = city(name, key, names=names, codes=codes)
    items = word_items(WORDS, record, LINE)
    model = NodeWords(SEARCHED, record.item())
    assert {item["sk"].partition("#")[0]: item["sk"].partition("#")[2][0] == "0" for item in items} == model.found
    assert len({(item["pk"], item["sk"]) for item in items}) == len(items) <= MAX_ITEMS
    for item in items:
        read = WordItem.of("location", item)
        assert read is not None
        assert (read.id, read.level, read.key, read.line, read.depth) == (record.id, "CITY", record.key, LINE, 1)
        words = read.words(["codes"])
        assert (words.names.get(""), set(words.other_words)) == (model.names.get("", ""), set(model.others))


@given(
    st.lists(st.tuples(NAMES, st.integers(-5, 5)), min_size=1, max_size=12), st.sampled_from(["a", "ab", "abc", "東"])
)
def test_texts_are_in_their_order_and_in_that_of_weights(cities: list[tuple[str, int]], text: str) -> None:
    items = []
    for number, (name, population) in enumerate(cities):
        items += word_items(
            targets(SEARCHED, None)["words"], city(name, "k-1", str(number), population=population), LINE
        )
    found = within(by_text("words/location#", text), items)
    assert len(found) == sum(item["sk"].startswith(text) for item in items)
    exact = [sk for sk in found if sk.startswith(f"{text}#0")]
    weights = [cities[int(sk.rpartition("#")[2])][1] for sk in exact]
    assert (found[: len(exact)], weights) == (exact, sorted(weights, reverse=True))
    ranked = within(by_weight("words/location#", text), items)
    places = [(rank[0] == "1", -cities[int(rank.rpartition("#")[2])][1]) for rank in ranked]
    assert places == sorted(places)


@pytest.mark.parametrize("searched", [SEARCHED, BY_TREE], ids=["hierarchy", "tree"])
@pytest.mark.parametrize("letter", ["x", "東", "𠮷", "한"])
def test_keys_fit_into_those_of_dynamodb(searched: Hierarchy, letter: str) -> None:
    longest = replace(hierarchy("h" * 64, *searched.levels.values()), search=searched.search)
    words = " ".join([letter * 99] * 300)
    record = Record.new(
        longest.name, ("𠮷" * 225, *["k"] * 31), "CITY", words, "i" * MAX_ID_CHARACTERS, "",
        {"codes": [words], "names": {"de": words}, "population": -1.2345678901234567e-125}, above=["CITY"] * 31,
    )  # fmt: skip
    items = word_items(targets(longest, None)["words"], record, lineage(f"h:{n}" for n in range(MAX_SEGMENTS)))
    assert 0 < len(items) <= MAX_ITEMS
    for item in items:
        assert all(len(str(item[name]).encode()) <= MAX_SORT_KEY_BYTES for name in ("sk", "rank"))
        assert all(len(str(item[name]).encode()) <= MAX_PARTITION_KEY_BYTES for name in ("pk", "parent"))
        assert size_of(item) < 100_000


def test_a_node_has_at_most_forty_items_of_which_names_come_first_in_the_order_of_languages() -> None:
    items = word_items(WORDS, city("東" * 30, names={"ja": "京" * 30}, codes=["late"]), LINE)
    assert len(items) == MAX_ITEMS
    assert sum(item["sk"].startswith("東") for item in items) == 30
    names = {language: letter * 30 for language, letter in zip(("ja", "de", "fr"), "京東ก", strict=True)}
    one, other = (city(names=dict(order)) for order in (names.items(), reversed(names.items())))
    assert word_items(WORDS, one, LINE) == word_items(targets(SEARCHED, None)["words"], other, LINE)


def test_trees_that_are_searched_by_themselves_have_partitions_of_their_own() -> None:
    (item,) = word_items(targets(BY_TREE, None)["words"], city(), LINE)
    root = id_hash("location:us")
    assert (item["pk"], item["parent"]) == (f"words/location#{root}#o", f"words/location#{root}#oma")
    assert word_items(targets(LOCATION, None)["words"], city(), LINE) == []


@pytest.mark.parametrize(
    "damage", [{"rank": 1}, {"rank": "x"}, {"at": None}, {"line": 3}, {"names": ["x"]}, {"others": 1}]
)
def test_a_damaged_word_is_an_error(damage: dict[str, Any]) -> None:
    (item,) = word_items(WORDS, city(), LINE)
    with pytest.raises(DamagedItem, match="words/location#o"):
        WordItem.of("location", {**item, **damage})


# -- cells -------------------------------------------------------------------------------------------------------------


def test_a_node_with_a_place_has_one_small_item() -> None:
    (item,) = cell_items(targets(PLACED, None)["cells"], city(latitude=41.25, longitude=-95.5), LINE)
    assert item["pk"] in {f"cells/location#{number:02x}" for number in range(24)}
    assert size_of(item) < 200
    found = CellItem.of("location", item)
    assert found is not None
    assert (found.point, found.id, found.level, found.line) == ((41.25, -95.5), "location:1", "CITY", LINE)
    assert found.key == ("location#US", "#omaha#")
    by_tree = replace(PLACED, search=Search(SearchScope.TREE))
    (of_tree,) = cell_items(
        targets(by_tree, None)["cells"], city(latitude="41.25", longitude="264.5"), LINE
    )  # decimals, around the earth
    assert of_tree == {**item, "pk": str(item["pk"]).replace("#", f"#{LINE[:6]}#")}
    assert cell_items(targets(replace(PLACED, location=None), None)["cells"], city(latitude=1, longitude=1), LINE) == []


@pytest.mark.parametrize("latitude", [None, 91, True, "x", [1], "NaN"])
def test_a_node_without_a_valid_place_has_none(latitude: Any) -> None:
    assert cell_items(targets(PLACED, None)["cells"], city(latitude=latitude, longitude=0), LINE) == []


@pytest.mark.parametrize("change", [{"latitude": "x"}, {"longitude": None}, {"at": "US"}, {"line": 3}, {"sk": "abc"}])
def test_a_damaged_cell_is_an_error(change: dict[str, Any]) -> None:
    (item,) = cell_items(targets(PLACED, None)["cells"], city(latitude=41.25, longitude=-95.5), LINE)
    with pytest.raises(DamagedItem, match="cells/location#"):
        CellItem.of("location", item | change)


# -- lineages ----------------------------------------------------------------------------------------------------------


def test_hashes_are_read_back_from_a_lineage() -> None:
    assert steps(lineage(["a:1", "a:2"])) == [id_hash("a:1"), id_hash("a:2")]
    assert len(id_hash("a:1")) == STEP


def test_a_node_that_leaves_a_moved_one_has_its_former_depths() -> None:
    upper = MovedNode.after("n:b", lineage(["n:a", "n:x", "n:y", "n:b"]), lineage(["n:z", "n:b"]), [])
    former = [upper.item(moved_key("n", upper.id))]
    left = MovedNode.after("n:c", lineage(["n:z", "n:b", "n:c"]), lineage(["n:w", "n:c"]), former)
    assert (upper.deepest, left.deepest) == (3, 4)


def test_former_lineages_lead_to_where_nodes_are_in_each_tree() -> None:
    moves = Moves([MovedNode("n:b", lineage(["n:r", "n:b"]), 2), MovedNode("n:c", lineage(["n:s", "n:c"]), 2)])
    former = [lineage(["n:r", "n:a", end, "n:d"]) for end in ("n:b", "n:c")]
    assert [moves.present(line) for line in former] == [lineage(["n:r", "n:b", "n:d"]), lineage(["n:s", "n:c", "n:d"])]
    assert [moves.depth(line) for line in former] == [2, 2]
    assert [moves.in_tree(id_hash("n:r")).depth(line) for line in former] == [2, 3]
    one, other = MovedNode("n:a", lineage(["n:b", "n:a"]), 1), MovedNode("n:b", lineage(["n:a", "n:b"]), 1)
    assert Moves([one, other]).depth(lineage(["n:a", "n:b"])) <= 64  # a cycle of a damaged table ends
