"""Extremes: every kind of attribute at its bounds, enums whose values are not their names, and 32 levels."""

from dataclasses import dataclass
from enum import Enum, auto

from clade import Date, DateTime, Decimal, Localized, Long, Money, Node, Url, attribute, computed


class State(Enum):
    """State of a thing; no value is like its name."""

    OPEN = "open"
    CLOSED = "shut"
    null_ = "OPEN"
    WAITING = 3


class Size(Enum):
    """Size of a thing, numbered by Python."""

    SMALL = auto()
    LARGE = auto()


@dataclass
class Point:
    """A place on a drawing."""

    x: Decimal | None = attribute("Distance from the left.")
    y: Long | None = attribute("Distance from the top.")


@dataclass
class Parcel:
    """A parcel, with values inside of values."""

    code: str | None = attribute("The code on it.", required=True, max_length=20)
    size: Size | None = attribute("Its size.")
    corner: Point | None = attribute("Its corner.")
    days: list[Date] | None = attribute("Days on which it was moved.")
    price: Money | None = attribute("Its price.")


class Thing(Node, hierarchy="thing", many="things", search="hierarchy", location="latitude,longitude"):
    """A thing of any depth."""

    note: str | None = attribute("Text on every level.", search=True)
    sku: str | None = attribute("Its stock keeping unit.", unique=True, federation_key=True)


class Box(Thing, under=[None, "self"]):
    """A box, which has every kind of attribute."""

    text: str | None = attribute("A text.", max_length=1000)
    required_flag: bool | None = attribute("A boolean, which every box has.", default=True)
    small: int | None = attribute("A 32-bit integer.")
    large: Long | None = attribute("A 64-bit integer.")
    ratio: float | None = attribute("A number.")
    exact: Decimal | None = attribute("A decimal of 38 digits.")
    day: Date | None = attribute("A day.")
    moment: DateTime | None = attribute("A time.")
    site: Url | None = attribute("An address.")
    state: State | None = attribute("Its state.")
    size: Size | None = attribute("Its size.", default=Size.SMALL)
    price: Money | None = attribute("A price.")
    parcel: Parcel | None = attribute("A value with fields.")
    greeting: Localized | None = attribute("A text by language.")
    latitude: float | None = attribute("Degrees to the north.", minimum=-90, maximum=90)
    longitude: float | None = attribute("Degrees to the east.", minimum=-180, maximum=180)

    texts: list[str] | None = attribute("Texts.")
    flags: list[bool] | None = attribute("Booleans.")
    smalls: list[int] | None = attribute("32-bit integers.")
    larges: list[Long] | None = attribute("64-bit integers.")
    ratios: list[float] | None = attribute("Numbers.")
    exacts: list[Decimal] | None = attribute("Decimals.")
    days: list[Date] | None = attribute("Days.")
    moments: list[DateTime] | None = attribute("Times.")
    sites: list[Url] | None = attribute("Addresses.")
    states: list[State] | None = attribute("States.")
    prices: list[Money] | None = attribute("Prices.")
    parcels: list[Parcel] | None = attribute("Values with fields.")

    @computed("Name and state.")
    def label(self) -> str | None:
        return f"{self.name} {self.state}"


class Card(Thing, under=[Box, None]):
    """A card, in a box or by itself."""

    title: str | None = attribute("Its title.", required=True, pattern="[^\\n]*")
    grade: int | None = attribute("Its grade.", minimum=0, maximum=9)


class Slip(Thing, under=[Box]):
    """A slip of paper, always in a box."""

    mark: str | None = attribute("What is on it.")
