"""Ordering: the order that a client requests for a list, by values of its nodes, then by their places in the tree.

Nodes without a value come last in either direction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from itertools import zip_longest
from typing import Any

from resolvers.sorting.values import Comparable, NodeValue, folded, python_types
from store.concurrency import in_chunks, yield_to_loop
from store.errors import BadInput
from store.model.attributes import Kind
from store.model.records import Record

MAX_ORDER_FIELDS = 4  # of one list: each is sorted by anew, and is in cursors
NODES_A_CHUNK = 100  # between two points at which the event loop may run others
MAX_SORTED_CHARACTERS = 100  # of a text; texts that begin alike stay in the order of the list

SortValue = Comparable | None


class PlaceOrder(StrEnum):
    """The orders by the places of nodes in the tree."""

    POSITION = "position"  # as editors ordered siblings: by level, then by position
    KEY = "key"
    PATH = "path"  # depth-first


@dataclass(frozen=True)
class OrderField:
    """A value to sort by, and its direction."""

    value: NodeValue
    descending: bool = False

    @cached_property
    def of(self) -> Callable[[Record], SortValue]:
        """The value of a node that is sorted by, which its cursors contain."""
        if self.value.kind is not Kind.TEXT:
            return self.value.comparable_of
        read = self.value.of

        def beginning(record: Record) -> SortValue:
            text = read(record)
            return None if text is None else _beginning(text)

        return beginning

    def compare(self, one: SortValue, other: SortValue) -> int:
        """-1, 0 or 1: whether a node with one value comes before a node with the other."""
        if one is None or other is None:
            return (one is None) - (other is None)
        sign = (one > other) - (one < other)  # type: ignore[operator]  # of the same kind
        return -sign if self.descending else sign

    def checked(self, value: object) -> SortValue:
        """A value out of a cursor; raises ValueError for one that no node can have."""
        if value is None:
            return None
        expected = (int,) if self.value.kind is Kind.ENUM else python_types(self.value.kind)
        found: Any = value if type(value) in expected else None
        if self.value.kind is Kind.DECIMAL and found is not None:
            found = self.value.comparable(found)
        if self.value.kind is Kind.TEXT and found is not None:
            found = _beginning(found)  # as today, since a server of another version may have made the cursor
        if found is None:
            raise ValueError(value)
        return found  # type: ignore[no-any-return]


def _beginning(text: str) -> str:
    return folded(text[:MAX_SORTED_CHARACTERS])[:MAX_SORTED_CHARACTERS]


@dataclass(frozen=True)
class Ordering:
    """The fields to sort by, the first before the others, then the places of nodes that have the same values.

    `place` is None for the order that the list has by itself; `descending` is its direction, that of values is in
    `fields`. Raises BadInput for more than 4 fields, and for one that is given twice.
    """

    fields: tuple[OrderField, ...] = ()
    place: PlaceOrder | None = None
    descending: bool = False

    def __post_init__(self) -> None:
        if len(self.fields) > MAX_ORDER_FIELDS:
            raise BadInput(f"orderBy has {len(self.fields)} fields; at most {MAX_ORDER_FIELDS} are allowed.")
        names = [field.value.name for field in self.fields]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"orderBy has {name.upper()} twice; omit one.")

    @property
    def identity(self) -> object:
        """Plain values that are equal for equal orders."""
        fields = [(field.value.name, field.value.languages, field.descending) for field in self.fields]
        return fields, self.place, self.descending

    async def sorted(self, records: Sequence[Record], place: Callable[[Record], Any]) -> list[Record]:
        """The nodes in this order, yielding to the event loop in between; `place` is that of a node."""
        values: list[Any] = await of_each(place, records)
        numbers = await sorted_numbers(range(len(records)), values, reverse=self.descending)
        found = [records[number] for number in numbers]
        for field in reversed(self.fields):  # sorting is stable
            values = await of_each(field.of, found)
            numbers = [number for number, value in enumerate(values) if value is not None]
            missing = [number for number, value in enumerate(values) if value is None]
            numbers = await sorted_numbers(numbers, values, reverse=field.descending)
            found = [found[number] for number in numbers + missing]
        return found

    def values(self, record: Record) -> list[SortValue]:
        """What a node is sorted by."""
        return [field.of(record) for field in self.fields]

    def plain_values(self, record: Record) -> list[str | int | float | bool | None]:
        """The same as JSON has it."""
        return [str(value) if isinstance(value, Decimal) else value for value in self.values(record)]

    def checked(self, values: object) -> list[SortValue]:
        """Values out of a cursor; raises ValueError where they are not of this order."""
        if not isinstance(values, list) or len(values) != len(self.fields):
            raise ValueError(values)
        return [field.checked(value) for field, value in zip(self.fields, values, strict=True)]

    def compare(self, one: Sequence[SortValue], other: Sequence[SortValue]) -> int:
        """-1, 0 or 1: whether a node with these values comes before a node with the others; 0 if the list decides."""
        for field, mine, theirs in zip(self.fields, one, other, strict=True):
            if sign := field.compare(mine, theirs):
                return sign
        return 0


async def of_each(value: Callable[[Record], Any], records: Sequence[Record]) -> list[Any]:
    """A value of each node."""
    values: list[Any] = []
    async for chunk in in_chunks(records, NODES_A_CHUNK):
        values += map(value, chunk)
    return values


async def sorted_numbers(numbers: Sequence[int], values: Sequence[Any], *, reverse: bool) -> list[int]:
    """Numbers of values, all of one kind, in their order, yielding to the event loop in between.

    Runs are sorted, then merged in pairs: of two sorted runs Python's sort makes one in a single pass.
    """
    runs: list[Sequence[int]] = []
    async for chunk in in_chunks(numbers):
        runs.append(sorted(chunk, key=values.__getitem__, reverse=reverse))
    while len(runs) > 1:
        pairs, runs = [[*one, *other] for one, other in zip_longest(runs[::2], runs[1::2], fillvalue=())], []
        for pair in pairs:
            pair.sort(key=values.__getitem__, reverse=reverse)
            runs.append(pair)
            await yield_to_loop()
    return list(runs[0]) if runs else []


LIST_ORDER = Ordering()
"""The order that a list has by itself."""
