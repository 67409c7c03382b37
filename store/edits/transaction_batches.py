"""Batching: many small changes cut into transactions by count and bytes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from store.model.items import MAX_BATCH_BYTES, Change

T = TypeVar("T")


class Step(NamedTuple, Generic[T]):
    """Changes that have to be in one transaction, the bytes that they count, and what they are about."""

    subject: T
    changes: Sequence[Change]
    size: int


def in_transactions(steps: Iterable[Step[T]], max_changes: int) -> Iterator[tuple[list[Change], list[T]]]:
    """The changes of each transaction, with the subjects of its steps; a larger step has one of its own."""
    changes: list[Change] = []
    subjects: list[T] = []
    size = 0
    for step in steps:
        if changes and (len(changes) + len(step.changes) > max_changes or size + step.size > MAX_BATCH_BYTES):
            yield changes, subjects
            changes, subjects, size = [], [], 0
        changes += step.changes
        subjects.append(step.subject)
        size += step.size
    if subjects:
        yield changes, subjects
