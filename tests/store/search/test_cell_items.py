"""Cell items: what nodes have one, that the ranges of a cover hold it, and check and repair of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.hierarchies.locations import Location
from store.checking.check import Check
from store.checking.repair import Repair
from store.edits.create_update import Update
from store.edits.move import Move
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadData
from store.model.hierarchy import Search, SearchScope
from store.model.items import Change, Delete, Item, Put, canonical_item, key_of, size_of
from store.model.keys import Index
from store.model.records import Record
from store.search.cell_items import CellItem, cell_items, nearest_after, run_range
from store.search.geometry import Point, cover
from store.search.lineage import id_hash
from store.writer.writer import Writer
from tests import invariants
from tests.systems.asking import plant

LOCATION = Location.definition()
BY_TREE = replace(LOCATION, search=Search(SearchScope.TREE))
AT = "2026-01-01T00:00:00.000Z"
LINE = id_hash("location:us") + id_hash("location:7")


def city(**attributes: Any) -> Record:
    return Record(
        pk="location#US", sk="#Omaha#", rank="CITY#Omaha#", id="location:7", level="CITY", name="Omaha",
        above=["COUNTRY"], kids={}, below={}, revision=1, updated_at=AT, attributes=attributes,
    )  # fmt: skip


def test_a_node_with_a_place_has_one_small_item():
    (item,) = cell_items(LOCATION, city(latitude=41.25, longitude=-95.9), LINE)
    assert item["pk"] in {f"cells/location#{number:02x}" for number in range(24)}
    assert size_of(item) < 200
    found = CellItem.of("location", item)
    assert found is not None
    assert (found.point, found.id, found.level, found.line) == ((41.25, -95.9), "location:7", "CITY", LINE)
    assert found.key == ("location#US", "#Omaha#")
    (of_tree,) = cell_items(BY_TREE, city(latitude=41.25, longitude=-95.9), LINE)
    assert of_tree["pk"] == str(item["pk"]).replace("#", f"#{LINE[:6]}#")


@pytest.mark.parametrize(
    "attributes",
    [{}, {"latitude": 1.0}, {"latitude": 91, "longitude": 0}, {"latitude": True, "longitude": 0},
     {"latitude": "x", "longitude": 0}, {"latitude": [1], "longitude": 0}, {"latitude": "NaN", "longitude": 0}],
)  # fmt: skip
def test_a_node_without_a_valid_place_has_none(attributes):
    assert cell_items(LOCATION, city(**attributes), LINE) == []


def test_decimals_are_places_and_a_hierarchy_without_location_has_no_items():
    (item,) = cell_items(LOCATION, city(latitude="41.5", longitude="190.5"), LINE)
    assert (item["latitude"], item["longitude"]) == (41.5, -169.5)
    assert cell_items(replace(LOCATION, location=None), city(latitude=1, longitude=1), LINE) == []


@pytest.mark.parametrize("change", [{"latitude": "x"}, {"longitude": None}, {"at": "US"}, {"line": 3}, {"sk": "abc"}])
def test_a_damaged_item_is_bad_data(change):
    (item,) = cell_items(LOCATION, city(latitude=41.25, longitude=-95.9), LINE)
    with pytest.raises(BadData, match=r'The item "cells/location#.*is damaged'):
        CellItem.of("location", item | change)


@given(st.floats(-90, 90), st.floats(-180, 179.9), st.floats(-2, 2), st.floats(-2, 2), st.floats(1, 300))
def test_the_ranges_of_a_cover_hold_the_items_in_its_circle(latitude, longitude, north, east, kilometers):
    center = Point(latitude, longitude)
    point = Point.of(max(-90.0, min(90.0, latitude + north)), longitude + east)
    assert point is not None
    (item,) = cell_items(LOCATION, city(latitude=point.latitude, longitude=point.longitude), LINE)
    runs = cover(center, kilometers, 7)
    ranges = [(run, run_range("cells/location#", run)) for run in runs]
    assert {span.index for _, span in ranges} == {Index.TABLE}
    holding = [run for run, span in ranges if span.partition == item["pk"] and span.lo <= str(item["sk"]) < span.hi]
    assert len(holding) <= 1
    if center.kilometers(point) <= kilometers:
        found = CellItem.of("location", item)
        assert found is not None
        assert nearest_after(holding[0], found) <= center.kilometers(point) + 1e-6


async def findings(store: Store) -> list[str]:
    return [str(one) async for one in Check(store, {"location": LOCATION}, AT).findings()]


async def cell(store: Store) -> Item:
    (found,) = [one for one in await invariants.all_items(store) if one["pk"].startswith("cells/")]
    return found


DAMAGE: dict[str, Callable[[Item], Change]] = {
    "missing": lambda item: Delete(key_of(item)),
    "another latitude": lambda item: Put({**item, "latitude": 3}),
    "another level": lambda item: Put({**item, "level": "STORE"}),
    "no path": lambda item: Put({**item, "at": 5}),
    "another cell": lambda item: Put({**item, "sk": f"123456789#{str(item['sk']).partition('#')[2]}"}),
    "of no node": lambda item: Put({**item, "sk": "123456789#nobody"}),
}


@pytest.mark.parametrize("what", DAMAGE)
async def test_damage_is_found_and_repaired_also_after_moves(store, what):
    place = {"latitude": 41.25, "longitude": -95.9}
    await plant(
        store, Location, [(("US",), "COUNTRY"), (("US", "NE"), "STATE"), (("US", "NE", "x"), "CITY", None, place)]
    )
    writer = Writer(store, hierarchies={"location": LOCATION})
    await writer.write(Update(LOCATION, ("US", "NE", "x"), None, None, {"longitude": 264.0}, None), ReadUsage())
    await writer.write(Move(LOCATION, ("US", "NE"), ("US", "Nebraska"), None), ReadUsage())
    assert await findings(store) == []
    await invariants.check(store, {"location": LOCATION})
    await store.commit([DAMAGE[what](await cell(store))])
    assert len(await findings(store)) == 1
    assert [one.is_fixed async for one in Repair(Check(store, {"location": LOCATION}, AT)).run()] == [True]
    assert await findings(store) == []
    await invariants.check(store, {"location": LOCATION})


@pytest.mark.parametrize(("latitude", "stored"), [(41.0, "41"), (1e-200, "0"), (-0.0, "0"), (41.25, "41.25")])
def test_the_numbers_of_a_cell_item_are_as_they_are_stored(latitude: float, stored: str) -> None:
    (item,) = cell_items(LOCATION, city(latitude=latitude, longitude=2.5), LINE)
    assert repr(item["latitude"]) == stored
    assert canonical_item(item) == item
