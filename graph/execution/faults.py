"""Faults: the errors of a run as values, by object and field, until the response is written.

A field that reads may be null, and so may each item of a list that Query looks up; what is null in an object because of
an error, or the object itself, is found by one rule: an object whose own field may not be null and fails is null where
it is an item that may be null, else the field that led to it is. A test over the schema holds that this is GraphQL's.

Paths are made only where there are errors: from an object to the field that led to it, up to Query.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson
from graphql import FieldNode, GraphQLError, located_error

from graph.errors import MAX_ERRORS_PER_CODE, code_of, without_frames

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


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """An error at a path from one of some rows on, or of the row itself."""

    rows: Any
    index: int
    tail: Tail
    error: Exception
    nodes: Sequence[FieldNode]


class Faults:
    """The faults of one run: those that are `kept`, and the numbers of those of each code that are `left_out`.

    Of the rows of one type and position the first of each code are enough: no others are listed.
    """

    def __init__(self) -> None:
        self.kept: list[Fault] = []
        self._counts: dict[tuple[int, str], int] = {}
        self.left_out: dict[str, int] = {}

    def add(
        self, rows: Any, index: int, tail: Tail, error: Exception, nodes: Sequence[FieldNode], *, is_row: bool = False
    ) -> Fault:
        """Note an error, that of the whole object where it `is_row`, and keep what it is in from the caches."""
        fault, code = Fault(rows, index, tail, error, nodes), code_of(error)
        without_frames(error)
        if rows.column.faulty is not None:
            rows.column.faulty.append(index)
        if is_row and not _fail(rows, index, fault):
            return fault
        number = self._counts[id(rows), code] = self._counts.get((id(rows), code), 0) + 1
        if number > MAX_ERRORS_PER_CODE:
            self.left_out[code] = self.left_out.get(code, 0) + 1
        else:
            self.kept.append(fault)
        return fault

    def errors(self) -> list[GraphQLError]:
        """The errors with their paths; of what is null the one that caused it."""
        found = [(_path(fault), fault) for fault in self.kept]
        return [located_error(one.error, [*one.nodes], [*path]) for path, one in found if path is not None]


def _fail(rows: Any, index: int, fault: Fault) -> bool:
    """Make an object null, and what led to it where it may not be null. Returns whether that was not so before."""
    if index in rows.failed:
        return False
    if rows.failed is NONE:
        rows.failed = {}
    rows.failed[index] = fault
    column = rows.column
    if column.owner is None or column.field.has_nullable_items:
        return True
    number, tail = column.origin(rows.places[index])
    nulled = nulled_of(column.owner, column.field)
    if number in nulled and nulled[number][0] <= tail:
        return False
    nulled[number] = tail, fault
    return column.field.is_nullable or _fail(column.owner, number, fault)


def nulled_of(rows: Any, field: Any) -> dict[int, tuple[Tail, Fault]]:
    """The rows for which what a field leads to is null, each with the fault and where it is."""
    if rows.nulled is NONE:
        rows.nulled = {}
    found: dict[int, tuple[Tail, Fault]] = rows.nulled.setdefault(field, {})
    return found


def _path(fault: Fault) -> Tail | None:
    """The path of an error; None for one at or below a place that is null because of another."""
    path, rows, index = fault.tail, fault.rows, fault.index
    while True:
        if rows.failed.get(index, fault) is not fault:
            return None
        column = rows.column
        if column.owner is None:
            return path
        number, tail = column.origin(rows.places[index])
        nulled = column.owner.nulled.get(column.field)
        if nulled is not None and number in nulled and nulled[number][1] is not fault:
            return None
        path, rows, index = (column.field.key, *tail, *path), column.owner, number


def in_order(errors: Iterable[GraphQLError], data: bytes) -> list[GraphQLError]:
    """Errors in the order of a response, whose `data` is this JSON."""
    response = orjson.loads(data)
    return sorted(errors, key=lambda error: _position(error.path or (), response))


def _position(path: Iterable[str | int], data: Any) -> list[int]:
    """The position of an error in the response, as far as `data` is not null there."""
    found: list[int] = []
    for key in path:
        if not isinstance(data, dict | list):
            break
        found.append(list(data).index(key) if isinstance(data, dict) else int(key))
        data = data[key]  # type: ignore[index]
    return found
