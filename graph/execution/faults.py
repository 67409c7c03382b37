"""Faults: the errors of a run as values, by object and field, until the response is written.

A field that reads may be null, and so may each item of a list that Query looks up; what is null in an object because of
an error, or the object itself, is found by one rule: an object whose own field may not be null and fails is null where
it is an item that may be null, else the field that led to it is. A test over the schema holds that this is GraphQL's.

Paths are made only where there are errors: from an object to the field that led to it, up to Query.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from graphql import FieldNode, GraphQLError, located_error

from graph.errors import MAX_ERRORS_PER_CODE, code_of, without_frames
from graph.execution.json_writers import FieldError
from store.concurrency import yield_to_loop

CHUNK = 256  # faults between two yields to the event loop

Tail = tuple[str | int, ...]
"""A part of the path of an error."""

NONE: Mapping[Any, Any] = MappingProxyType({})
"""In place of a dictionary of faults, of which there are none in almost all rows."""


class Column:
    """The JSON of the objects that one field led to from some owners, in order."""

    __slots__ = ("_origins", "faulty", "field", "json", "origins_of", "owner")

    def __init__(self, size: int, owner: Any, field: Any, origins_of: Callable[[], Iterable[tuple[int, Tail]]]) -> None:
        """`owner` are the rows of the owners, of which `origins_of` tells the number for each object, with the path
        from the field on.
        """
        self.json, self.owner, self.field, self.origins_of = [b""] * size, owner, field, origins_of
        self.faulty: list[int] | None = None
        """The rows in it that have a fault, where anything asks for them: what caches the JSON holds nothing else."""
        self._origins: list[tuple[int, Tail]] | None = None

    def origin(self, place: int) -> tuple[int, Tail]:
        """The number of the owner of an object, and its path from the field on."""
        if self._origins is None:
            self._origins = [*self.origins_of()]
        return self._origins[place]


class Fault(NamedTuple):
    """An error at a path from one of some rows on, or of the row itself. Rows know it by its number alone: what they
    lead to would not be freed at once.
    """

    number: int
    rows: Any
    row: int
    tail: Tail
    error: Exception
    nodes: Sequence[FieldNode]


class Faults:
    """The faults of one run. Of each code the first of the response become errors; `left_out` counts the others."""

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self._number = 0
        self.left_out: dict[str, int] = {}

    def add(
        self, rows: Any, row: int, tail: Tail, error: Exception, nodes: Sequence[FieldNode], *, is_row: bool = False
    ) -> int:
        """Note an error, that of the whole object where it `is_row`, and keep what it is in from the caches.

        Returns its number.
        """
        self._number += 1
        without_frames(error)
        if rows.column is not None and rows.column.faulty is not None:
            rows.column.faulty.append(row)
        if not is_row or _fail(rows, row, self._number):
            self.kept.append(Fault(self._number, rows, row, tail, error, nodes))
        return self._number

    def of_leaf(self, rows: Any, row: int, failed: FieldError, is_row: bool = False) -> None:
        """Note the error of a leaf field; `is_row` where it may not be null."""
        failed.__traceback__ = failed.__context__ = None  # whose frames hold it, and the rows
        self.add(rows, row, failed.path, failed.error, failed.nodes, is_row=is_row)

    async def errors(self) -> list[GraphQLError]:
        """The errors with their paths, in the order of the response; of what is null the one that caused it."""
        by_code: dict[str, list[tuple[tuple[int, ...], Tail, Fault]]] = {}
        for number, fault in enumerate(self.kept):
            if (found := _place(fault)) is not None:
                by_code.setdefault(code_of(fault.error), []).append((*found, fault))
            if number % CHUNK == 0:
                await yield_to_loop()
        first: list[tuple[tuple[int, ...], Tail, Fault]] = []
        for code, found_of_code in by_code.items():
            first += nsmallest(MAX_ERRORS_PER_CODE, found_of_code, key=itemgetter(0))
            self.left_out[code] = max(0, len(found_of_code) - MAX_ERRORS_PER_CODE)
        first.sort(key=itemgetter(0))
        shown = {id(fault.error) for _, _, fault in first}
        for fault in self.kept:
            if id(fault.error) not in shown:
                without_frames(fault.error, unexpected=True)
        self.kept = []
        return [located_error(fault.error, [*fault.nodes], [*path]) for _, path, fault in first]


def _fail(rows: Any, row: int, fault: int) -> bool:
    """Make an object null, and what led to it where it may not be null. Returns whether that is because of this."""
    if row in rows.failed:
        return False
    if rows.failed is NONE:
        rows.failed = {}
    rows.failed[row] = fault
    column = rows.column
    if column is None or column.field.has_nullable_items:
        return True
    number, tail = column.origin(rows.places[row])
    nulled = nulled_of(column.owner, column.field)
    if number in nulled and column.field.order_of(nulled[number][0]) <= column.field.order_of(tail):
        return False
    nulled[number] = tail, fault
    if not column.field.is_nullable:
        _fail(column.owner, number, fault)
    return True


def nulled_of(rows: Any, field: Any) -> dict[int, tuple[Tail, int]]:
    """The rows for which what a field leads to is null, each with the fault and where it is."""
    if rows.nulled is NONE:
        rows.nulled = {}
    found: dict[int, tuple[Tail, int]] = rows.nulled.setdefault(field, {})
    return found


def _place(fault: Fault) -> tuple[tuple[int, ...], Tail] | None:
    """The place in the order of the response, and the path, of an error; None at or below what another made null."""
    rows, row, path = fault.rows, fault.row, fault.tail
    place: tuple[int, ...] = () if rows.compiled is None else rows.compiled.order_of(path)
    while True:
        if rows.failed.get(row, fault.number) != fault.number:
            return None
        column = rows.column
        if column is None:
            return place, path
        field, owner = column.field, column.owner
        number, tail = column.origin(rows.places[row])
        if owner.nulled and owner.nulled.get(field, NONE).get(number, ((), fault.number))[1] != fault.number:
            return None
        path = (field.key, *tail, *path)
        above = () if owner.compiled is None else owner.compiled.order_of((field.key,))
        place = (*above, *field.order_of(tail), *place)
        rows, row = owner, number
