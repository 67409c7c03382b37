"""Facets: the values that the nodes of a list have, each with the number of its nodes.

A field is counted without its own condition, so that a page can show what choosing another value would find. Its own
conditions are those that stand directly in `where` under its name; one that is to stay for its facet too stands in
`and`. All fields are counted in one pass: a node that meets every condition counts for each field, a node that meets
all but the conditions of one field counts for that field alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from math import isfinite
from typing import Any

from resolvers.sorting.conditions import Combination, Comparison, Condition, direct_parts
from resolvers.sorting.values import NodeValue, python_types
from store.concurrency import in_chunks
from store.errors import BadInput
from store.model.attributes import NUMBERS, Kind
from store.model.records import Counts, Record

MAX_FACETS = 10  # fields of one list: each is counted for every node
MAX_FACET_VALUES = 100  # shown of one field
COUNTED_A_CHUNK = 20  # nodes between two points at which the event loop may run others

_WITH_EXTREMES = frozenset((*NUMBERS, Kind.DATE, Kind.DATETIME))


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value as a condition takes it, and the number of nodes that have it."""

    value: str
    count: int


@dataclass(frozen=True)
class ListFacet:
    """What the nodes of a list have of one field: the most frequent values, the number of different ones, the number of
    nodes without a value, and the least and the greatest of numbers, dates and times.
    """

    field: str
    values: Sequence[FacetValue]
    distinct_count: int
    missing_count: int
    minimum: str | None = None
    maximum: str | None = None


@dataclass(frozen=True)
class FacetField:
    """A value that lists are counted by. `labels` are the texts of values that a condition takes by another name."""

    label: str
    value: NodeValue
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def values_of(self) -> Callable[[Record], Iterable[Any] | None]:
        """The values of a node as stored; None where it has none, as `isNull` finds it."""
        of, types = self.value.of, python_types(self.value.kind)
        if self.value.many:

            def elements(record: Record) -> list[Any] | None:
                found = of(record)
                return None if found is None else [one for one in found if type(one) in types]

            return elements
        return lambda record: None if (found := of(record)) is None else (found,)

    @cached_property
    def identity_of(self) -> Callable[[Any], Any]:
        """What is equal for equal values; None for a stored value that is none of the field's."""
        if self.value.kind is Kind.FLOAT:
            return _finite
        return _same if self.value.kind in (Kind.TEXT, Kind.BOOLEAN) else self.value.comparable

    def text(self, value: Any) -> str:
        """A value as a condition takes it."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.value.kind is Kind.FLOAT:
            return str(float(value)).removesuffix(".0")  # 90 and 90.0 are one value, and stores give either
        return self.labels.get(value, str(value))


@dataclass(frozen=True)
class FacetsRequest:
    """The facets that one field of a response asks of a list: of each field at most `first` values. Raises BadInput."""

    fields: tuple[FacetField, ...]
    first: int

    def __post_init__(self) -> None:
        if not 1 <= len(self.fields) <= MAX_FACETS:
            raise BadInput(f"facets has {len(self.fields)} fields; give 1 to {MAX_FACETS}.")
        labels = [one.label for one in self.fields]
        for label in labels:
            if labels.count(label) > 1:
                raise BadInput(f"facets has {label} twice; omit one.")
        if not 0 <= self.first <= MAX_FACET_VALUES:
            raise BadInput(f"first of facets is {self.first}; it must be 0 to {MAX_FACET_VALUES}.")

    @property
    def is_of_levels(self) -> bool:
        """Whether counts of levels answer it."""
        return [one.value.name for one in self.fields] == ["level"]

    @cached_property
    def of_nothing(self) -> list[ListFacet]:
        """The facets of an empty list."""
        return [ListFacet(one.label, [], 0, 0) for one in self.fields]

    async def of_levels(self, counts: Counts) -> list[ListFacet]:
        """The facets of a list with so many nodes of each level."""
        counted = _Counted(self.fields[0])
        for level, count in counts.items():
            counted.add(level, count)
        return [await counted.facet(self.first)]


async def count_facets(
    records: Sequence[Record], where: Condition | None, asked: Sequence[FacetsRequest]
) -> dict[FacetsRequest, list[ListFacet]]:
    """The facets of the nodes of a list that meet a condition; `records` are all nodes of the list."""
    counted = {one: _Counted(one) for request in asked for one in request.fields}
    others, conditions = own_conditions(where, counted)
    always = None if others is None else others.test
    names = {one.value.name: one for one in counted}
    own = [(counted[names[name]], condition.test) for name, condition in conditions.items()]
    async for chunk in in_chunks(records, COUNTED_A_CHUNK):
        for record in chunk:
            if always is not None and not always(record):
                continue
            failed = [one for one, test in own if not test(record)]
            if len(failed) < 2:
                for one in failed or counted.values():
                    one.count(record)
    return {request: [await counted[one].facet(request.first) for one in request.fields] for request in asked}


def own_conditions(
    where: Condition | None, fields: Iterable[FacetField]
) -> tuple[Condition | None, dict[str, Condition]]:
    """The condition that belongs to none of these fields, None where there is none, and that of each field's own by the
    name of its value.
    """
    own: dict[str, list[Condition]] = {}
    names = {one.value.name for one in fields}
    for part in direct_parts(where):
        if isinstance(part, Comparison) and part.value.name in names:
            own.setdefault(part.value.name, []).append(part)
    if where is None or not own:
        return where, {}
    taken = [part for parts in own.values() for part in parts]
    parts = where.parts if isinstance(where, Combination) else (where,)
    others = tuple([part for part in parts if part not in taken])
    found: dict[str, Condition] = {name: Combination("and", tuple(parts)) for name, parts in own.items()}
    return Combination("and", others) if others else None, found


class _Counted:
    """The values of one field that were counted so far."""

    def __init__(self, field: FacetField) -> None:
        self.field, self._missing = field, 0
        self._counts: Counter[Any] = Counter()
        self._first: dict[Any, Any] = {}  # of equal values the one that came first, such as 1.0 before 1.00
        self._values_of, self._identity_of = field.values_of, field.identity_of

    def count(self, record: Record) -> None:
        """Count a node, once for each of its values."""
        identity_of, found, values = self._identity_of, set[Any](), self._values_of(record)
        self._missing += values is None
        for value in values or ():
            identity = identity_of(value)
            if identity is not None and identity not in found:
                found.add(identity)
                self._first.setdefault(identity, value)
        self._counts.update(found)

    def add(self, value: Any, count: int) -> None:
        """Count so many nodes with a value."""
        identity = self._identity_of(value)
        if identity is not None and count:
            self._counts[identity] += count
            self._first[identity] = value

    async def facet(self, first: int) -> ListFacet:
        """The facet, with the values of most nodes, and of equally many in the order of values."""
        field, comparable, keys = self.field, self.field.value.comparable, list[Any]()
        async for chunk in in_chunks(list(self._counts.items())):
            keys += [(-count, comparable(self._first[identity]), identity) for identity, count in chunk]
        shown = [FacetValue(field.text(self._first[key[2]]), -key[0]) for key in nsmallest(first, keys)]
        least = greatest = None
        if field.value.kind in _WITH_EXTREMES and keys:
            least, greatest = [field.text(self._first[end(self._counts)]) for end in (min, max)]
        return ListFacet(field.label, shown, len(keys), self._missing, least, greatest)


def _same(value: Any) -> Any:
    return value


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
