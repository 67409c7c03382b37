"""What Clade serves in the tests of federation: a thousand cities in two states, and fifty categories beside them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from store.connect import open_store
from store.engine import Store
from store.model.hierarchy import Hierarchy
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row


class Place(NamedTuple):
    """A node of any hierarchy; without an id it gets the one that is made from its path."""

    hierarchy: str
    path: str
    level: str
    name: str
    id: str | None
    attributes: Mapping[str, object] = {}


def id_of(path: str) -> str:
    """The full id of the place at a path."""
    return f"{'category' if path.startswith('Goods') else 'location'}:{_own_id(path)}"


def _own_id(path: str) -> str:
    return path.replace("/", "-").replace(" ", "_")


def place(hierarchy: str, path: str, level: str) -> Place:
    """One that is named and known by its path."""
    return Place(hierarchy, path, level, path.rpartition("/")[2], _own_id(path))


CITIES = [f"US/{state}/City {number}" for state in ("NE", "NY") for number in range(500)]
CATEGORIES = [f"Goods/Shelf {number}" for number in range(50)]
PLACES = [
    place("location", "US", "COUNTRY"),
    place("location", "US/NE", "STATE"),
    place("location", "US/NY", "STATE"),
    *[place("location", path, "CITY") for path in CITIES],
    place("category", "Goods", "CATEGORY"),
    *[place("category", path, "CATEGORY") for path in CATEGORIES],
]


async def plant(url: str, hierarchies: dict[str, Hierarchy], places: Iterable[Place]) -> None:
    """Make the table and load these places."""
    async with open_store(url) as store:
        await store.create()
        for name, hierarchy in hierarchies.items():
            await _plant(store, hierarchy, [one for one in places if one.hierarchy == name])


async def _plant(store: Store, hierarchy: Hierarchy, places: list[Place]) -> None:
    wanted, outcome = ImportPlan(hierarchy), LoadResult()
    for number, one in enumerate(places, start=1):
        wanted.take(Row(number, one.path.split("/"), [Part(one.level, one.name, one.id, one.attributes)]))
    await load(store, wanted, outcome)
    assert outcome.rejections == []
