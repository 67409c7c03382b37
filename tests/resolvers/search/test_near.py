"""What is near a point: nodes, order and distances against brute force, on both stores."""

import itertools
import math
from random import Random
from typing import Any

from graph.hierarchies.attribute import attribute
from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from resolvers.search import near
from resolvers.session.cache import PageCache, TreeVersionCache
from store.checking.check import Check
from store.engine import ReadUsage, Store
from store.model.keys import Path, node_key
from store.model.records import Put, Record
from store.search.cells import Point
from store.writing.move_delete import Move
from store.writing.writer import Writer
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


def world(seed: int) -> list[tuple[Any, ...]]:
    """Two countries with random cities around the centers, each with a store beside it; some without a place."""
    random = Random(seed)  # noqa: S311
    rows: list[tuple[Any, ...]] = [(("US",), "COUNTRY"), (("FJ",), "COUNTRY")]
    for number in range(60):
        path, point = (random.choice(["US", "FJ"]), f"c{number}"), somewhere(random, random.choice([*CENTERS, None]))
        beside = somewhere(random, point, 0.02)
        values = {"latitude": point.latitude, "longitude": point.longitude}
        rows.append((path, "CITY", None, values if number % 10 else random.choice([{"latitude": 1.0}, {}])))
        rows.append(((*path, "s"), "STORE", None, {"latitude": beside.latitude, "longitude": beside.longitude}))
    return rows


async def places(store: Store, *attributes: str) -> list[tuple[Path, str, str, Point]]:
    """The path, id and level of each node with a place, and its place."""
    items = [item async for page in store.scan(ReadUsage()) for item in page if "tier" in item]
    found = [(Record.of(item), [item.get(name) for name in attributes]) for item in items]
    return [(one.path, one.id, one.level, Point(*at)) for one, at in found if None not in at]


def nearest(found: list[tuple[Path, str, str, Point]], center: Point, kilometers: float, first: int) -> list[Any]:
    """The edges of the right answer."""
    far = sorted((center.kilometers(point), node_id) for _, node_id, _, point in found)
    return [{"kilometers": one, "node": {"id": node_id}} for one, node_id in far if one <= kilometers][:first]


async def test_what_is_near_is_what_a_scan_finds(store):
    random = Random(5)  # noqa: S311
    await plant(store, Location, world(5))
    placed, client = await places(store, "latitude", "longitude"), Client(store, Location)
    for _ in range(25):
        center, kilometers = somewhere(random, random.choice([*CENTERS, None]), 1.0), random.choice(RADII)
        levels = random.choice([None, None, ["CITY"], ["STORE", "COUNTRY"]])
        under: Path = random.choice([(), (), random.choice([path[:-1] for path, *_ in placed])])
        first = random.choice([1, 3, 10, 100])
        reply = await client.ask(
            NEAR, a=center.latitude, b=center.longitude, k=kilometers, first=first, level=levels,
            under="/".join(under) or None,
        )  # fmt: skip
        assert not reply.errors
        searched = [one for one in placed if one[0][:-1][: len(under)] == under and one[2] in (levels or [one[2]])]
        expected = nearest(searched, center, kilometers, first)
        nodes = [edge["node"] for edge in expected]
        assert reply.data["locationsNear"] == {"edges": expected, "nodes": nodes, "complete": True}


async def test_one_search_takes_two_rounds_and_the_index_once_a_second(store, exact):
    await plant(store, Location, world(1))
    now = 0.0
    client = Client(store, Location, page_cache=PageCache(1_000_000, TreeVersionCache(0.0, clock=lambda: now)))
    for center, kilometers in zip(CENTERS, itertools.cycle(RADII), strict=False):
        now += 10
        for has_index in (False, True):
            reply = await client.ask(NEAR, a=center.latitude, b=center.longitude, k=kilometers, first=10)
            hits = bool(reply.data["locationsNear"]["nodes"])
            assert reply.requests <= (8 if has_index else 9)
            assert reply.rounds <= (1 if has_index else 2) + hits


async def test_of_more_nodes_than_are_read_the_nearest_are_complete_only_where_that_is_proven(store, monkeypatch):
    monkeypatch.setattr(near, "MAX_ITEMS", 200)
    rows: list[tuple[Any, ...]] = [(("US",), "COUNTRY")]
    latitudes = [10 + n / 50 for n in range(60)] + [9.9 + n / 300_000 for n in range(250)]  # most lie in one cell
    rows += [(("US", f"c{n}"), "CITY", None, {"latitude": one, "longitude": 20.0}) for n, one in enumerate(latitudes)]
    await plant(store, Location, rows)
    placed, client = await places(store, "latitude", "longitude"), Client(store, Location)
    seen = set()
    for latitude, kilometers, first in itertools.product((9.9, 10.0, 10.5), (30.0, 300.0), (1, 10, 100)):
        found = (await client.ask(NEAR, a=latitude, b=20.0, k=kilometers, first=first)).data["locationsNear"]
        right = found["edges"] == nearest(placed, Point(latitude, 20.0), kilometers, first)
        assert right or not found["complete"]
        seen.add((found["complete"], right))
    assert {(True, True), (False, False)} <= seen, seen


async def test_each_tree_is_searched_by_itself_where_its_class_says_so(store):
    random = Random(3)  # noqa: S311
    rows: list[tuple[Any, ...]] = [((site,), "SITE") for site in "abc"]
    rows += [((site, part), "SPOT") for site in "abc" for part in "xy"]
    for number in range(60):
        point = somewhere(random, CENTERS[0], 0.5)
        path = (random.choice("abc"), random.choice("xy"), f"{number}")
        rows.append((path, "SPOT", None, {"north": point.latitude, "east": point.longitude}))
    await plant(store, Yard, rows)
    await Writer(store).write(Move(Yard.definition(), ("b", "x"), ("a", "z"), None), ReadUsage())
    client, placed = Client(store, Yard), await places(store, "north", "east")
    query = """query($u: Path) { yardsNear(latitude: 41.2587, longitude: -95.9379, kilometers: 40, under: $u, first: 50)
      { complete edges { kilometers node { id } } } }"""
    for under in ("a", "b", "c", "a/z", "a/x"):
        below = [one for one in placed if "/".join(one[0]).startswith(f"{under}/")]
        found = (await client.ask(query, u=under)).data["yardsNear"]
        assert found == {"complete": True, "edges": nearest(below, CENTERS[0], 40, 50)}
    (error,) = (await client.ask(query, u=None)).errors
    assert "is searched separately" in error["message"]


REFUSED = {
    "latitude: 91, longitude: 0": "latitude is 91 and longitude 0; latitude is from -90 to 90 degrees",
    "latitude: 0, longitude: 400": "longitude from -360 to 360",
    "latitude: 0, longitude: 0, kilometers: 2000.1": "kilometers is 2000.1; it must be 0 to 2,000.",
    "latitude: 0, longitude: 0, kilometers: -1": "kilometers is -1",
    "latitude: 0, longitude: 0, first: 101": "first is 101; a search returns 0 to 100 nodes.",
}


async def test_arguments_out_of_bounds_are_refused_before_anything_is_read_and_zero_kilometers_are_not(store):
    city = (("US", "x"), "CITY", None, {"latitude": 12.5, "longitude": 180.0})
    await plant(store, Location, [(("US",), "COUNTRY"), city])
    client = Client(store, Location)
    for arguments, message in REFUSED.items():
        reply = await client.ask(f"{{ locationsNear({arguments}) {{ complete }} }}")
        assert message in reply.errors[0]["message"]
        assert reply.requests == 0
    query = "{ locationsNear(latitude: 12.5, longitude: -180, kilometers: 0) { edges { kilometers } complete } }"
    assert (await client.ask(query)).data == {"locationsNear": {"edges": [{"kilometers": 0.0}], "complete": True}}


CREATED = """mutation($site: SiteAttributes!) {
  createYard(input: {key: "new", name: "New", attributes: {site: $site}}, dryRun: true) { node { id } } }"""
BOUNDS = "{ hierarchies { levels { attributes { minimum maximum } } } }"
BEYOND = [
    ({"north": 90.0, "east": -180.0}, None), ({"north": 141.0}, "north: 141.0 is more than the maximum 90"),
    ({"north": -90.5}, "is less than the minimum -90"), ({"east": 500.0}, "east: 500.0 is more than the maximum 180"),
]  # fmt: skip


async def test_coordinates_have_the_bounds_of_the_earth_and_stored_ones_beyond_are_read_and_not_found(store: Store):
    """Such values were stored before the class had the bounds."""
    await plant(store, Yard, [(("a",), "SITE"), (("b",), "SITE")])
    (item,) = await store.get([node_key("yard", ("a",))], ReadUsage(), strong=True)
    await store.commit([Put({**(item or {}), "north": 141.0, "east": 500.0})])
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
