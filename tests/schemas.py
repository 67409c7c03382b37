"""Schemas that tests share: building one takes a third of a second, and nothing changes it afterwards."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from graph.hierarchies.node import Node
from graph.schema import build_schema


def schema_of(*hierarchies: type[Node]) -> Any:
    """The schema of these hierarchies and the names of their types, built once in this process."""
    return shared_schema(hierarchies)


def shared_schema(hierarchies: Sequence[type[Node]], *, expose: frozenset[str] = frozenset()) -> Any:
    """What `build_schema` returns, built once in this process."""
    return _built(tuple(hierarchies), expose)


@cache
def _built(hierarchies: tuple[type[Node], ...], expose: frozenset[str]) -> Any:
    return build_schema(hierarchies, expose=expose)
