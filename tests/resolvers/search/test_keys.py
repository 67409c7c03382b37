"""Keys in a search: a key is one more name of its node, whole and by its words."""

import pytest

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from store.engine.protocol import Store
from tests.systems.asking import Client, plant

PLACES = [
    (("GB",), "COUNTRY", "United Kingdom"),
    (("GB", "London"), "CITY", "London"),
    (("GB", "London", "SW1A 1AA"), "POSTAL_CODE", "Palace"),
    (("GB", "London", "SW1A 2AA"), "POSTAL_CODE", "Downing Street"),
]
GOODS = [
    (("TV",), "CATEGORY", "Televisions"),
    (("TV", "TV-NORDLYS-48"), "CATEGORY", "Oled"),
    (("TV", "Łódź 東京"), "CATEGORY", "Elsewhere"),
]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SW1A 1AA", ["SW1A 1AA"]),
        ("sw1a", ["SW1A 2AA", "SW1A 1AA"]),
        ("1aa", ["SW1A 1AA"]),
        ("SW1A1AA", []),
        ("palace sw1", ["SW1A 1AA"]),
        ("gb", ["GB"]),
    ],
)
async def test_a_key_of_several_words_is_found_whole_and_by_its_words(store: Store, text: str, keys: list[str]) -> None:
    await plant(store, Location, PLACES)
    client = Client(store, Location)
    for more, found in (
        ("", keys),
        (', languages: ["de"]', keys),
        (', under: "GB"', [key for key in keys if key != "GB"]),
    ):
        query = f"query($text: String!) {{ searchLocations(text: $text{more}) {{ complete nodes {{ key }} }} }}"
        answer = (await client.ask(query, text=text)).data["searchLocations"]
        assert [one["key"] for one in answer["nodes"]] == found
        assert answer["complete"] is True


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("TV-NORDLYS-48", ["TV-NORDLYS-48"]),
        ("nordlys", ["TV-NORDLYS-48"]),
        ("48", ["TV-NORDLYS-48"]),
        ("tv", ["TV", "TV-NORDLYS-48"]),
        ("lodz 京", ["Łódź 東京"]),
    ],
)
async def test_a_key_equal_to_the_text_comes_before_one_that_begins_with_it(
    store: Store, text: str, keys: list[str]
) -> None:
    await plant(store, CategoryNode, GOODS)
    query = "query($text: String!) { searchCategories(text: $text) { nodes { key } } }"
    found = (await Client(store, CategoryNode).ask(query, text=text)).data
    assert [one["key"] for one in found["searchCategories"]["nodes"]] == keys
