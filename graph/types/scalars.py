"""Custom scalars. All are serialized as they are stored, so responses need no conversion."""

from typing import Any, NewType

import strawberry
from strawberry.types.scalar import ScalarDefinition

from graph.hierarchies.attribute import Date, DateTime, Decimal, Long, Url
from store.errors import BadInput
from store.model.attributes import Attribute, Kind

_XML_SCHEMA = "https://www.w3.org/TR/xmlschema11-2/"
_RFC_3339 = "https://www.rfc-editor.org/rfc/rfc3339#section-5.6"
_RFC_3986 = "https://www.rfc-editor.org/rfc/rfc3986"

Path = NewType("Path", str)


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput("A Path is a string, such as US/NE/Omaha.")
    return value


def _scalar(kind: Kind, description: str, specification: str) -> ScalarDefinition:
    parse = Attribute("A value", kind, "").parse
    return strawberry.scalar(
        name=kind.value, description=description, specified_by_url=specification, parse_value=parse
    )


SCALARS: dict[object, ScalarDefinition] = {
    Path: strawberry.scalar(
        name="Path",
        description="Path of a node: the keys from the root down, separated by /, such as US/MO/St. Louis. "
        "Within a key, / is escaped as %2F and % as %25.",
        specified_by_url=f"{_RFC_3986}#section-3.3",
        parse_value=_path,
    ),
    Long: _scalar(Kind.LONG, "Signed 64-bit integer.", f"{_XML_SCHEMA}#long"),
    Decimal: _scalar(
        Kind.DECIMAL,
        "Decimal of up to 38 digits, as a string with all its decimal places, such as 1299.00.",
        f"{_XML_SCHEMA}#decimal",
    ),
    Date: _scalar(Kind.DATE, "Calendar date in RFC 3339, such as 2026-10-05.", _RFC_3339),
    DateTime: _scalar(Kind.DATETIME, "Date and time in UTC in RFC 3339, such as 2026-10-05T12:30:00Z.", _RFC_3339),
    Url: _scalar(Kind.URL, "Absolute URL of http or https, such as https://example.com/a.", _RFC_3986),
}
