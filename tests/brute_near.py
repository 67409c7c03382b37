"""Near by brute force: all nodes of a hierarchy with their distances, and places for random ones."""

import math
from random import Random
from typing import Any

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model.keys import Path
from store.model.records import Record
from store.search.geometry import Point

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


async def all_nodes(store: Store, hierarchy: str) -> list[Record]:
    """Every node of a hierarchy, as the table has it."""
    found = []
    async for page in store.scan(ReadUsage()):
        found += [Record.of(item) for item in page if "tier" in item and str(item["pk"]).startswith(f"{hierarchy}#")]
    return found


def brute(
    records: list[Record],
    center: Point,
    kilometers: float,
    *,
    first: int = 10,
    levels: list[str] | None = None,
    under: Path = (),
    granted: list[Path] | None = None,
) -> list[dict[str, Any]]:
    """The edges of the right answer, each with `kilometers` and the `id` of the node."""
    found = []
    for record in records:
        latitude, longitude = record.attributes.get("latitude"), record.attributes.get("longitude")
        if not isinstance(latitude, int | float) or not isinstance(longitude, int | float):
            continue
        point = Point.of(latitude, longitude)
        if point is None or (levels is not None and record.level not in levels):
            continue
        if under and (record.path[: len(under)] != under or record.path == under):
            continue
        if granted is not None and not any(record.path[: len(top)] == top for top in granted):
            continue
        if (distance := center.kilometers(point)) <= kilometers:
            found.append((distance, record.id))
    return [{"kilometers": distance, "node": {"id": node_id}} for distance, node_id in sorted(found)[:first]]
