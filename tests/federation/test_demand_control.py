"""Demand control: declared costs against what the demo data takes to read."""

import statistics
from typing import Any

import httpx
import pytest

from graph.federation import ARGUMENTS, CHANGES, SEARCH

SEARCHED = "query($text: String!) { searchLocations(text: $text) { nodes { id } } }"
NEARBY = "query($near: NearCondition!) { locations(level: CITY, first: 10, where: {near: $near}) { nodes { id } } }"
CHANGED = "query($tree: Path!) { changes(hierarchy: LOCATION, tree: $tree) { hasMore } }"
CITIES = """{ locations(where: {key: {in: ["US", "DE", "BR"]}}) { nodes {
  descendants(level: CITY) { nodes { name latitude longitude } } } } }"""
TREES = "{ locations%s { nodes { path descendantCount childCount } } }"
PAGE = 10
UNITS_OF_HIT = 0.5
BELOW_ROOTS = "{ locations(first: 120) { nodes { children(first: 10%s) { nodes { id } } } } }"


class Costs:
    """Costs of requests to a server with the demo data."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=60)

    def ask(self, query: str, **variables: Any) -> tuple[Any, dict[str, Any]]:
        """The data, and `extensions.reads`."""
        sent = {"query": query, "variables": variables}
        answer = self._client.post("/graphql", json=sent, headers={"clade-reads": "1"}).json()
        assert "errors" not in answer, answer
        return answer["data"], answer["extensions"]["reads"]

    def units(self, query: str, **variables: Any) -> float:
        """The read units beyond those of the nodes that are returned."""
        data, reads = self.ask(query, **variables)
        (found,) = data.values()
        return max(0.0, reads["units"] - UNITS_OF_HIT * len(found.get("nodes", ())))


@pytest.fixture(scope="module")
def costs(demo_server: str) -> Costs:
    return Costs(demo_server)


@pytest.fixture(scope="module")
def cities(costs: Costs) -> list[dict[str, Any]]:
    """Cities of three large countries, from all of their lists."""
    data, _ = costs.ask(CITIES)
    return [city for country in data["locations"]["nodes"] for city in country["descendants"]["nodes"][::300]]


def is_near(weight: float, measured: list[float]) -> bool:
    """Whether a weight lies within a factor of two of the mean."""
    assert len(measured) >= 20
    return statistics.mean(measured) / 2 <= weight <= statistics.mean(measured) * 2


@pytest.mark.thorough
def test_a_search_costs_what_beginnings_of_one_to_four_letters_read(costs, cities):
    texts = [city["name"][:length] for city in cities for length in (1, 2, 3, 4)]
    assert is_near(SEARCH, [costs.units(SEARCHED, text=text) for text in texts])


@pytest.mark.thorough
def test_a_list_near_a_point_costs_what_filtered_lists_do(costs, cities):
    points = [{name: city[name] for name in ("latitude", "longitude")} for city in cities]
    circles = [costs.units(NEARBY, near=point | {"kilometers": km}) for point in points for km in (50.0, 200.0)]
    assert is_near(ARGUMENTS["where"], circles)


def test_changes_cost_what_the_logs_of_large_trees_read(costs):
    roots = sorted(costs.ask(TREES % "")[0]["locations"]["nodes"], key=lambda root: -root["descendantCount"])
    assert is_near(CHANGES, [costs.units(CHANGED, tree=root["path"]) for root in roots[:50]])


@pytest.mark.parametrize(
    ("name", "arranged"),
    [
        ("orderBy", BELOW_ROOTS % ", orderBy: [{field: NAME}]"),
        ("where", BELOW_ROOTS % ', where: {name: {ne: ""}}'),
        ("fields", (BELOW_ROOTS % "").replace("nodes { id }", "nodes { id } facets(fields: CODE) { field }")),
    ],
)
def test_order_and_condition_cost_the_nodes_of_the_list_outside_of_the_page(costs, name, arranged):
    roots = costs.ask(TREES % "(first: 120)")[0]["locations"]["nodes"]
    (_, plain), (_, arranged) = costs.ask(BELOW_ROOTS % ""), costs.ask(arranged)
    beyond = [root["childCount"] - PAGE for root in roots if root["childCount"] > PAGE]
    assert abs(arranged["items"] - plain["items"] - sum(beyond)) <= len(beyond), "a page reads one node ahead"
    assert is_near(ARGUMENTS[name], beyond)
