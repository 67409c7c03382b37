"""Decoding of items: the content of what is stored as a typed value, and the error for an item of the wrong shape."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from store.errors import DamagedItem, shorten, shown
from store.model.values import Value

T = TypeVar("T")

Number = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Partition = Annotated[str, Meta(pattern="^[^#]+#.")]
SortKey = Annotated[str, Meta(pattern="^#(.*#)?$")]
Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]


def decoded(item: Mapping[str, Value], kind: type[T]) -> T:
    """The content of an item as a typed value; raises DamagedItem with the key of one that has another shape."""
    try:
        return msgspec.convert(item, kind)
    except msgspec.ValidationError as error:
        raise damaged(item, str(error)) from None


def problem_of(item: Mapping[str, Value], kind: type[object]) -> str | None:
    """Why `decoded` would fail, None where it would not."""
    try:
        decoded(item, kind)
    except DamagedItem as error:
        return error.problem
    return None


def damaged(item: Mapping[str, Value], problem: str) -> DamagedItem:
    """The error for an item whose content cannot be read."""
    pk, sk = [shorten(value) if isinstance(value, str) else shown(value) for value in map(item.get, ("pk", "sk"))]
    problem = problem.replace(" - at `$.", " in `")  # as msgspec says it
    return DamagedItem(pk, sk, f"{problem[:1].lower()}{problem[1:]}")
