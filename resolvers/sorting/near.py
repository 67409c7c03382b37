"""Near: the condition that a node lies in a circle, and the distance from its center, by which lists are sorted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from resolvers.sorting.conditions import DEAR, Condition, ConditionParser, direct_parts
from resolvers.sorting.values import NodeValue
from store.errors import BadInput
from store.kinds.cells import Point, point_of
from store.kinds.recipe import number_names
from store.model.attributes import Kind
from store.model.hierarchy import Hierarchy
from store.model.records import Record

MAX_KILOMETERS = 2_000
_BOUNDS = {"latitude": (-90, 90), "longitude": (-360, 360), "kilometers": (0, MAX_KILOMETERS)}


@dataclass(frozen=True)
class NearComparison:
    """The condition that a node of a hierarchy is at most so many kilometers from a point.

    `labels` are the names of the latitude and the longitude in the schema.
    """

    hierarchy: Hierarchy = field(compare=False, repr=False)
    labels: tuple[str, ...]
    point: Point
    kilometers: float
    is_cacheable: ClassVar[bool] = False  # nearly every client has a point of its own

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal conditions."""
        return "near", *self.point, self.kilometers

    @cached_property
    def distance(self) -> Callable[[Record], float | None]:
        """The kilometers from the point to a node; None where it does not lie at a valid point."""
        hierarchy, center = self.hierarchy, self.point
        names = {
            level: [number_names(hierarchy, level, name) for name in hierarchy.location or ()]
            for level in hierarchy.levels
            if self.outcome(level) is None
        }

        def kilometers(record: Record) -> float | None:
            point = point_of(record, *names[record.level]) if record.level in names else None
            return None if point is None else center.kilometers(point)

        return kilometers

    @cached_property
    def test(self) -> Callable[[Record], bool]:
        """Whether a node meets it."""
        distance, most = self.distance, self.kilometers
        return lambda record: (found := distance(record)) is not None and found <= most

    def outcome(self, level: str) -> bool | None:
        """False for a level that lacks the latitude or the longitude; else None, since it depends on the node."""
        return False if self.lacking(level) else None

    def lacking(self, level: str) -> set[str]:
        """The labels of the attributes that a level lacks."""
        found, names = self.hierarchy.any_level(level).attributes, self.hierarchy.location or ()
        return {label for name, label in zip(names, self.labels, strict=True) if name not in found}


@dataclass(frozen=True)
class NearValue:
    """The places of the nodes of a hierarchy, which conditions `near` are about."""

    hierarchy: Hierarchy
    labels: tuple[str, ...]
    cost: ClassVar[int] = DEAR

    def parse(self, given: Mapping[str, Any], parser: ConditionParser, depth: int) -> Condition:
        """The condition; raises BadInput for what is out of bounds."""
        for name, (least, most) in _BOUNDS.items():
            if not least <= given[name] <= most:  # NaN is neither
                raise BadInput(f"{name} of near in where is {given[name]}; it must be {least} to {most:,}.")
        point = Point.of(given["latitude"], given["longitude"])
        assert point is not None  # within the bounds  # noqa: S101
        return NearComparison(self.hierarchy, self.labels, point, given["kilometers"])


@dataclass(frozen=True, kw_only=True)
class Distance(NodeValue):
    """The kilometers from the point of a condition, as a value to sort by."""

    near: NearComparison

    @cached_property
    def of(self) -> Callable[[Record], Any]:
        return self.near.distance


def direct_near(where: Condition | None) -> NearComparison | None:
    """The condition `near` that stands directly in `where`; None where there is none, or several."""
    found = [one for one in direct_parts(where) if isinstance(one, NearComparison)]
    return found[0] if len(found) == 1 else None


def distance_from(where: Condition | None) -> NodeValue:
    """What `orderBy: {field: DISTANCE}` sorts by. Raises BadInput where `where` does not tell the point."""
    near = direct_near(where)
    if near is None:
        raise BadInput(
            "orderBy has DISTANCE, and where has no near to tell the point; give one directly in where, outside of "
            "and, or and not."
        )
    return Distance("distance", Kind.FLOAT, near=near)
