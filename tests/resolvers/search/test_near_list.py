"""Lists of what is near a point, by items and in memory: nodes, orders, distances and pages against brute force."""

import math
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from graph.hierarchies.attribute import attribute
from graph.hierarchies.locations import Location
from graph.hierarchies.node import Node
from resolvers.search import candidates, item_lists, near_list
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from store.checking.check import Check
from store.engine import ReadUsage, Store
from store.kinds.cells import Point
from store.kinds.marker import marker_key
from store.model.keys import Path, node_key
from store.model.records import Delete, Put, Record
from store.writing.move_delete import Move
from tests.rights.asking import Server, caller
from tests.store.writing import journaled
from tests.stores import Interrupted, ReadRecorder
from tests.systems.asking import Client, plant

pytestmark = pytest.mark.both_stores

LIST = """(level: $level, where: $where, orderBy: $order, first: $first, after: $after, last: $last, before: $before) {
  totalCount edges { kilometers cursor node { id } } pageInfo { hasNextPage hasPreviousPage } }"""
QUERY = """query(%s$where: LocationCondition!, $order: [LocationOrderBy!], $level: [LocationLevel!],
    $first: Int, $after: String, $last: Int, $before: String) { %s }"""
FIELDS = {
    "locations": QUERY % ("", f"list: locations{LIST}"),
    **{
        one: QUERY % ("$path: Path, ", f"location(path: $path) {{ list: {one}{LIST} }}")
        for one in ("children", "descendants")
    },
}
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
    """Two countries with random cities around the centers, each with a store beside it or at its place; some without a
    place.
    """
    random = Random(seed)  # noqa: S311
    rows: list[tuple[Any, ...]] = [(("US",), "COUNTRY"), (("FJ",), "COUNTRY")]
    for number in range(60):
        path, point = (random.choice(["US", "FJ"]), f"c{number}"), somewhere(random, random.choice([*CENTERS, None]))
        beside = somewhere(random, point, 0.02 if number % 4 else 0.0)
        values = {"latitude": point.latitude, "longitude": point.longitude}
        rows.append((path, "CITY", None, values if number % 10 else random.choice([{"latitude": 1.0}, {}])))
        rows.append(((*path, "s"), "STORE", None, {"latitude": beside.latitude, "longitude": beside.longitude}))
    return rows


class Found(NamedTuple):
    """A node as it is stored."""

    path: Path
    id: str
    level: str
    point: Point | None


async def nodes(store: Store, *attributes: str) -> list[Found]:
    """All nodes, each with the point that its attributes have."""
    items = [item async for page in store.scan(ReadUsage()) for item in page if "tier" in item]
    found = []
    for item in items:
        record, at = Record.of(item), [item.get(name) for name in attributes]
        found.append(Found(record.path, record.id, record.level, None if None in at else Point.of(*at)))
    return found


def circle(random: Random) -> tuple[dict[str, Any], Point, Callable[[Found], bool]]:
    """A condition, its point, and whether a node meets it."""
    center, kilometers = somewhere(random, random.choice([*CENTERS, None]), 1.0), random.choice(RADII)
    given = {"latitude": center.latitude, "longitude": center.longitude, "kilometers": kilometers}
    return given, center, lambda one: one.point is not None and center.kilometers(one.point) <= kilometers


def condition(random: Random) -> tuple[dict[str, Any], Point | None, Callable[[Found], bool]]:
    """The same of a condition with one or more circles; a point where one is directly in it."""
    (near, center, meets), (other, _, also) = circle(random), circle(random)
    one = {"name": {"contains": "1"}}
    return random.choice([
        ({"near": near}, center, meets),
        ({"near": near, **one}, center, lambda node: meets(node) and "1" in node.path[-1]),
        ({"near": near, "not": {"near": other}}, center, lambda node: meets(node) and not also(node)),
        ({"and": [{"near": near}, {"near": other}]}, None, lambda node: meets(node) and also(node)),
        ({"or": [{"near": near}, one]}, None, lambda node: meets(node) or "1" in node.path[-1]),
        ({"not": {"near": near}}, None, lambda node: not meets(node)),
    ])  # fmt: skip


def distance(center: Point | None, one: Found) -> float | None:
    return None if center is None or one.point is None else center.kilometers(one.point)


LEVELS = list(Location.definition().levels)
VALUES: dict[str, Callable[[Point | None, Found], Any]] = {
    "DISTANCE": distance, "LEVEL": lambda _, one: LEVELS.index(one.level), "NAME": lambda _, one: one.path[-1],
}  # fmt: skip
ORDERS = [
    [("DISTANCE", "ASC")],
    [("DISTANCE", "DESC")],
    [("LEVEL", "DESC"), ("DISTANCE", "ASC")],
    [("NAME", "ASC")],
    [],
]


class Question(NamedTuple):
    """A list that is asked for, and the right answer."""

    field: str
    variables: dict[str, Any]
    expected: list[tuple[float | None, str]]


def question(random: Random, stored: list[Found]) -> Question:
    where, center, meets = condition(random)
    field = random.choice([*FIELDS])
    levels = random.choice([["CITY"], ["STORE", "CITY"]] if field == "locations" else [None, ["CITY"], ["STORE"]])
    owner: Path = () if field == "locations" else random.choice([one.path[:-1] for one in stored if one.point])
    order = random.choice([one for one in ORDERS if center is not None or "DISTANCE" not in dict(one)])
    found = [one for one in stored if one.path[: len(owner)] == owner and one.path != owner and meets(one)]
    found = [one for one in found if one.level in (levels or [one.level])]
    found = [one for one in found if field != "children" or one.path[:-1] == owner]
    found.sort(key=lambda one: (one.level, one.path) if field == "children" else one.path)
    for name, direction in reversed(order):
        found.sort(key=lambda one: VALUES[name](center, one), reverse=direction == "DESC")
    given = [{"field": name, "direction": direction} for name, direction in order]
    variables = {
        **({"path": "/".join(owner)} if owner else {}),
        "where": where,
        "level": levels,
        "order": given or None,
    }
    return Question(field, variables, [(distance(center, one), one.id) for one in found])


async def edges_of(client: Client, asked: Question, **page: Any) -> dict[str, Any]:
    reply = await client.ask(FIELDS[asked.field], **asked.variables, **page)
    assert not reply.errors, reply.errors
    ranges.append(cells(reply))
    found: dict[str, Any] = reply.data.get("location", reply.data)["list"]
    assert found["totalCount"] == len(asked.expected), asked
    return found


ranges: list[int] = []  # of cells, that each question has read


async def check(client: Client, asked: Question, size: int) -> None:
    """A list is right as a whole, and page by page in both directions."""
    whole = (await edges_of(client, asked))["edges"]
    assert [(edge["kilometers"], edge["node"]["id"]) for edge in whole] == asked.expected, asked
    for step, cursor, more in (("first", "after", "hasNextPage"), ("last", "before", "hasPreviousPage")):
        found: list[Any] = []
        page: dict[str, Any] = {step: size}
        while True:
            answer = await edges_of(client, asked, **page)
            edges = answer["edges"]
            found = found + edges if step == "first" else edges + found
            if not answer["pageInfo"][more]:
                break
            page[cursor] = edges[-1 if step == "first" else 0]["cursor"]
        assert found == whole, (asked, step)


async def none(*_: object) -> None:
    """No candidates: the list is read whole."""


@pytest.fixture(params=["by items", pytest.param("in memory", marks=pytest.mark.both_stores(False))])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How lists are read, whatever would be cheaper."""
    monkeypatch.setattr(item_lists, "MIN_NODES", 0)
    monkeypatch.setattr(item_lists, "NODE_PRICE", 0)
    monkeypatch.setattr(candidates, "MAX_KILOMETERS", 2_000)
    if request.param == "in memory":
        monkeypatch.setattr(candidates, "found_by_items", none)
    return str(request.param)


def cells(reply: Any) -> int:
    """The ranges of cells that were read."""
    return len([span for span, *_ in reply.witness.spans if "cells/" in span.partition])


@pytest.mark.both_stores(False)
async def test_what_is_near_is_what_a_scan_finds_also_after_moves(store, way):
    random = Random(5)  # noqa: S311
    await plant(store, Location, world(5))
    client = Client(store, Location, page_cache=PageCache(10_000_000, TreeVersionCache(0.0)))
    for target in (None, (("FJ", "c3"), ("US", "here")), (("US",), ("Usa",))):
        if target is not None:
            await journaled.write(store, Move(Location.definition(), *target))
        stored = await nodes(store, "latitude", "longitude")
        for _ in range(8):
            await check(client, question(random, stored), random.choice([1, 3, 10]))
    assert (0 < max(ranges) <= near_list.MAX_RUNS) if way == "by items" else max(ranges) == 0
    ranges.clear()


@pytest.mark.both_stores(False)
async def test_while_a_subtree_moves_both_ways_find_the_same_side(store, monkeypatch):
    await plant(store, Location, world(2))
    store.max_commit_changes = journaled.SMALL
    at = {"latitude": CENTERS[0].latitude, "longitude": CENTERS[0].longitude, "kilometers": 2_000.0}
    where, order = {"near": at}, {"field": "DISTANCE", "direction": "ASC"}
    seen: list[Any] = []

    async def ask(_: int) -> None:
        answers = []
        for least in (0, 1_000_000):
            monkeypatch.setattr(item_lists, "MIN_NODES", least)
            replies = [
                await Client(store, Location).ask(FIELDS["descendants"], path=path, where=where, order=order)
                for path in ("FJ", "US", "Fiji")
            ]
            answers.append([(reply.data, reply.errors) for reply in replies])
            assert any(map(cells, replies)) == (least == 0)
        assert answers[0] == answers[1]
        seen.append(answers[0])

    monkeypatch.setattr(candidates, "MAX_KILOMETERS", 2_000)
    monkeypatch.setattr(item_lists, "NODE_PRICE", 0)
    moving: Any = Interrupted(store, "commit", after=ask)
    await journaled.write(moving, Move(Location.definition(), ("FJ",), ("Fiji",)))
    assert len(seen) > 5
    assert seen[0] != seen[-1]


async def test_each_tree_is_searched_by_itself_where_its_class_says_so(store, way):
    random = Random(3)  # noqa: S311
    rows: list[tuple[Any, ...]] = [((site,), "SITE") for site in "abc"]
    rows += [((site, part), "SPOT") for site in "abc" for part in "xy"]
    for number in range(60):
        point = somewhere(random, CENTERS[0], 0.5)
        path = (random.choice("abc"), random.choice("xy"), f"{number}")
        rows.append((path, "SPOT", None, {"north": point.latitude, "east": point.longitude}))
    await plant(store, Yard, rows)
    await journaled.write(store, Move(Yard.definition(), ("b", "x"), ("a", "z")))
    client, placed = Client(store, Yard), await nodes(store, "north", "east")
    near = "where: {near: {latitude: 41.2587, longitude: -95.9379, kilometers: 40}}, orderBy: {field: DISTANCE}"
    for under in ("a", "b", "c", "a/z", "a/x", ""):
        name = "descendants" if under else "yards"
        inner = f"{name}({near}{'' if under else ', level: SPOT'}) {{ edges {{ kilometers node {{ id }} }} }}"
        reply = await client.ask(f'{{ yard(path: "{under}") {{ {inner} }} }}' if under else f"{{ {inner} }}")
        assert not reply.errors
        found = reply.data["yard" if under else name]
        below = [
            (distance(CENTERS[0], one), one.id)
            for one in placed
            if "/".join(one.path).startswith(f"{under}/"[not under :])
        ]
        expected = sorted([one for one in below if one[0] is not None and one[0] <= 40])
        assert [
            (one["kilometers"], one["node"]["id"]) for one in (found[name] if under else found)["edges"]
        ] == expected
        assert bool(cells(reply)) == (way == "by items" and bool(under))


OMAHA = "near: {latitude: 41.2587, longitude: -95.9379, kilometers: %s}"
NEAREST = f"first: 5, orderBy: {{field: DISTANCE}}, where: {{{OMAHA}}}"
PAGE = "edges { kilometers node { path } }"


def many(levels: str = "CITY") -> list[tuple[Any, ...]]:
    """1,100 cities in a row from Omaha to the north, of which 18 are in a circle of ten kilometers."""
    rows: list[tuple[Any, ...]] = [(("US",), "COUNTRY"), (("US", "NE"), "STATE")]
    for number in range(1_100):
        place = {"latitude": 41.2587 + number / 200, "longitude": -95.9379}
        rows.append((("US", "NE", f"c{number:04}"), levels, None, place))
    return rows


@pytest.mark.usefixtures("exact")
async def test_reads_of_a_long_list_are_those_of_its_circle(store):
    await plant(store, Location, many())
    client = Client(store, Location, page_cache=PageCache(10_000_000, TreeVersionCache(0.0)))
    found = []
    for query in (f"{{ locations(level: CITY, {NEAREST}) {{ totalCount {PAGE} }} }}" % 10,
                  f'{{ state(path: "US/NE") {{ children({NEAREST}) {{ totalCount {PAGE} }} }} }}' % 10):  # fmt: skip
        reply = await client.ask(query)
        listed = reply.data.get("state", reply.data)
        found.append(listed.get("children", listed.get("locations")))
        is_below = "state" in reply.data
        assert reply.requests <= 9 + is_below  # seven ranges, the moves, the nodes, and the owner of the list
        assert reply.rounds == 2 + is_below
        assert reply.items < 60
        assert reply.units < 20
    assert found[0] == found[1]
    assert found[0]["totalCount"] == 18
    whole = await client.ask(f'{{ state(path: "US/NE") {{ children({NEAREST}) {{ totalCount {PAGE} }} }} }}' % 201)
    alike = await Client(store, Location).ask(
        '{ state(path: "US/NE") { children(first: 5, orderBy: {field: NAME}) { totalCount edges { node { path } } } } }'
    )
    assert whole.data["state"]["children"]["edges"] == found[0]["edges"]
    assert abs(whole.items - alike.items) <= 2  # the node and the version of its tree were cached
    assert (whole.items < 1_105, cells(whole)) == (True, 0)


async def test_nested_lists_read_the_cells_once(store, way):
    rows = [row for row in many() if row[0] < ("US", "NE", "c0050")]
    rows += [((*path, "s"), "STORE", None, values[1]) for path, level, *values in rows if level == "CITY"]
    await plant(store, Location, rows)
    inner = f"children({NEAREST}) {{ nodes {{ path }} }}" % 10
    reply = await Client(store, Location).ask(f'{{ state(path: "US/NE") {{ children {{ nodes {{ {inner} }} }} }} }}')
    found = [one["children"]["nodes"] for one in reply.data["state"]["children"]["nodes"]]
    assert [len(one) for one in found] == [1] * 18 + [0] * 32
    assert cells(reply) <= near_list.MAX_RUNS
    assert reply.requests <= 12


TOO_MANY = "The children of US/NE within 100 kilometers are more than this request may read; give fewer kilometers."


@pytest.mark.both_stores(False)
async def test_a_circle_with_too_many_nodes_is_read_with_the_whole_list_or_refused(store, monkeypatch):
    await plant(store, Location, many())
    monkeypatch.setattr(item_lists, "MAX_ITEMS", 100)
    query = f'{{ state(path: "US/NE") {{ children({NEAREST}) {{ totalCount }} }} }}' % 100
    reply = await Client(store, Location).ask(query)
    assert reply.data == {"state": {"children": {"totalCount": 180}}}
    (error,) = (await Client(store, Location, budget=BudgetLimits(read_units=54.0)).ask(query)).errors
    assert (error["message"], error["extensions"]["code"]) == (TOO_MANY, "BUDGET_EXCEEDED")
    monkeypatch.undo()
    cheap = await Client(store, Location, budget=BudgetLimits(read_units=54.0)).ask(query.replace("100}", "10}"))
    assert cheap.data == {"state": {"children": {"totalCount": 18}}}
    await store.commit([Delete(marker_key("location"))])
    (error,) = (await Client(store, Location, budget=BudgetLimits(read_units=54.0)).ask(query)).errors
    assert "sort and filter" in error["message"]
    assert (await Client(store, Location).ask(query)).data == reply.data


@pytest.mark.usefixtures("way")
async def test_a_caller_who_may_read_a_part_finds_what_is_hers_and_reads_no_cells(store):
    rows = many()[:100]
    await plant(store, Location, [*rows, *[((*path, "s"), "STORE", None, more[1]) for path, _, *more in rows[2:]]])
    recorder: Any = ReadRecorder(store)
    server, who = Server(recorder, Location), caller(*[f"read:location/US/NE/c000{n}" for n in (1, 3)])
    near = NEAREST % 10
    query = f"{{ roots: locations({near}) {{ {PAGE} }} stores: locations(level: STORE, {near}) {{ {PAGE} }} }}"
    found = await server.data(who, query)
    paths = ["US/NE/c0001", "US/NE/c0003"]
    assert [edge["node"]["path"] for edge in found["roots"]["edges"]] == paths
    assert [edge["node"]["path"] for edge in found["stores"]["edges"]] == [f"{path}/s" for path in paths]
    assert not any("cells/" in span.partition or "kinds/" in span.partition for span, *_ in recorder.spans)


REFUSED = {
    "where: {near: {latitude: 91, longitude: 0, kilometers: 1}}": "latitude of near in where is 91.0; it must be",
    "where: {near: {latitude: 0, longitude: 400, kilometers: 1}}": "longitude of near in where is 400.0; it",
    "where: {or: [{near: {latitude: 0, longitude: 0, kilometers: 2000.1}}]}": "is 2000.1; it must be 0 to 2,000.",
    "where: {near: {latitude: 0, longitude: 0, kilometers: -1}}": "kilometers of near in where is -1.0",
    "orderBy: {field: DISTANCE}": "give one directly in where, outside of and, or and not",
    f"orderBy: {{field: DISTANCE}}, where: {{and: [{{{OMAHA % 1}}}]}}": "orderBy has DISTANCE",
    f"orderBy: {{field: DISTANCE}}, where: {{not: {{{OMAHA % 1}}}}}": "orderBy has DISTANCE",
    f"orderBy: [{{field: DISTANCE}}, {{field: DISTANCE}}], where: {{{OMAHA % 1}}}": "orderBy has DISTANCE twice",
    "where: {near: null}": "near is null in where; omit it",
}


async def test_arguments_out_of_bounds_are_refused_before_anything_is_read_and_zero_kilometers_are_not(store):
    city = (("US", "x"), "CITY", None, {"latitude": 12.5, "longitude": 180.0})
    await plant(store, Location, [(("US",), "COUNTRY"), city])
    client = Client(store, Location)
    for arguments, message in REFUSED.items():
        reply = await client.ask(f"{{ locations({arguments}) {{ totalCount }} }}")
        assert message in reply.errors[0]["message"]
        assert (reply.errors[0]["extensions"]["code"], reply.requests) == ("BAD_USER_INPUT", 0)
    near = "where: {near: {latitude: 12.5, longitude: -180, kilometers: 0}}"
    query = f"{{ locations(level: CITY, {near}) {{ edges {{ kilometers }} }} }}"
    assert (await client.ask(query)).data == {"locations": {"edges": [{"kilometers": 0.0}]}}


class Plan(Node, hierarchy="plan", many="plans", location="geo_lat,geo_lon"):
    """A hierarchy of which one level has coordinates."""


class Room(Plan, under=[None]):
    """A level without."""


class Desk(Plan, under=[Room]):
    """A level with coordinates."""

    geo_lat: float | None = attribute("Latitude.")
    geo_lon: float | None = attribute("Longitude.")


async def test_near_cannot_be_met_where_no_level_of_the_list_has_coordinates(store):
    await plant(store, Plan, [(("a",), "ROOM"), (("a", "d"), "DESK", None, {"geo_lat": 1.0, "geo_lon": 2.0})])
    near = "where: {near: {latitude: 1, longitude: 2, kilometers: 1}}"
    (error,) = (await Client(store, Plan).ask(f"{{ plans({near}) {{ totalCount }} }}")).errors
    assert "ROOM has no geoLat, geoLon" in error["message"]
    reply = await Client(store, Plan).ask(f'{{ room(path: "a") {{ descendants({near}) {{ totalCount }} }} }}')
    assert reply.data == {"room": {"descendants": {"totalCount": 1}}}


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
    near = "yards(where: {near: {latitude: 39, longitude: 140, kilometers: 2000}}) { nodes { id } }"
    found = await server.data(who, f'{{ site(path: "a") {{ north east }} {near} }}')
    assert found == {"site": {"north": 141.0, "east": 500.0}, "yards": {"nodes": []}}
    check = Check(store, {"yard": Yard.definition()}, "")
    assert [one async for one in check.findings()] == []
    assert check.undefined["yard"].sentences() == [
        "yard: 1 node of SITE has a value of east that is more than the maximum 180.0, such as a.",
        "yard: 1 node of SITE has a value of north that is more than the maximum 90.0, such as a.",
    ]
