"""Custom scalars. All are serialized as they are stored, so responses need no conversion."""

from typing import Any, NewType

import strawberry
from strawberry.types.scalar import ScalarDefinition

from graph.hierarchies.attribute import Date, DateTime, Decimal, Long, Url
from store.errors import BadInput
from store.model.attributes import Attribute, Kind

Path = NewType("Path", str)


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput("A Path is a string, such as US/NE/Omaha.")
    return value


def _scalar(kind: Kind, description: str) -> ScalarDefinition:
    attribute = Attribute("A value", kind, "")
    return strawberry.scalar(name=kind.value, description=description, parse_value=attribute.parse)


SCALARS: dict[object, ScalarDefinition] = {
    Path: strawberry.scalar(
        name="Path",
        description="Path of a node: the keys from the root down, separated by /, such as US/MO/St. Louis. "
        "Within a key, / is escaped as %2F and % as %25.",
        parse_value=_path,
    ),
    Long: _scalar(Kind.LONG, "Signed 64-bit integer."),
    Decimal: _scalar(Kind.DECIMAL, "Decimal of up to 38 digits, as a string that keeps its places, such as 1299.00."),
    Date: _scalar(Kind.DATE, "Calendar date in RFC 3339, such as 2026-10-05."),
    DateTime: _scalar(Kind.DATETIME, "Date and time in UTC in RFC 3339, such as 2026-10-05T12:30:00Z."),
    Url: _scalar(Kind.URL, "Absolute URL of http or https, such as https://example.com/a."),
}
