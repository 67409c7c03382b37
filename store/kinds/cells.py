"""Cells: points on the Earth, the cells that cover a circle, and the items by which nodes near a point are found,
written in the transactions of their nodes.

The sphere is projected from its center onto the six faces of a cube, and each face is divided into four cells again
and again. So there are no special cases: cells have about the same size at the poles, at the date line and
elsewhere. Cells of a level are numbered such that those in one larger cell follow each other (Z-order), so that the
nodes in a circle lie in a few ranges. A cell lies inside of the circle around its middle through its farthest
corner, which bounds its distance from a point.

A node with a valid latitude and longitude has one item:

| index | partition key | sort key |
| --- | --- | --- |
| the table | `cells/location#05` | `1a40c92b7#<id>` |

The partition key has the cell of the first level, a quarter of a face, the sort key the rest of the cell of the last
level. Where each tree is searched by itself, the hash of its root's id stands before: `cells/drive#Xy12aB#05`.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import asin, atan, ceil, cos, dist, floor, hypot, log2, pi, radians, sin, sqrt, tan
from typing import NamedTuple

from msgspec import Struct

from store.kinds.kind import Located
from store.kinds.lineage import STEP, Line, Lineage, Moves, Place
from store.kinds.recipe import LevelRecipe, Names, Recipe, number_names
from store.kinds.words import SearchKind, leads, partition
from store.model.decoding import damaged, decoded
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import Index, Key, KeyRange, hierarchy_of
from store.model.records import Item, Record

EARTH_KILOMETERS = 6371.0088  # mean radius
LEVELS = 18  # of cells; those of the last are some 40 m wide
FIRST_CELLS = 24  # of the first level: each face has four
PARTS = ("latitude", "longitude")  # of a recipe
_ROUNDING = 1e-9  # radians, 6 mm: what rounding can change in an angle
_REST = (1 << 2 * (LEVELS - 1)) - 1  # the bits of a cell's number below those of its partition
_DIGITS = -(-2 * (LEVELS - 1) // 4)
Vector = tuple[float, float, float]


class Point(NamedTuple):
    """A point by its latitude (-90 to 90) and its longitude (at least -180, less than 180) in degrees."""

    latitude: float
    longitude: float

    @classmethod
    def of(cls, latitude: float, longitude: float) -> "Point | None":
        """Longitudes up to 360 are counted on around the Earth; None for all that is farther, and for NaN."""
        if not (-90 <= latitude <= 90 and -360 <= longitude <= 360):
            return None
        if not -180 <= longitude < 180:
            longitude -= 360 * floor((longitude + 180) / 360)
        return cls(latitude, longitude)

    def kilometers(self, other: "Point") -> float:
        """The distance to another point on a sphere with the Earth's mean radius, by the haversine formula."""
        north, east = radians(other.latitude - self.latitude), radians(other.longitude - self.longitude)
        narrowing = cos(radians(self.latitude)) * cos(radians(other.latitude))
        return 2 * EARTH_KILOMETERS * asin(min(1.0, sqrt(sin(north / 2) ** 2 + narrowing * sin(east / 2) ** 2)))

    @property
    def cell(self) -> int:
        """The number of the cell of the last level that holds the point."""
        vector = self._vector
        sizes = [*map(abs, vector)]
        axis = sizes.index(max(sizes))
        size, last = sizes[axis], 2**LEVELS - 1
        across = [atan(vector[(axis + n) % 3] / size) * 2 / pi + 0.5 for n in (1, 2)]
        column, row = [min(last, int(part * 2**LEVELS)) for part in across]
        face = axis + 3 * (vector[axis] < 0)
        # Binary digits read as those of base 4 leave a bit free behind each.
        return face << 2 * LEVELS | int(f"{row:b}", 4) << 1 | int(f"{column:b}", 4)

    @property
    def _vector(self) -> Vector:
        latitude, longitude = radians(self.latitude), radians(self.longitude)
        return cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)


class Cell(NamedTuple):
    """A cell that touches a circle; `is_inside` is whether all its points are in the circle."""

    level: int
    number: int
    is_inside: bool

    @property
    def first(self) -> int:
        """The number of the first cell of the last level in it."""
        return self.number << 2 * (LEVELS - self.level)

    @property
    def end(self) -> int:
        """The number after that of the last cell of the last level in it."""
        return self.number + 1 << 2 * (LEVELS - self.level)


Run = list[Cell]
"""Cells that follow each other in one cell of the first level."""


def first_cell(number: int) -> int:
    """The number of the cell of the first level that holds a cell of the last."""
    return number >> 2 * (LEVELS - 1)


def cover(center: Point, kilometers: float, runs: int) -> list[Run]:
    """Runs of cells that hold all points of a circle: at most so many, or one in each cell of the first level.

    The largest cell that is partly outside is divided, and its parts outside are left out, as long as there are not too
    many runs. Cells are at least a quarter of the circle wide, which makes them few. Eight runs have some 1.8 times the
    area of the circle.
    """
    vector, radius = center._vector, kilometers / EARTH_KILOMETERS
    size = 2 * pi * EARTH_KILOMETERS / 4  # of a face
    finest = min(LEVELS, max(1, ceil(log2(2 * size / max(kilometers, size / 2**LEVELS)))))
    found = _touching(vector, radius, 1, range(FIRST_CELLS))
    undivided: set[Cell] = set()
    while ahead := [one for one in found if not (one.is_inside or one.level >= finest or one in undivided)]:
        largest = min(ahead)
        place, first = found.index(largest), 4 * largest.number
        inner = _touching(vector, radius, largest.level + 1, range(first, first + 4))
        divided = [*found[:place], *inner, *found[place + 1 :]]
        if len(_runs(divided)) <= max(runs, len(_runs(found))):
            found = divided
        else:
            undivided.add(largest)
    return _runs(found)


def _touching(center: Vector, radius: float, level: int, numbers: Sequence[int]) -> list[Cell]:
    """Those of some cells that touch a circle, whose radius is an angle."""
    found = []
    for number in numbers:
        middle, reach = _circle_around(level, number)
        angle = _angle(center, middle)
        if angle - reach <= radius + _ROUNDING:
            found.append(Cell(level, number, angle + reach <= radius))
    return found


def _runs(cells: Sequence[Cell]) -> list[Run]:
    """Sorted cells as runs."""
    found: list[Run] = []
    for one in cells:
        before = found[-1][-1] if found else None
        if before and before.end == one.first and first_cell(before.first) == first_cell(one.first):
            found[-1].append(one)
        else:
            found.append([one])
    return found


@lru_cache(32_768)
def _circle_around(level: int, number: int) -> tuple[Vector, float]:
    """The middle of a cell, and the angle from there to its farthest corner."""
    column = row = 0
    for bit in range(level):
        column |= (number >> 2 * bit & 1) << bit
        row |= (number >> 2 * bit + 1 & 1) << bit
    face = number >> 2 * level
    middle = _at(face, (column + 0.5) / 2**level, (row + 0.5) / 2**level)
    corners = [_at(face, (column + x) / 2**level, (row + y) / 2**level) for x in (0, 1) for y in (0, 1)]
    return middle, max([_angle(middle, corner) for corner in corners])


def _at(face: int, column: float, row: float) -> Vector:
    """The point at a position of a face, from 0 to 1 in both directions."""
    x, y = tan((column - 0.5) * pi / 2), tan((row - 0.5) * pi / 2)
    length = hypot(1, x, y)
    parts = [(1 if face < 3 else -1) / length, x / length, y / length]
    return parts[-face % 3], parts[(1 - face) % 3], parts[(2 - face) % 3]


def _angle(one: Vector, other: Vector) -> float:
    return 2 * asin(min(1.0, dist(one, other) / 2))


class _StoredCell(Struct, gc=False):
    sk: str
    level: str
    at: Place
    line: Line
    latitude: float
    longitude: float


class CellItem(NamedTuple):
    """A cell item as it is read: what it says of its node, as of when it was written."""

    point: Point
    id: str
    level: str
    key: Key
    line: Lineage

    @classmethod
    def of(cls, hierarchy: str, item: Item) -> "CellItem":
        """The cell item in an item; raises DamagedItem."""
        found = decoded(item, _StoredCell)
        bare_id = found.sk.partition("#")[2]
        root, divider, rest = found.at.partition("#")
        point = Point.of(found.latitude, found.longitude)
        if point is None or not bare_id:
            raise damaged(item, "Expected a point and an id")
        key = Key(f"{hierarchy}#{root}", divider + rest)
        return cls(point, f"{hierarchy}:{bare_id}", found.level, key, found.line)


def point_of(record: Record, *names: Names) -> Point | None:
    """The point at which a node lies by these stored names of its latitude and longitude; None where it has none, or
    no valid ones.
    """
    stored = [next((record.attributes[name] for name in some if name in record.attributes), None) for some in names]
    latitude, longitude = map(_number, stored)
    return None if latitude is None or longitude is None else Point.of(latitude, longitude)


def cell_items(recipe: Recipe, record: Record, line: Lineage) -> list[Item]:
    """The cell item of a node, if it has a point; `line` is its lineage."""
    level = recipe.level(record.level)
    point = point_of(record, *map(level.number, PARTS))
    if point is None:
        return []
    cell = point.cell
    return [
        {
            "pk": _partition(partition(recipe.hierarchy, recipe.tree(line[:STEP]), "cells"), cell),
            "sk": f"{cell & _REST:0{_DIGITS}x}#{record.id.partition(':')[2]}",
            "at": f"{record.pk[len(hierarchy_of(record.pk)) + 1 :]}{record.sk}", "line": line, "level": record.level,
            "latitude": point.latitude, "longitude": point.longitude,
        }
    ]  # fmt: skip


class CellKind(SearchKind):
    """Cell items, by which nodes near a point are found."""

    name = "cells"

    def is_asked(self, hierarchy: Hierarchy) -> bool:
        return hierarchy.location is not None

    def asked(self, hierarchy: Hierarchy, level: str) -> LevelRecipe:
        if hierarchy.location is None:
            return LevelRecipe()
        found = [number_names(hierarchy, level, one) for one in hierarchy.location]
        return LevelRecipe(None, dict(zip(PARTS, found, strict=True)))

    def lacks(self, hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
        return [] if made.agrees(self.asked(hierarchy, level.name)) else [f"the places of {level.label}"]

    def items(self, recipe: Recipe, node: Located) -> list[Item]:
        return cell_items(recipe, node.record, node.line)

    def is_outdated(self, found: Item, item: Item, moves: Moves | None) -> bool:
        if not leads(found, item, moves):
            return False
        one, other = CellItem.of("", found), CellItem.of("", item)
        return one._replace(key=other.key, line=other.line) == other


def run_range(base: str, run: Run) -> KeyRange:
    """The items of the nodes in a run of cells; `base` is what their partition keys begin with."""
    first, last = run[0].first, run[-1].end - 1
    lo, hi = f"{first & _REST:0{_DIGITS}x}", f"{(last & _REST) + 1:0{_DIGITS}x}"
    return KeyRange(Index.TABLE, _partition(base, first), lo, hi)


def _partition(base: str, cell: int) -> str:
    return f"{base}{first_cell(cell):02x}"


def _number(value: object) -> float | None:
    """A stored number, which is a text where it is a Decimal."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None
