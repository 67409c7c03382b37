"""What is near a point: nodes, order and distances against brute force, on both stores."""

import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from graph.hierarchies.attribute import attribute
from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from resolvers.session.cache import PageCache, TreeVersionCache
from store.checking.check import Check
from store.engine import ReadUsage, Store
from store.model.hierarchy import Hierarchy
from store.model.keys import Path
from store.model.paths import format_path, parse_path
from store.model.records import Record
from store.model.values import NO_RULES
from store.search.cells import Point
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests.resolvers.search.test_searches import all_records
from tests.rights.asking import Server, caller
from tests.systems.asking import Client, plant

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


CENTERS = [
    Point(41.2587, -95.9379), Point(89.9, 12.0), Point(-89.95, -170.0), Point(-16.8, 179.98), Point(0.0, -180.0),
    Point(35.2643896828, 45.0), Point(52.52, 13.405),
]  # fmt: skip
"""A city, both poles, the date line, a corner of the cube behind the cells, and another city."""


def somewhere(random: Random, center: Point | None = None, degrees: float = 3.0) -> Point:
    """A random point around one of the centers, or anywhere."""
    if center is None:
        return Point(math.degrees(math.asin(random.uniform(-1, 1))), random.uniform(-180, 179.9))
    latitude = max(-90.0, min(90.0, center.latitude + random.uniform(-degrees, degrees)))
    narrow = max(0.05, math.cos(math.radians(latitude)))
    found = Point.of(latitude, (center.longitude + random.uniform(-degrees, degrees) / narrow + 180) % 360 - 180)
    assert found is not None
    return found


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


class Ruleless:
    """A class as it was when its attributes had no rules, so that values are stored which break them now."""

    def __init__(self, cls: type[Node]) -> None:
        self._now = cls.definition()

    def definition(self) -> Hierarchy:
        levels = {
            name: replace(
                level, attributes={key: replace(one, rules=NO_RULES) for key, one in level.attributes.items()}
            )
            for name, level in self._now.levels.items()
        }
        return replace(self._now, levels=levels)


FORMER: Any = Ruleless(Location)


def brute(records: list[Record], center: Point, kilometers: float, first: int) -> list[dict[str, Any]]:
    """The edges of the right answer, each with `kilometers` and the `id` of the node."""
    found = []
    for record in records:
        latitude, longitude = record.attributes.get("latitude"), record.attributes.get("longitude")
        is_placed = isinstance(latitude, int | float) and isinstance(longitude, int | float)
        point = Point.of(latitude, longitude) if is_placed else None
        if point is not None and (distance := center.kilometers(point)) <= kilometers:
            found.append((distance, record.id))
    return [{"kilometers": distance, "node": {"id": node_id}} for distance, node_id in sorted(found)[:first]]


def is_below(record: Record, top: Path) -> bool:
    return len(record.path) > len(top) and record.path[: len(top)] == top


async def test_what_is_near_is_what_a_scan_finds(store):
    random = Random(5)  # noqa: S311
    await plant(store, FORMER, world(5))
    records, client = await all_records(store, "location"), Client(store, Location)
    paths = [record.path for record in records if record.kids]
    for _ in range(25):
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
        searched = [one for one in records if is_below(one, under) and one.level in (levels or [one.level])]
        expected = brute(searched, center, kilometers, first)
        assert found["edges"] == expected
        assert found["nodes"] == [edge["node"] for edge in expected]
        assert found["complete"]


async def test_one_search_takes_two_rounds_and_the_index_once_a_second(store, exact):
    await plant(store, FORMER, world(1))
    now = 0.0
    client = Client(store, Location, page_cache=PageCache(1_000_000, TreeVersionCache(0.0, clock=lambda: now)))
    for center in CENTERS:
        for kilometers in RADII:
            now += 10
            for has_index in (False, True):
                reply = await client.ask(NEAR, a=center.latitude, b=center.longitude, k=kilometers, first=10)
                hits = bool(reply.data["locationsNear"]["nodes"])
                assert reply.requests <= (8 if has_index else 9)
                assert reply.rounds <= (1 if has_index else 2) + hits


async def test_a_caller_finds_what_is_near_in_her_part(store):
    await plant(store, FORMER, world(11))
    records, who = await all_records(store, "location"), caller("read:location/US/A")
    server = Server(store, Location)
    for center in CENTERS:
        for under in (None, "US", "US/A", "US/B", "FJ", "nowhere"):
            values = {"a": center.latitude, "b": center.longitude, "k": 400.0, "first": 5, "under": under}
            found = (await server.data(who, NEAR, **values))["locationsNear"]
            expected = brute([one for one in records if is_below(one, ("US", "A"))], center, 400.0, 5)
            assert found["edges"] == (expected if under in (None, "US/A") else [])
            assert found["complete"]


async def test_of_more_nodes_than_are_read_the_nearest_are_complete_only_where_that_is_proven(store):
    rows: list[tuple[Any, ...]] = [(("US",), "COUNTRY")]
    latitudes = [10 + n / 50 for n in range(60)] + [9.9 + n / 9_000_000 for n in range(6_050)]  # most lie in one cell
    rows += [(("US", f"c{n}"), "CITY", None, {"latitude": one, "longitude": 20.0}) for n, one in enumerate(latitudes)]
    await plant(store, Location, rows)
    records, client = await all_records(store, "location"), Client(store, Location)
    seen = set()
    for latitude in (9.9, 10.0, 10.5):
        for kilometers in (30.0, 300.0):
            for first in (1, 10, 100):
                reply = await client.ask(NEAR, a=latitude, b=20.0, k=kilometers, first=first)
                found = reply.data["locationsNear"]
                right = found["edges"] == brute(records, Point(latitude, 20.0), kilometers, first)
                assert right or not found["complete"]
                seen.add((found["complete"], right))
    assert {(True, True), (False, False)} <= seen, seen


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
    writer = Writer(store)
    await writer.write(Move(yard, ("b", "x"), ("a", "z"), None), ReadUsage())
    client = Client(store, Yard)
    query = """query($u: Path) { yardsNear(latitude: 41.2587, longitude: -95.9379, kilometers: 40, under: $u, first: 50)
      { complete edges { kilometers node { path } } } }"""
    records = await all_records(store, "yard")
    for under in ("a", "b", "c", "a/z", "a/x"):
        found = (await client.ask(query, u=under)).data["yardsNear"]
        expected = []
        for record in records:
            if is_below(record, parse_path(under)) and "north" in record.attributes:
                distance = CENTERS[0].kilometers(Point(record.attributes["north"], record.attributes["east"]))
                expected += [(distance, record.id, format_path(record.path))] if distance <= 40 else []
        edges = [{"kilometers": one, "node": {"path": path}} for one, _, path in sorted(expected)]
        assert found == {"complete": True, "edges": edges}
    reply = await Client(store, Yard).ask(query, u=None)
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
    client = Client(store, Location)
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


CREATED = """mutation($site: SiteAttributes!) {
  createYard(input: {key: "new", name: "New", attributes: {site: $site}}, dryRun: true) { node { id } } }"""
BOUNDS = "{ hierarchies { levels { attributes { minimum maximum } } } }"
BEYOND = [
    ({"north": 90.0, "east": -180.0}, None), ({"north": 141.0}, "north: 141.0 is more than the maximum 90"),
    ({"north": -90.5}, "is less than the minimum -90"), ({"east": 500.0}, "east: 500.0 is more than the maximum 180"),
]  # fmt: skip


async def test_coordinates_have_the_bounds_of_the_earth_and_stored_ones_beyond_are_read_and_not_found(store: Store):
    former: Any = Ruleless(Yard)
    await plant(store, former, [(("a",), "SITE", "a", {"north": 141.0, "east": 500.0}), (("b",), "SITE", "b", {})])
    server, who = Server(store, Yard), caller("write:yard")
    (yard,) = (await server.data(who, BOUNDS))["hierarchies"]
    bounds = [(one["minimum"], one["maximum"]) for one in yard["levels"][0]["attributes"]]
    assert bounds == [("-90.0", "90.0"), ("-180.0", "180.0")]
    for site, sentence in BEYOND:
        messages = [one["message"] for one in (await server.write(who, CREATED, site=site)).get("errors", [])]
        assert len(messages) == (sentence is not None)
        assert not sentence or sentence in messages[0]
    near = 'yardsNear(latitude: 39, longitude: 140, kilometers: 2000, under: "%s") { nodes { id } }'
    found = await server.data(who, f'{{ site(path: "a") {{ north east }} a: {near % "a"} b: {near % "b"} }}')
    assert found == {"site": {"north": 141.0, "east": 500.0}, "a": {"nodes": []}, "b": {"nodes": []}}
    check = Check(store, {"yard": Yard.definition()}, "")
    assert [one async for one in check.findings()] == []
    assert check.undefined["yard"].sentences() == [
        "yard: 1 node of SITE has a value of east that is more than the maximum 180.0, such as a.",
        "yard: 1 node of SITE has a value of north that is more than the maximum 90.0, such as a.",
    ]
