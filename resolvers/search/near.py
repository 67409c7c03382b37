"""Near: the nodes of a hierarchy in a circle, the nearest first.

| read | index | key condition | limit |
| --- | --- | --- | --- |
| cells | table | `pk = "cells/location#05" AND sk BETWEEN :first AND :end`, for each of up to 7 runs of cells | 6,000 |
| hits | table | keys of the nodes | the hits |
| below a node | table | `begins_with(sk, :top)`, where items prove nothing and at most 2,000 nodes lie there | all |

So it takes at most 8 requests in two rounds, and one more in the first round where the index of the search items was
not read a short time ago. The runs cover the circle and some of what is around it. A run whose items are too many
for one page of DynamoDB is cut; then the hits are proven as far as they are nearer than all that was not read of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from resolvers.search.finder import Arguments, Finder, FoundPage, Place, Reading, Scope, Selected
from resolvers.session.request import Request
from store.concurrency import in_chunks
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.keys import KeyRange
from store.model.records import Item, Record
from store.search.cells import CellItem, Point, cover, nearest_after, point_of, run_range
from store.search.marker import Kind

MAX_KILOMETERS = 2_000
MAX_RUNS = 7  # Queries of one search; the index and the hits are the other two of nine requests
MAX_ITEMS = 6_000  # of one run; of some 110 bytes, so that they are mostly one page of at most 1 MB


@dataclass(frozen=True)
class NearArguments(Arguments):
    """The arguments of a search for what is near. Raises BadInput."""

    point: Point
    kilometers: float = 50.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.kilometers <= MAX_KILOMETERS:
            raise BadInput(f"kilometers is {self.kilometers:g}; it must be 0 to {MAX_KILOMETERS:,}.")


def point_at(latitude: float, longitude: float) -> Point:
    """The point at these degrees. Raises BadInput."""
    point = Point.of(latitude, longitude)
    if point is None:
        fact = f"latitude is {latitude:g} and longitude {longitude:g}"
        raise BadInput(f"{fact}; latitude is from -90 to 90 degrees, longitude from -360 to 360.")
    return point


async def near(
    request: Request, hierarchy: Hierarchy, asked: NearArguments, selected: Selected = Selected()
) -> FoundPage:
    """The nodes in the circle, at most `first`, with their distances and what is `selected` of them.

    Raises as `Finder.find`.
    """
    hits, complete = await _Near(request, hierarchy, asked, selected).find()
    kilometers = {hit.record.id: hit.place[0] for hit in hits}
    return FoundPage([hit.record for hit in hits], complete=complete, kilometers=kilometers)


class _Near(Finder[NearArguments]):
    """One search for what is near."""

    kind, prefix = Kind.PLACES, "cells"

    def place(self, record: Record) -> Place | None:
        if self._asked.levels is not None and record.level not in self._asked.levels:
            return None
        point = point_of(self._hierarchy, record)
        kilometers = None if point is None else self._asked.point.kilometers(point)
        return None if kilometers is None or kilometers > self._asked.kilometers else (kilometers, record.id)

    def ranges(self, base: str, reading: Reading) -> Sequence[tuple[KeyRange, int]]:
        self._runs = cover(self._asked.point, self._asked.kilometers, MAX_RUNS)
        return [(run_range(base, run), MAX_ITEMS) for run in self._runs]

    async def candidates(self, scope: Scope, read: Sequence[Sequence[Item]]) -> tuple[Sequence[CellItem], bool]:
        found: dict[str, tuple[Place, CellItem]] = {}
        unread = [self._asked.kilometers]  # the least distance of a node that was not read
        for run, items in zip(self._runs, read, strict=True):
            async for chunk in in_chunks(items):
                found |= self._places(scope, chunk)
            if len(items) == MAX_ITEMS:
                unread.append(nearest_after(run, CellItem.of(self._hierarchy.name, items[-1])))
        ahead = sorted(found.values())
        last = ahead[: self._asked.first][-1:] if len(ahead) >= self._asked.first else []
        is_proven = len(unread) == 1 or any(kilometers < min(unread) for (kilometers, _), _ in last)
        return [item for _, item in ahead], is_proven

    def _places(self, scope: Scope, items: Sequence[Item]) -> dict[str, tuple[Place, CellItem]]:
        """The nodes in the circle, by their ids, that their items show in the scope."""
        asked, found = self._asked, {}
        for item in items:
            one = CellItem.of(self._hierarchy.name, item)
            if one.level not in (self._hierarchy.levels if asked.levels is None else asked.levels):
                continue
            kilometers = asked.point.kilometers(one.point)
            if kilometers <= asked.kilometers and scope.may_hold(one.line):
                found[one.id] = (kilometers, one.id), one
        return found
