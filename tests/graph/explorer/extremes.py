# ruff: noqa: RUF009
"""Nodes of the server that tests of the explorer share, with extreme values, depths and numbers of children."""

from dataclasses import dataclass

from clade import Date, Decimal, Long, Node, attribute
from tests.graph.explorer.steps import EVIL

BEYOND_DOUBLES = 2**53 + 1
LEAST, MOST = -(2**63), 2**63 - 1
NUMBERS = {
    "serial": BEYOND_DOUBLES,
    "serials": [LEAST, MOST],
    "count": {"number": BEYOND_DOUBLES, "numbers": [LEAST, MOST]},
}
MAX_NODES = MANY = 1_000
CHAIN = [f"Level {number}" for number in range(32)]


@dataclass
class Count:
    """A nested value: 64-bit integers are wherever an attribute may have them."""

    number: Long | None = attribute("A number.")
    numbers: list[Long] | None = attribute("Numbers.")


class Thing(Node, hierarchy="thing"):
    """A thing."""


class Part(Thing, under=[None, "self"]):
    """A part of a thing."""

    serial: Long | None = attribute("Serial number.")
    serials: list[Long] | None = attribute("Former serial numbers.")
    count: Count | None = attribute("A count.")
    maker: str | None = attribute("Maker.")
    tags: list[str] | None = attribute("Tags.")
    price: Decimal | None = attribute("Price.")
    weight: int | None = attribute("Weight in grams.")
    sold: bool | None = attribute("Whether it was sold.")
    since: Date | None = attribute("First day.")


MAKERS = [*[f"Maker {number:03}" for number in range(115)], *["Big"] * 5, *[EVIL] * 3, *['O\'Neil & "Söhne"'] * 2, " "]
"""Of the wares on the shelf: more different ones than a menu shows, and such that are no plain text."""
WARES = [
    *({"maker": one, "price": f"{at}.50", "weight": at, "sold": at % 2 == 0} for at, one in enumerate(MAKERS)),
    {"tags": ["red", "blue"], "since": "2026-01-02"}, {"tags": ["red"], "since": "2026-03-04"}, {"tags": ["blue"]}, {},
]  # fmt: skip
THINGS = [
    (["Shelf"], "PART", "Shelf with wares"),
    *((["Shelf", f"W{number:03}"], "PART", f"Ware {number}", ware) for number, ware in enumerate(WARES)),
    (["Shelf", "W000", "Screw"], "PART", "Screw", {"maker": "Big"}),
    *((CHAIN[: number + 1], "PART") for number in range(32)),
    *(([*CHAIN[:number], f"Beside {number}"], "PART") for number in range(1, 32)),
    (["Numbers"], "PART", "Numbers", NUMBERS),
]
CATEGORIES = [
    (["All"], "CATEGORY"),
    *((["All", f"Number {number:05}"], "CATEGORY") for number in range(MANY + 1)),
    (["All", "Number 00001", "One"], "PRODUCT"),
    (["Zoo"], "CATEGORY", "The zoo"),
    (["Zoo", "Evil"], "CATEGORY", EVIL),
]
SHOP = {
    "owner": "Ada", "site": "https://ada.example/", "greeting": {"de": "Hallo"}, "codes": ["ab", "c"],
    "rent": {"amount": "12345.50", "currency": "EUR"}, "weekday": "SUNDAY", "checked": "2026-01-02T03:04:05Z",
    "address": {"street": "Lane 1", "hours": [{"day": "MONDAY", "opens": 480}]}, "area": "2.5", "opened": "2026-01-02",
}  # fmt: skip
PLACES = [
    (["Mall"], "MALL", "Mall", {"floors": 2}),
    (["Mall", "Ada"], "SHOP", "Ada's", SHOP),
    (["Mall", "Bob"], "SHOP", "Bob's", {"owner": "Bob", "area": "13"}),  # of which a computed field fails
]


def city(*path: str, at: tuple[float, float], name: str | None = None, population: int = 100) -> tuple:
    where = {"latitude": at[0], "longitude": at[1], "population": population}
    return list(path), "CITY", name or path[-1], where


STATE = {"population": 1961504, "latitude": 41.5, "longitude": -99.9}
ANDORRA = {"population": 77006, "names": {"ja": "アンドラ"}}
LOCATIONS = [
    (["AD"], "COUNTRY", "Andorra", ANDORRA),
    *((["AD", key], "STATE", name) for key, name in (("02", "Canillo"), ("03", "Encamp"))),
    city("AD", "ALV", name="Andorra la Vella", at=(42.51, 1.52)),
    (["AE"], "COUNTRY", "United Arab Emirates"),
    (["AE", "DU"], "STATE", "Dubai"),
    (["AF"], "COUNTRY", "Afghanistan"),
    (["US"], "COUNTRY", "United States"),
    (["US", "NE"], "STATE", "Nebraska", STATE),
    city("US", "NE", "OMA", name="Omaha", at=(41.26, -95.94), population=486051),
    city("US", "NE", "PAP", name="Papillion", at=(41.15, -96.04)),
    *(city("US", "NE", f"T{number:02}", name=f"Town {number}", at=(40.5 + number / 20, -97)) for number in range(30)),
    city("US", "OMA", name="Omaha Beach", at=(34.0, -118.0), population=5),
    (["Sea"], "COUNTRY", "Pacific"),
    city("Sea", "1", name="Fiji", at=(-17.7, 178.0)),
    city("Sea", "2", name=EVIL, at=(-16.0, 179.0)),
    city("Sea", "3", name="Samoa", at=(-13.8, -172.0)),
    city("Sea", "4", name="Nowhere", at=(0.0, 0.0)),
]
BEYOND = {("Sea", "4"): {"latitude": 500.0}}  # that was stored before latitudes had bounds
