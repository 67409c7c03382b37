"""Schemas that tests share: building one takes a third of a second, and nothing changes it afterwards."""

from functools import cache
from typing import Any

from graph.hierarchies.node import Node
from graph.schema import build_schema


@cache
def schema_of(*hierarchies: type[Node]) -> Any:
    """The schema of these hierarchies and the names of their types, built once in this process."""
    return build_schema(hierarchies)
