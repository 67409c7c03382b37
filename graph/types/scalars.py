"""GraphQL's scalars beyond its own five. All are told as they are stored, so answers need no conversion."""

from typing import Any, NewType

import strawberry
from strawberry.types.scalar import ScalarDefinition

from graph.hierarchies.attribute import (
    Date,
    DateTime,
    Decimal,
    Long,
)
from store.errors import BadInput
from store.model.attributes import Attribute, Kind

Path = NewType("Path", str)


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput("A Path is written as a text, such as US/NE/Omaha.")
    return value


def _scalar(kind: Kind, description: str) -> ScalarDefinition:
    attribute = Attribute("A value", kind, "")
    return strawberry.scalar(name=kind.value, description=description, parse_value=attribute.parse)


SCALARS: dict[object, ScalarDefinition] = {
    Path: strawberry.scalar(
        name="Path",
        description="A node's place: the keys from its root down, divided by /, such as US/MO/St. Louis. "
        "Inside a key a / is written %2F and a % is written %25.",
        parse_value=_path,
    ),
    Long: _scalar(Kind.LONG, "A whole number of 64 bits."),
    Decimal: _scalar(Kind.DECIMAL, "A decimal number of up to 38 digits, as a text that keeps its places: 1299.00."),
    Date: _scalar(Kind.DATE, "A day of the calendar, as in RFC 3339: 2026-10-05."),
    DateTime: _scalar(Kind.DATETIME, "A moment in UTC, as in RFC 3339: 2026-10-05T12:30:00Z."),
}
