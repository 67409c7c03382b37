"""Demand control: `@cost` and `@listSize` of the subgraph, by which gateways estimate a query before they send it.

A cost of 1 is one node of the response, or one further read unit of the store. Fields that are read with their node
cost nothing. Weights were measured on the demo data (`tests/federation/test_demand_control.py`). Composers reject costs
on fields of interfaces and on their arguments.
"""

from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

from graph.hierarchies.names import near_field_of, paths_field_of, search_field_of, types_of
from graph.hierarchies.node import Node

ASSUMED_PAGE = 100  # items of a list without first or last
ASSUMED_ANCESTORS = 8
ASSUMED_LOOKUPS = 10  # of paths or ids: composers take no list for the size

SEARCH, NEAR, CHANGES = 10, 5, 10
ARGUMENTS = {"orderBy": 50, "where": 50, "kilometers": 30}
"""Costs of arguments, where a query gives them: sorted and filtered lists are read whole, larger circles read more."""

_FREE = ("PageInfo", "LocalizedName", "Money", "Localized", "LocalizedText")
_NODES = 'sizedFields: ["nodes", "edges"], '


def demand_control(classes: Sequence[type[Node]]) -> dict[tuple[str, str], str]:
    """The costs and sizes of what is named by these hierarchies: searches, lookups of many, and nested values."""
    found = {(name, ""): _cost(0) for name in _FREE} | {
        ("Query", "changes"): _cost(CHANGES),
        ("Query", "moves"): _size(ASSUMED_PAGE, "first"),
        ("Query", "nodes"): _size(ASSUMED_LOOKUPS),
        ("TreeChangeFeed", "changes"): _size(ASSUMED_PAGE),
    }
    for cls in classes:
        if cls.search is not None:
            hits = _size(None, "first", fields='sizedFields: ["nodes"], ')
            found["Query", search_field_of(cls)] = f"{_cost(SEARCH)} {hits}"
        if cls.location is not None:
            found["Query", near_field_of(cls)] = f"{_cost(NEAR)} {_size(None, 'first', fields=_NODES)}"
        found["Query", paths_field_of(cls)] = _size(ASSUMED_LOOKUPS)
        for level in (cls, *cls.levels.values()):
            found |= {(one.__name__, ""): _cost(0) for one in types_of(level) if is_dataclass(one)}
    return found


def type_cost(definition: Any) -> str:
    """The `@cost` of an object type in an SDL document that its name says: an edge costs what its node costs."""
    is_edge = definition.name.value.endswith("Edge") and not definition.interfaces
    return _cost(0) if is_edge and any(field.name.value == "node" for field in definition.fields) else ""


def argument_cost(argument: Any) -> str:
    """The `@cost` of an argument in an SDL document; empty for one that costs nothing."""
    name = argument.name.value
    return _cost(ARGUMENTS[name]) if name in ARGUMENTS else ""


def list_size(field: Any) -> str:
    """The `@listSize` of a field in an SDL document that its type says; empty for one that is no list of nodes."""
    kind = field.type
    while not hasattr(kind, "name"):
        kind = kind.type
    slicing = [argument.name.value for argument in field.arguments or () if argument.name.value in ("first", "last")]
    if kind.name.value.endswith("Connection") and slicing:
        return _size(ASSUMED_PAGE, *slicing, fields=_NODES)
    return _size(ASSUMED_ANCESTORS) if field.name.value == "ancestors" else ""


def _cost(weight: int) -> str:
    return f"@cost(weight: {weight})"


def _size(assumed: int | None, *slicing: str, fields: str = "") -> str:
    """`assumed` is None where a slicing argument has a default: not every composer takes both."""
    size = "" if assumed is None else f"assumedSize: {assumed}, "
    names = ", ".join(f'"{name}"' for name in slicing)
    arguments = f"slicingArguments: [{names}], " if slicing else ""
    return f"@listSize({size}{arguments}{fields}requireOneSlicingArgument: false)"
