"""Cell items: the items by which nodes near a point are found, written in the transactions of their nodes.

A node with a valid latitude and longitude has one item, in the order of the cells of `geometry.py`, so that the nodes
in a circle lie in a few ranges:

| index | partition key | sort key |
| --- | --- | --- |
| the table | `cells/location#05` | `1a40c92b7#<id>` |

The partition key has the cell of the first level, a quarter of a face, the sort key the rest of the cell of the last
level. Where each tree is searched by itself, the hash of its root's id stands before: `cells/drive#Xy12aB#05`.
"""

from typing import NamedTuple

from msgspec import Struct

from store.model.hierarchy import Hierarchy
from store.model.items import LEAST_FLOAT, Item, damaged, decoded
from store.model.keys import Index, Key, hierarchy_of
from store.model.ranges import KeyRange
from store.model.records import Record
from store.search.geometry import LEVELS, Point, Run, first_cell
from store.search.lineage import STEP, Lineage
from store.search.word_items import partition

_REST = (1 << 2 * (LEVELS - 1)) - 1  # the bits of a cell's number below those of its partition
_DIGITS = -(-2 * (LEVELS - 1) // 4)


class _StoredCell(Struct, gc=False):
    sk: str
    level: str
    at: str
    line: str
    latitude: float
    longitude: float


class CellItem(NamedTuple):
    """A cell item as it is read: what it says of its node, as of when it was written. `cell` is from its sort key."""

    point: Point
    cell: str
    id: str
    level: str
    key: Key
    line: Lineage

    @classmethod
    def of(cls, hierarchy: str, item: Item) -> "CellItem":
        """The cell item in an item; raises BadData where it is damaged."""
        found = decoded(item, _StoredCell)
        cell, _, bare_id = found.sk.partition("#")
        root, divider, rest = found.at.partition("#")
        point = Point.of(found.latitude, found.longitude)
        if point is None or not (divider and bare_id and found.line) or len(found.line) % STEP:
            raise damaged(item, "Expected a point, a place and a lineage")
        key = Key(f"{hierarchy}#{root}", divider + rest)
        return cls(point, cell, f"{hierarchy}:{bare_id}", found.level, key, found.line)


def point_of(hierarchy: Hierarchy, record: Record) -> Point | None:
    """The point at which a node lies; None where it has no valid latitude and longitude."""
    if hierarchy.location is None:
        return None
    attributes = hierarchy.any_level(record.level).current(record.attributes)
    latitude, longitude = [_number(attributes.get(name)) for name in hierarchy.location]
    return None if latitude is None or longitude is None else Point.of(latitude, longitude)


def cell_items(hierarchy: Hierarchy, record: Record, line: Lineage) -> list[Item]:
    """The cell item of a node, if it has a point; `line` is its lineage."""
    point = point_of(hierarchy, record)
    if point is None:
        return []
    cell = point.cell
    return [
        {
            "pk": _partition(partition(hierarchy, line[:STEP], "cells"), cell),
            "sk": f"{cell & _REST:0{_DIGITS}x}#{record.id.partition(':')[2]}",
            "at": f"{record.pk[len(hierarchy_of(record.pk)) + 1 :]}{record.sk}", "line": line, "level": record.level,
            "latitude": _degrees(point.latitude), "longitude": _degrees(point.longitude),
        }
    ]  # fmt: skip


def _degrees(number: float) -> float:
    """Degrees in canonical form; what is too small to be stored is 0."""
    return int(number) if number.is_integer() or abs(number) < LEAST_FLOAT else number


def run_range(base: str, run: Run) -> KeyRange:
    """The items of the nodes in a run of cells; `base` is what their partition keys begin with."""
    first, last = run[0].first, run[-1].end - 1
    lo, hi = f"{first & _REST:0{_DIGITS}x}", f"{(last & _REST) + 1:0{_DIGITS}x}"
    return KeyRange(Index.TABLE, _partition(base, first), lo, hi)


def nearest_after(run: Run, item: CellItem) -> float:
    """The least distance in kilometers of the nodes of a run that come after an item."""
    return min([cell.nearest for cell in run if f"{(cell.end - 1) & _REST:0{_DIGITS}x}" >= item.cell])


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
