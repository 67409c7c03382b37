"""Demand control: declared costs against what the demo data takes to read, and a gateway that enforces them."""

import statistics
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from graph.app import create_app
from graph.federation.demand_control import ARGUMENTS, CHANGES, NEAR, SEARCH
from tests.federation.conftest import Served, gateway_before, needs_npm
from tests.federation.recorder import Recorder
from tests.serving import serving

SEARCHED = "query($text: String!) { searchLocations(text: $text) { nodes { id } } }"
NEARBY = """query($latitude: Float!, $longitude: Float!) {
  locationsNear(latitude: $latitude, longitude: $longitude) { nodes { id } } }"""
CIRCLE = NEARBY.replace("!) {", "!, $km: Float!) {").replace("$longitude) {", "$longitude, kilometers: $km) {")
CHANGED = "query($tree: Path!) { changes(hierarchy: LOCATION, tree: $tree) { hasMore } }"
CITIES = """{ locations(where: {key: {in: ["US", "DE", "BR"]}}) { nodes {
  descendants(level: CITY) { nodes { name latitude longitude } } } } }"""
TREES = "{ locations%s { nodes { path descendantCount childCount } } }"
PAGE = 10
UNITS_OF_HIT = 0.5
BELOW_ROOTS = "{ locations(first: 120) { nodes { children(first: 10%s) { nodes { id } } } } }"
MAX_COST = 120


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


def test_a_search_costs_what_beginnings_of_one_to_four_letters_read(costs, cities):
    texts = [city["name"][:length] for city in cities for length in (1, 2, 3, 4)]
    assert is_near(SEARCH, [costs.units(SEARCHED, text=text) for text in texts])


@pytest.mark.thorough
def test_a_search_near_a_point_costs_more_with_a_radius(costs, cities):
    points = [{name: city[name] for name in ("latitude", "longitude")} for city in cities]
    assert is_near(NEAR, [costs.units(NEARBY, **point) for point in points])
    circles = [costs.units(CIRCLE, **point, km=km) for point in points for km in (200.0, 500.0, 1000.0, 2000.0)]
    assert is_near(NEAR + ARGUMENTS["kilometers"], circles)


def test_changes_cost_what_the_logs_of_large_trees_read(costs):
    roots = sorted(costs.ask(TREES % "")[0]["locations"]["nodes"], key=lambda root: -root["descendantCount"])
    assert is_near(CHANGES, [costs.units(CHANGED, tree=root["path"]) for root in roots[:50]])


@pytest.mark.parametrize(
    ("name", "argument"), [("orderBy", "orderBy: [{field: NAME}]"), ("where", 'where: {name: {ne: ""}}')]
)
def test_order_and_condition_cost_the_nodes_of_the_list_outside_of_the_page(costs, name, argument):
    roots = costs.ask(TREES % "(first: 120)")[0]["locations"]["nodes"]
    (_, plain), (_, arranged) = costs.ask(BELOW_ROOTS % ""), costs.ask(BELOW_ROOTS % f", {argument}")
    beyond = [root["childCount"] - PAGE for root in roots if root["childCount"] > PAGE]
    assert abs(arranged["items"] - plain["items"] - sum(beyond)) <= len(beyond), "a page reads one node ahead"
    assert is_near(ARGUMENTS[name], beyond)


# -- a gateway ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gateway(demo_store: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with demand control before Clade with the demo data."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"STORE": demo_store, "CACHE_MB": "0"}.items():
            patch.setenv(f"CLADE_{name}", value)
        recorder = Recorder(create_app())
    folder = tmp_path_factory.mktemp("demand")
    with (
        serving(recorder) as url,
        gateway_before(Served(f"{url}/graphql", recorder), folder, max_cost=MAX_COST, shops=[]) as served,
    ):
        yield served


def objects(data: Any) -> int:
    """Number of objects of a response that cost 1: nodes, and what holds a list of them."""
    if isinstance(data, list):
        return sum(map(objects, data))
    if not isinstance(data, dict):
        return 0
    free = {"pageInfo", "names"}
    below = sum(objects(value) for key, value in data.items() if key not in free)
    return below + (data.keys() != {"node"} and data.keys() != {"kilometers", "node"})


@pytest.mark.thorough
@needs_npm
@pytest.mark.parametrize(
    ("query", "extra"),
    [
        ('{ city(path: "US/NE/Omaha") { name names { text } } }', 0),
        ('{ country(path: "US") { children(first: 10) { nodes { name } } } }', 0),
        ('{ country(path: "US") { children(first: 10) { edges { node { name } } pageInfo { hasNextPage } } } }', 0),
        ('{ country(path: "US") { descendants(last: 30, level: CITY) { nodes { id } totalCount } } }', 0),
        (
            '{ country(path: "US") { children(last: 5) { nodes { parent { children(last: 9) { nodes { id } } } } } } }',
            0,
        ),
        ("{ locations(first: 10, orderBy: [{field: NAME}]) { nodes { id } } }", ARGUMENTS["orderBy"]),
        ('{ searchLocations(text: "san") { nodes { name } complete } }', SEARCH),
        ('{ searchLocations(text: "san", first: 25) { nodes { name } complete } }', SEARCH),
        ("{ locationsNear(latitude: 51, longitude: 7) { edges { kilometers node { name } } } }", NEAR),
        (
            "{ locationsNear(latitude: 51, longitude: 7, kilometers: 500, first: 20) { nodes { name } } }",
            NEAR + ARGUMENTS["kilometers"],
        ),
    ],
)
def test_the_gateway_estimates_the_nodes_of_full_pages_and_what_their_reads_cost(gateway, query, extra):
    answer = gateway.ask(query)
    assert "errors" not in answer
    estimated = answer["extensions"]["cost"]["estimated"]
    assert estimated == objects(answer["data"]) - 1 + extra  # without the response itself
    (operation,) = gateway.recorder.operations
    assert operation.reads["units"] <= 2 * estimated, "a node and the version of its tree"


@pytest.mark.thorough
@needs_npm
def test_the_gateway_rejects_a_query_above_the_limit_without_a_request_to_clade(gateway):
    query = '{ country(path: "US") { children(first: %d) { nodes { name } } } }'
    answer = gateway.ask(query % (MAX_COST - 2))
    assert (answer["extensions"]["cost"]["estimated"], "errors" in answer) == (MAX_COST, False)
    assert len(gateway.recorder.operations) == 1
    refused = gateway.ask(query % (MAX_COST - 1))
    (error,) = refused["errors"]
    assert error["extensions"]["code"] == "COST_ESTIMATED_TOO_EXPENSIVE"
    assert gateway.recorder.operations == []


@pytest.mark.thorough
@needs_npm
def test_the_gateway_counts_a_list_without_first_as_one_node_and_ignores_costs_on_interfaces(gateway):
    """What the guide says that this gateway underestimates, so that Clade's own limits stay set."""
    whole = gateway.ask('{ country(path: "US") { children { nodes { id } } } }')
    assert whole["extensions"]["cost"]["estimated"] == 3
    assert len(whole["data"]["country"]["children"]["nodes"]) > 50
    sorted_page = '(path: "US") { children(first: 10, orderBy: [{field: NAME}]) { nodes { id } } } }'
    found = [gateway.ask(f"{{ {field}{sorted_page}") for field in ("country", "location")]
    assert [one["extensions"]["cost"]["estimated"] for one in found] == [62, 12]
