"""What is near a point: nodes, order and distances against brute force, on both stores, compiled and interpreted."""

from random import Random
from typing import Any

import pytest

from graph.execution.operation import Execution
from graph.hierarchies.attribute import attribute
from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from graph.operation.context import Context
from graph.operation.graphql_request import GraphQLRequest
from resolvers.access.grants import Grants
from resolvers.search import near as near_module
from resolvers.session.page_cache import PageCache
from resolvers.session.request import Request
from resolvers.session.tree_version_cache import TreeVersionCache
from store.connect import open_store
from store.edits.create_update import Create, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.search.geometry import Point
from store.writer.writer import Writer
from tests.brute_near import CENTERS, all_nodes, brute, somewhere
from tests.recorded_reads import ReadRecorder
from tests.schemas import schema_of
from tests.selection import examples
from tests.systems.asking import BOUNDLESS, Client, plant

LOCATION = Location.definition()
NEAR = """query($a: Float!, $b: Float!, $k: Float!, $first: Int!, $level: [LocationLevel!], $under: Path) {
  locationsNear(latitude: $a, longitude: $b, kilometers: $k, first: $first, level: $level, under: $under) {
    complete edges { kilometers node { id } } nodes { id } } }"""
RADII = [0.1, 3.0, 50.0, 400.0, 2_000.0]


class Yard(Node, hierarchy="yard", many="yards", search="tree", location="north,east"):
    """A place that is searched one tree at a time."""

    north: float | None = attribute("Latitude.")
    east: float | None = attribute("Longitude.")


class Site(Yard, under=None):
    """A root."""


class Spot(Yard, under=[Site, "self"]):
    """A part of one."""


def world(seed: int, cities: int = 60) -> list[tuple[Any, ...]]:
    """Random countries, states, cities and stores around the centers; some without a place, some with a wrong one."""
    random = Random(seed)  # noqa: S311
    rows: list[tuple[Any, ...]] = []
    for country in ("US", "FJ"):
        rows.append(((country,), "COUNTRY"))
        rows += [((country, state), "STATE") for state in ("A", "B", "C")]
    for number in range(cities):
        path = (random.choice(["US", "FJ"]), random.choice("ABC"), f"c{number}")
        point = somewhere(random, random.choice([*CENTERS, None]))
        values: dict[str, Any] = {"latitude": point.latitude, "longitude": point.longitude}
        if number % 10 == 9:
            values = random.choice([{"latitude": 95.0, "longitude": 1.0}, {"latitude": 1.0}, {}])
        rows.append((path, "CITY", None, values))
        for store in range(random.choice([0, 0, 2])):
            beside = somewhere(random, point, 0.02)
            values = {"latitude": beside.latitude, "longitude": beside.longitude + random.choice([0, 360])}
            values["longitude"] -= 360 if values["longitude"] > 360 else 0
            rows.append(((*path, f"s{store}"), "STORE", None, values))
    return rows


async def check(store: Store, client: Client, random: Random, *, times: int = 8) -> None:
    """Ask for random circles, and compare with brute force."""
    records = await all_nodes(store, "location")
    paths = [record.path for record in records if record.kids]
    for _ in range(times):
        center, kilometers = somewhere(random, random.choice([*CENTERS, None]), 1.0), random.choice(RADII)
        levels = random.choice([None, None, ["CITY"], ["STORE", "COUNTRY"]])
        under = random.choice([(), (), random.choice(paths)])
        first = random.choice([1, 3, 10, 100])
        reply = await client.ask(
            NEAR, a=center.latitude, b=center.longitude, k=kilometers, first=first, level=levels,
            under="/".join(under) or None,
        )  # fmt: skip
        assert not reply.errors
        found = reply.data["locationsNear"]
        expected = brute(records, center, kilometers, first=first, levels=levels, under=under)
        assert found["edges"] == expected
        assert found["nodes"] == [edge["node"] for edge in expected]
        assert found["complete"]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 3))])
async def test_what_is_near_is_what_brute_force_finds(store, seed):
    await plant(store, Location, world(seed))
    await check(store, Client(store, Location), Random(seed), times=25)  # noqa: S311


async def test_cities_of_the_demo_are_found_as_by_brute_force(demo_store):
    random = Random(7)  # noqa: S311
    async with open_store(demo_store) as store:
        client = Client(store, Location, budget=BOUNDLESS, page_cache=lambda: PageCache(0, TreeVersionCache(0.0)))
        records = await all_nodes(store, "location")
        cities = [record.attributes for record in records if record.level == "CITY"]
        for number in range(examples(10, 35)):
            city = random.choice(cities)
            center = somewhere(random, Point(city["latitude"], city["longitude"]), 0.3) if number % 3 else None
            center = center or somewhere(random)
            kilometers = [0.1, 5.0, 50.0, 300.0, 2_000.0][number % 5]
            reply = await client.ask(NEAR, a=center.latitude, b=center.longitude, k=kilometers, first=10)
            assert reply.data["locationsNear"]["edges"] == brute(records, center, kilometers)
            assert reply.data["locationsNear"]["complete"]
            assert reply.requests <= 9
            assert reply.rounds <= 3  # the first has the index of the search items


async def test_nodes_are_found_after_edits_of_them_and_of_what_lies_above(store):
    random = Random(5)  # noqa: S311
    await plant(store, Location, world(5, 40))
    client, writer = Client(store, Location), Writer(store, hierarchies={"location": LOCATION})

    async def edit(edit: Any) -> None:
        await writer.write(edit, ReadUsage())

    cities = [record for record in await all_nodes(store, "location") if record.level == "CITY"]
    for city in cities[:6]:
        point = somewhere(random, random.choice(CENTERS))
        values = {"latitude": point.latitude, "longitude": point.longitude}
        await edit(Update(LOCATION, city.path, None, None, values, None))
    await edit(Update(LOCATION, cities[7].path, None, None, {"latitude": None}, None))
    await edit(Create(LOCATION, ("US", "new"), "CITY", "new", {"latitude": 89.99, "longitude": -3.5}, None))
    await edit(Delete(LOCATION, cities[8].path, Policy.CASCADE, None))
    await check(store, client, random)
    await edit(Move(LOCATION, ("US", "A"), ("US", "Z"), None))
    await check(store, client, random)
    await edit(Move(LOCATION, ("FJ", "B"), ("US", "Y"), None))
    await edit(Update(LOCATION, ("US", "Y"), "Ypsilon", None, {}, None))
    await check(store, client, random, times=12)


async def test_one_search_takes_two_rounds_and_the_index_once_a_second(store, exact):
    await plant(store, Location, world(1))
    now = 0.0
    client = Client(store, Location, page_cache=lambda: PageCache(1_000_000, TreeVersionCache(0.0, clock=lambda: now)))
    for center in CENTERS:
        for kilometers in RADII:
            now += 10
            for has_index in (False, True):
                reply = await client.ask(NEAR, a=center.latitude, b=center.longitude, k=kilometers, first=10)
                hits = bool(reply.data["locationsNear"]["nodes"])
                assert reply.requests <= (8 if has_index else 9)
                assert reply.rounds <= (1 if has_index else 2) + hits


async def test_ancestors_of_the_hits_are_those_of_both_ways(store):
    await plant(store, Location, world(2))
    query = """query($a: Float!, $b: Float!, $k: Float!) {
      locationsNear(latitude: $a, longitude: $b, kilometers: $k) { nodes { id ancestors { path } } } }"""
    client = Client(store, Location)
    for center in CENTERS:
        values = {"a": center.latitude, "b": center.longitude, "k": 400.0}
        reply = await client.ask_once(query, values, client.plans)
        plain = await client.ask_once(query, values, None)
        assert reply.data == plain.data
        for node in reply.data["locationsNear"]["nodes"]:
            assert node["ancestors"][0]["path"] in ("US", "FJ")


async def ask_with(store: Store, classes: list[type[Node]], query: str, grants: Grants | None, **variables: Any) -> Any:
    schema, types = schema_of(*classes)
    recorder = ReadRecorder(store)
    request = Request(recorder, {cls.name: cls.definition() for cls in classes}, grants=grants)
    execution = Execution(schema, lambda: Context(request, types))
    answer = await execution.answer(GraphQLRequest(query, variables), allow_mutations=False, report_reads=True)
    return answer.body


async def test_a_caller_learns_nothing_of_what_is_hidden(store_url, tmp_path):
    """A table with more nodes that are hidden gives the same answers by the same reads."""
    random = Random(11)  # noqa: S311
    rows = world(11)
    visible = [row for row in rows if row[0][0] == "US" and row[0][1:2] in ((), ("A",))]
    granted = [("US", "A")]
    grants = Grants.of([("location", path) for path in granted], [])
    async with open_store(store_url) as full, open_store(f"sqlite:///{tmp_path / 'part.db'}") as part:
        for store, planted in ((full, rows), (part, visible)):
            await store.create()
            await plant(store, Location, planted)
        nodes = await all_nodes(full, "location")
        for number in range(20):
            center, kilometers = somewhere(random, random.choice(CENTERS), 1.0), random.choice(RADII)
            values: dict[str, Any] = {"a": center.latitude, "b": center.longitude, "k": kilometers, "first": 5}
            values |= {"level": None, "under": random.choice([None, "US", "US/A", "US/B", "FJ", "nowhere"])}
            found = await ask_with(full, [Location], NEAR, grants, **values)
            other = await ask_with(part, [Location], NEAR, grants, **values)
            assert [edge["kilometers"] for edge in found["data"]["locationsNear"]["edges"]] == [
                edge["kilometers"] for edge in other["data"]["locationsNear"]["edges"]
            ], number
            assert found["data"]["locationsNear"]["complete"] is other["data"]["locationsNear"]["complete"] is True
            if values["under"] in (None, "US", "US/A"):
                under = () if values["under"] != "US/A" else ("US", "A")
                expected = brute(nodes, center, kilometers, first=5, under=under, granted=granted)
                assert found["data"]["locationsNear"]["edges"] == expected
            else:
                assert found["data"]["locationsNear"]["edges"] == []
            if store_url.startswith("sqlite"):
                assert found["extensions"]["reads"]["requests"] == other["extensions"]["reads"]["requests"]


async def test_a_range_that_is_cut_is_not_complete_unless_the_hits_are_nearer(store, monkeypatch):
    monkeypatch.setattr(near_module, "MAX_ITEMS", 5)
    center = Point(10.0, 20.0)
    rows: list[tuple[Any, ...]] = [(("US",), "COUNTRY")]
    rows += [(("US", f"c{n}"), "CITY", None, {"latitude": 10.0 + n / 50, "longitude": 20.0}) for n in range(60)]
    await plant(store, Location, rows)
    records, client = await all_nodes(store, "location"), Client(store, Location)
    seen = set()
    for kilometers in (1.0, 30.0, 100.0, 300.0):
        for first in (1, 3, 10):
            reply = await client.ask(NEAR, a=center.latitude, b=center.longitude, k=kilometers, first=first)
            found = reply.data["locationsNear"]
            right = found["edges"] == brute(records, center, kilometers, first=first)
            assert right or not found["complete"]
            seen.add((found["complete"], right))
    assert {(True, True), (False, False)} <= seen


async def test_each_tree_is_searched_by_itself_where_its_class_says_so(store):
    random = Random(3)  # noqa: S311
    rows: list[tuple[Any, ...]] = []
    for site in "abc":
        rows.append(((site,), "SITE"))
        rows += [((site, part), "SPOT") for part in "xy"]
        for number in range(20):
            point = somewhere(random, CENTERS[0], 0.5)
            values = {"north": point.latitude, "east": point.longitude}
            rows.append(((site, random.choice("xy"), f"{number}"), "SPOT", None, values))
    await plant(store, Yard, rows)
    yard = Yard.definition()
    writer = Writer(store, hierarchies={"yard": yard})
    await writer.write(Move(yard, ("b", "x"), ("a", "z"), None), ReadUsage())
    client = Client(store, Yard)
    query = """query($u: Path) { yardsNear(latitude: 41.2587, longitude: -95.9379, kilometers: 40, under: $u, first: 50)
      { complete edges { kilometers node { path } } } }"""
    records = await all_nodes(store, "yard")
    for under in ("a", "b", "c", "a/z", "a/x"):
        reply = await client.ask(query, u=under)
        found = reply.data["yardsNear"]
        expected = []
        for record in records:
            if "/".join(record.path).startswith(f"{under}/") and "north" in record.attributes:
                values = record.attributes
                distance = CENTERS[0].kilometers(Point(values["north"], values["east"]))
                expected += [(distance, record.id, "/".join(record.path))] if distance <= 40 else []
        edges = [{"kilometers": one, "node": {"path": path}} for one, _, path in sorted(expected)]
        assert found["edges"] == edges
        assert found["complete"]
    reply = await Client(store, Yard, planned=False).ask(query, u=None)
    assert "is searched separately" in reply.errors[0]["message"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("latitude: 91, longitude: 0", "latitude is 91 and longitude 0; latitude is from -90 to 90 degrees"),
        ("latitude: 0, longitude: 400", "longitude from -360 to 360"),
        ("latitude: 0, longitude: 0, kilometers: 2000.1", "kilometers is 2000.1; it must be 0 to 2,000."),
        ("latitude: 0, longitude: 0, kilometers: -1", "kilometers is -1"),
        ("latitude: 0, longitude: 0, first: 101", "first is 101; a search returns 0 to 100 nodes."),
    ],
)
async def test_arguments_out_of_bounds_are_refused_before_anything_is_read(store, arguments, message):
    client = Client(store, Location, planned=False)
    reply = await client.ask(f"{{ locationsNear({arguments}) {{ complete }} }}")
    assert message in reply.errors[0]["message"]
    assert reply.requests == 0


async def test_kilometers_may_be_zero(store):
    await plant(
        store, Location, [(("US",), "COUNTRY"), (("US", "x"), "CITY", None, {"latitude": 12.5, "longitude": 180.0})]
    )
    query = "{ locationsNear(latitude: 12.5, longitude: -180, kilometers: 0) { edges { kilometers } complete } }"
    reply = await Client(store, Location).ask(query)
    assert reply.data == {"locationsNear": {"edges": [{"kilometers": 0.0}], "complete": True}}
