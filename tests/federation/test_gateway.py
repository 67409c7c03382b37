"""Clade behind a gateway, beside subgraphs that keep its nodes by path, by id and by interface."""

import json
from collections.abc import Iterator

import pytest

from tests.federation.conftest import HERE, Served, gateway_before, needs_npm
from tests.federation.places import CATEGORIES, CITIES, id_of

pytestmark = needs_npm

SHOPS = [
    {"id": f"{n}", "name": f"Shop {n}", "city": CITIES[n * 20], "category": id_of(CATEGORIES[n])} for n in range(50)
]
ODD = {
    "unknown": {"city": "US/NE/Nowhere", "category": "category:nothing"},
    "no-path": {"city": "US//NE"},
    "no-text": {"city": 5},
    "number": {"category": 5},
    "no-city": {"city": "US/NE"},
    "same": {"city": CITIES[0]},
}
COUNTS = {id_of(CITIES[0]): 7, id_of("US/NE"): 3, "location:nowhere": 2}


@pytest.fixture(scope="module")
def gateway(clade: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shops = [*SHOPS, *[{"id": name, "name": name, **odd} for name, odd in ODD.items()]]
    with gateway_before(clade, tmp_path_factory.mktemp("gateway"), shops=shops, counts=COUNTS) as served:
        yield served


def of_shops(ids, fields):
    """A query for some shops, each under a key of its own."""
    return "{" + " ".join(f's{n}: shop(id: "{one}") {{ {fields} }}' for n, one in enumerate(ids)) + "}"


def test_fifty_shops_with_cities_ancestors_and_categories_cost_one_request_of_the_gateway(gateway):
    fifty = of_shops(range(50), "city { name ancestors { name } } category { name }")
    answer = gateway.ask(fifty)
    assert "errors" not in answer
    assert answer["data"]["s26"] == {
        "city": {"name": "City 20", "ancestors": [{"name": "US"}, {"name": "NY"}]},
        "category": {"name": "Shelf 26"},
    }
    (operation,) = gateway.recorder.operations
    assert operation.coding == b"gzip"
    assert sorted(map(len, operation.representations)) == [50, 50]
    # The ids of 50 categories; then 100 nodes, 3 ancestors of the cities and 2 stamps, by hundreds.
    assert (operation.reads["requests"], operation.reads["rounds"]) == (3, 2)
    assert operation.reads["items"] == 50 + 105


def test_places_that_another_subgraph_counts_have_their_level_s_own_fields_and_the_count(gateway):
    query = "{ busiest { shopCount __typename name ... on City { timezone } ... on State { childCount } } }"
    answer = gateway.ask(query)
    assert answer["data"]["busiest"][:2] == [
        {"shopCount": 7, "__typename": "City", "name": "City 0", "timezone": None},
        {"shopCount": 3, "__typename": "State", "name": "NE", "childCount": 500},
    ]
    (operation,) = gateway.recorder.operations
    assert {one["__typename"] for some in operation.representations for one in some} == {"Location"}


def test_nodes_that_clade_finds_have_the_count_at_every_level(gateway):
    answer = gateway.ask('{ city(path: "US/NE/City 0") { shopCount parent { name } ancestors { shopCount } } }')
    above = [{"shopCount": 0}, {"shopCount": 3}]
    assert answer == {"data": {"city": {"shopCount": 7, "parent": {"name": "NE"}, "ancestors": above}}}


def test_a_place_that_is_not_there_is_null_without_an_error_or_left_out(gateway):
    answer = gateway.ask(of_shops(["unknown", "0"], "city { name } category { name }"))
    assert answer == {
        "data": {
            "s0": {"city": None, "category": None},
            "s1": {"city": {"name": "City 0"}, "category": {"name": "Shelf 0"}},
        }
    }


@pytest.mark.parametrize(
    ("shop", "code"), [("no-path", "BAD_PATH"), ("no-text", "BAD_USER_INPUT"), ("no-city", "WRONG_LEVEL")]
)
def test_a_wrong_key_is_an_error_of_its_own_shop_alone(gateway, shop, code):
    answer = gateway.ask(of_shops(["0", shop, "1"], "city { name }"))
    assert answer["data"] == {
        "s0": {"city": {"name": "City 0"}},
        "s1": {"city": None},
        "s2": {"city": {"name": "City 20"}},
    }
    (error,) = answer["errors"]
    assert error["path"] == ["s1", "city"]
    assert error["extensions"]["code"] == code


def test_an_integer_id_is_accepted_and_finds_nothing(gateway):
    assert gateway.ask(of_shops(["number"], "category { name }")) == {"data": {"s0": {"category": None}}}
    (operation,) = gateway.recorder.operations
    assert operation.representations == [[{"__typename": "Category", "id": 5}]]


def test_a_city_of_two_shops_is_read_once(gateway):
    answer = gateway.ask(of_shops(["0", "same"], "city { name depth }"))
    assert answer["data"]["s0"] == answer["data"]["s1"] == {"city": {"name": "City 0", "depth": 2}}
    (operation,) = gateway.recorder.operations
    assert (operation.reads["requests"], operation.reads["items"]) == (1, 2)


def test_every_package_is_pinned_to_one_version():
    package = json.loads((HERE / "package.json").read_text())
    versions = [one for kind in ("dependencies", "devDependencies", "overrides") for one in package[kind].values()]
    assert [version for version in versions if not version.replace(".", "").isdigit()] == []


def test_names_in_languages_are_asked_for_through_the_gateway(gateway):
    query = """query($languages: [String!]!) { city(path: "US/NE/City 0") {
        name(languages: $languages) literal: name(languages: ["de"]) nameLanguage(languages: $languages)
        names { language text } } }"""
    city = {
        "name": "Stadt 0",
        "literal": "Stadt 0",
        "nameLanguage": "de",
        "names": [{"language": "de", "text": "Stadt 0"}],
    }
    assert gateway.ask(query, languages=["de-AT"]) == {"data": {"city": city}}
