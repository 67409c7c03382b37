"""Hierarchies for tests of the store, defined without classes of `graph`."""

from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Level


def level(name: str, under: str, **attributes: Kind) -> Level:
    """A level; `under` names the levels that it may stand under, separated by spaces, `-` for a root."""
    places = frozenset(None if place == "-" else place for place in under.split())
    kinds = {key: Attribute(key, kind, f"The {key}.", max_length=1_000_000) for key, kind in attributes.items()}
    return Level(name, name.title().replace("_", ""), f"A {name}.", places, kinds)


def hierarchy(name: str, *levels: Level) -> Hierarchy:
    return Hierarchy(name, {level.name: level for level in levels})


LOCATION = hierarchy(
    "location",
    level("COUNTRY", "-", iso3=Kind.TEXT, population=Kind.LONG),
    level("REGION", "COUNTRY"),
    level("STATE", "COUNTRY REGION"),
    level("COUNTY", "STATE REGION"),
    level("CITY", "COUNTY STATE REGION COUNTRY", population=Kind.LONG, latitude=Kind.FLOAT),
    level("NEIGHBORHOOD", "CITY"),
    level("POSTAL_CODE", "CITY NEIGHBORHOOD COUNTY STATE"),
    level(
        "STORE",
        "POSTAL_CODE NEIGHBORHOOD CITY COUNTY STATE",
        street=Kind.TEXT,
        square_feet=Kind.INT,
        longitude=Kind.FLOAT,
        opened=Kind.DATE,
    ),
)

CATEGORY = hierarchy(
    "category",
    level("CATEGORY", "- CATEGORY", note=Kind.TEXT),
    level("PRODUCT", "CATEGORY", price=Kind.DECIMAL),
    level("VARIANT", "PRODUCT", stock=Kind.INT),
)
