"""A good table with items of every kind, and helpers to damage it."""

from typing import Any

from store.engine import ReadUsage, Store
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, node_key
from store.model.paths import parse_path
from store.model.records import Delete, Item, Put
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.move_delete import Delete as Deletion
from store.writing.move_delete import Move, Policy
from store.writing.positions import Side
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import CATEGORY, LOCATION
from tests.reordering import reorder
from tests.store.transfer.test_load import NEBRASKA, wanted_of

HIERARCHIES: dict[str, Hierarchy] = {"location": LOCATION, "category": CATEGORY}
US = "location#US"
OMAHA = Key(US, "#NE#Omaha#")
OMAHA_ID = "location:5074472"
GONE_ID = "location:gone"


async def fill(store: Store) -> None:
    """Three trees of two hierarchies, with revisions, a deleted node, an alias and a node in a place made by hand."""
    other: list[Any] = [("FR", "COUNTRY"), ("FR/Paris", "CITY", {"id": "paris"})]
    await load(store, wanted_of([*NEBRASKA, *other]), LoadResult())
    await load(store, wanted_of([("A", "CATEGORY"), ("A/B", "CATEGORY"), ("A/B/C", "PRODUCT")], CATEGORY), LoadResult())
    writer = Writer(store)
    place = parse_path("US/NE/Omaha")
    for edit in (
        Update(LOCATION, place, "Omaha, NE", None, {}), Update(LOCATION, place, "Omaha", None, {}),
        Create(LOCATION, parse_path("US/NE/Gone"), "CITY", "Gone", {}, "gone"),
        Deletion(LOCATION, parse_path("US/NE/Gone"), Policy.REFUSE),
        Move(LOCATION, parse_path("US/NE/Lincoln"), parse_path("US/NE/Bellevue")),
        Create(LOCATION, parse_path("US/NE/York"), "CITY", "York", {}),
        reorder(LOCATION, parse_path("US/NE/York"), Side.FIRST),
    ):  # fmt: skip
        await writer.write(edit, ReadUsage())
    await invariants.check(store)


async def item(store: Store, key: Key) -> Item:
    (found,) = await store.get([key], ReadUsage(), strong=True)
    assert found is not None, key
    return found


async def change(store: Store, place: Key, /, **values: Any) -> None:
    """Give an item other values, by nobody's rules."""
    await store.commit([Put({**await item(store, place), **values})])


async def remove(store: Store, *keys: Key) -> None:
    await store.commit([Delete(key) for key in keys])


def at(path: str, hierarchy: str = "location") -> Key:
    return node_key(hierarchy, parse_path(path))
