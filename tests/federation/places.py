"""What Clade serves in the tests of federation: a thousand cities in two states, and fifty categories in another."""

from collections.abc import Iterable

from store.hierarchy import Hierarchy
from store.load import Outcome, load
from store.rows import Part, Row, Wanted
from store.stores import Store, open_store

Place = tuple[str, str, str]  # hierarchy, path, level

CITIES = [f"US/{state}/City {number}" for state in ("NE", "NY") for number in range(500)]
CATEGORIES = [f"Goods/Shelf {number}" for number in range(50)]
PLACES: list[Place] = [
    ("location", "US", "COUNTRY"),
    ("location", "US/NE", "STATE"),
    ("location", "US/NY", "STATE"),
    *[("location", path, "CITY") for path in CITIES],
    ("category", "Goods", "CATEGORY"),
    *[("category", path, "CATEGORY") for path in CATEGORIES],
]


def id_of(path: str) -> str:
    """The id of the node at a path."""
    hierarchy = "category" if path.startswith("Goods") else "location"
    return f"{hierarchy}:{_given_id(path)}"


def _given_id(path: str) -> str:
    return path.replace("/", "-").replace(" ", "_")


async def plant(url: str, hierarchies: dict[str, Hierarchy], places: Iterable[Place]) -> None:
    """Make the table and load these places, each named by its last segment."""
    async with open_store(url) as store:
        await store.create()
        for name, hierarchy in hierarchies.items():
            await _plant(store, hierarchy, [(path, level) for one, path, level in places if one == name])


async def _plant(store: Store, hierarchy: Hierarchy, places: list[tuple[str, str]]) -> None:
    wanted, outcome = Wanted(hierarchy), Outcome()
    for number, (path, level) in enumerate(places, start=1):
        segments = path.split("/")
        wanted.take(Row(number, segments, [Part(level, segments[-1], _given_id(path))]))
    await load(store, wanted, outcome)
    assert outcome.rejections == []
