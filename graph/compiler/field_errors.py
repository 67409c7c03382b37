"""Field errors: the errors of a compiled query's fields, located in the response once it is written.

An error is kept with the place where it arose: some nodes of the response, the row of one of them, and its field. Its
path is made afterwards, by going up from there, and only for the errors that are reported: the first of each code in
the order of the document.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from graphql import FieldNode, GraphQLError, located_error

from graph.errors import MAX_ERRORS_PER_CODE, cause_of, code_of, without_frames


class Step(NamedTuple):
    """A response key or an index, with its rank among those beside it in the document, and whether it may be null."""

    rank: int
    key: str | int
    may_be_null: bool


class Rows(Protocol):
    """Objects or values of the response, in rows."""

    def path(self, row: int) -> list[Step]:
        """The place of a row in the response."""
        ...


class Root:
    """The object around the whole response, in one row."""

    def path(self, row: int) -> list[Step]:
        return []


@dataclass(frozen=True)
class _FailedRows:
    """One error of some rows, in their order: at each row, or at a place below it."""

    rows: Rows
    failed: Sequence[int]
    below: tuple[Step, ...]
    nodes: Sequence[FieldNode]
    error: Exception

    def located(self, left_out: Counter[str]) -> list[tuple[list[Step], GraphQLError]]:
        """The error at the first places that it makes null; the others are counted by its code."""
        places: dict[tuple[str | int, ...], list[Step]] = {}
        code = code_of(cause_of(self.error))
        for count, row in enumerate(self.failed):
            steps = [*self.rows.path(row), *self.below]
            if len(places) == MAX_ERRORS_PER_CODE and steps[-1].may_be_null:  # so are those of the other rows
                left_out[code] += len(self.failed) - count
                break
            null = tuple(keys_of(steps[: _nulled(steps)]))
            if len(places) < MAX_ERRORS_PER_CODE:
                places.setdefault(null, steps)
            elif null not in places:
                left_out[code] += 1
        error = _unlocated(self.error)
        return [(steps, located_error(error, self.nodes, keys_of(steps))) for steps in places.values()]


class FieldErrors:
    """The errors of one response; `exist` is whether there are any."""

    __slots__ = ("_failed", "_located", "exist")

    def __init__(self) -> None:
        self.exist = False
        self._failed: list[_FailedRows] = []
        self._located: list[tuple[Callable[[], list[Step]], GraphQLError]] = []

    def add(
        self, rows: Rows, failed: Sequence[int], nodes: Sequence[FieldNode], error: Exception, *below: Step
    ) -> None:
        """Report an error of rows, at a place `below` each of them, whose field is at `nodes` of the document."""
        without_frames(error)
        self.exist = True
        self._failed.append(_FailedRows(rows, failed, below, nodes, error))

    def add_located(self, field: Callable[[], list[Step]], error: GraphQLError) -> None:
        """Report an error that has its path already, of the field whose place `field` gives, or of what is below it."""
        self.exist = True
        self._located.append((field, error))

    def in_order(self) -> tuple[list[GraphQLError], Counter[str]]:
        """The first errors of each code in the order of the document, and the number of the others by their codes.

        Of the errors that make one place null, and of those below it, only the first is among them, as in graphql-core.
        """
        left_out: Counter[str] = Counter()
        found = [(place(), error) for place, error in self._located]
        for some in self._failed:
            found += some.located(left_out)
        found.sort(key=lambda one: [step.rank for step in one[0]])
        nulls: set[tuple[str | int, ...]] = set()
        errors = []
        for steps, error in found:
            path = tuple(keys_of(steps))
            if not any(path[:length] in nulls for length in range(len(path) + 1)):
                nulls.add(path[: _nulled(steps)])
                errors.append(error)
        return errors, left_out


def _nulled(steps: Sequence[Step]) -> int:
    """How many of the steps lead to the place that an error after the last of them makes null."""
    return next((length for length in range(len(steps), 0, -1) if steps[length - 1].may_be_null), 0)


def _unlocated(error: Exception) -> Exception:
    """The error without a path: one that has a path would keep it at each row."""
    if not isinstance(error, GraphQLError) or error.path is None:
        return error
    return error.original_error or GraphQLError(error.message, extensions=error.extensions)


def keys_of(steps: Iterable[Step]) -> list[str | int]:
    """The path of a place, as in a response."""
    return [step.key for step in steps]


def steps_below(places: Iterable[str | int]) -> list[Step]:
    """Steps into the value of a leaf, which is written in their order."""
    return [Step(place if isinstance(place, int) else 0, place, may_be_null=True) for place in places]
