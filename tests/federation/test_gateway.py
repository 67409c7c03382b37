"""Clade behind a gateway, beside a subgraph that keeps its nodes by path and by id."""

from collections.abc import Iterator

import pytest

from tests.federation.conftest import Served, gateway_before, needs_npm
from tests.federation.places import CATEGORIES, CITIES, id_of

pytestmark = needs_npm

SHOPS = [
    {"id": f"{n}", "name": f"Shop {n}", "city": CITIES[n * 20], "category": id_of(CATEGORIES[n])} for n in range(50)
]
ODD = {
    "unknown": {"city": "US/NE/Nowhere", "category": "category:nothing"},
    "no-path": {"city": "US//NE"},
}


@pytest.fixture(scope="module")
def gateway(clade: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shops = [*SHOPS, *[{"id": name, "name": name, **odd} for name, odd in ODD.items()]]
    with gateway_before(clade, tmp_path_factory.mktemp("gateway"), shops=shops) as served:
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


def test_a_place_that_is_not_there_is_null_and_a_wrong_key_is_an_error_of_its_own_shop_alone(gateway):
    answer = gateway.ask(of_shops(["0", "no-path", "unknown"], "city { name } category { name }"))
    shops = [(shop["city"], shop["category"]) for shop in answer["data"].values()]
    assert shops == [({"name": "City 0"}, {"name": "Shelf 0"}), (None, None), (None, None)]
    (error,) = answer["errors"]
    assert (error["path"], error["extensions"]["code"]) == (["s1", "city"], "BAD_PATH")
