# ruff: noqa: RUF009
"""Hierarchies that use every option of hierarchies, levels and attributes: what they make is promised."""

from dataclasses import dataclass
from enum import Enum

from clade import Date, DateTime, Decimal, Localized, Long, Money, Node, Url, attribute, computed


class Grade(Enum):
    """Their values are not their names."""

    FIRST = "first-class"
    SECOND = 2
    THIRD = None


@dataclass
class Size:
    """Outer measures."""

    width: Decimal | None = attribute("Width in metres.", required=True, minimum=0, maximum="99.5")
    unit: str | None = attribute("Unit of the width.", default="m", max_length=3, pattern="[a-z]+", tags=["size"])


@dataclass
class Label:
    """A label with values of every kind, some of them lists."""

    text: str | None = attribute("What is written on it.", deprecated="Use `lines`.", sortable=False)
    lines: list[str] | None = attribute("What is written on it, line by line.", shareable=True)
    number: int | None = attribute("Its number.")
    serial: Long | None = attribute("Its serial number.")
    weight: float | None = attribute("Its weight.")
    price: Decimal | None = attribute("Its price.")
    printed: bool | None = attribute("Whether it is printed.", inaccessible=True)
    since: Date | None = attribute("Its first day.")
    checked: DateTime | None = attribute("Its last check.")
    page: Url | None = attribute("Its page.")
    fee: Money | None = attribute("Its fee.")
    grade: Grade | None = attribute("Its grade.")
    size: Size | None = attribute("Its size.")
    sizes: list[Size] | None = attribute("Sizes it comes in.")


class Place(
    Node,
    hierarchy="place",
    many="places",
    search="hierarchy",
    search_weight="people",
    location="latitude, longitude",
):
    """A place: a land, a town or a shop."""

    people: int | None = attribute("Number of inhabitants.", was=["souls", "heads"])
    latitude: float | None = attribute("Latitude in degrees.")
    longitude: float | None = attribute("Longitude in degrees.")

    @computed("Name in capitals.")
    def shout(self) -> str | None:
        return self.name.upper()


class Land(Place, under=None):
    """A land."""

    motto: Localized | None = attribute("Its motto.", max_length=100)


class Town(Place, under=[Land, "self"], was="City"):
    """A town or a part of it."""

    mayor: str | None = attribute("Name of the mayor.", search=True, was="head")


class Shop(Place, under=["Town", Land]):
    """A shop."""

    owner: str | None = attribute("Name of the owner.", required=True, pattern="[^0-9]+", search=True)
    grade: Grade | None = attribute("Its grade.", default=Grade.SECOND, search=True)
    opened: Date | None = attribute("First day.", minimum="1990-01-01", maximum="2100-12-31")


class Thing(Node, hierarchy="thing", many="everything", prefix="Golden", search="tree"):
    """A box of samples, or a sample."""

    label: Label | None = attribute("Its label.")


class Box(Thing, under=[None, "self"]):
    """A box of boxes and samples."""


class Sample(Thing, under=[Box]):
    """A sample, with an attribute of every kind."""

    text: str | None = attribute("A text.", search=True, tags=["golden", "text"], shareable=True)
    number: int | None = attribute("A number of 32 bits.")
    serial: Long | None = attribute("A number of 64 bits.")
    weight: float | None = attribute("A number.")
    price: Decimal | None = attribute("A decimal.")
    printed: bool | None = attribute("True or false.")
    since: Date | None = attribute("A date.")
    checked: DateTime | None = attribute("A time.", deprecated="Use `since`.")
    page: Url | None = attribute("A URL.")
    fee: Money | None = attribute("An amount of money.")
    grade: Grade | None = attribute("A grade.")
    size: Size | None = attribute("A size.")
    words: Localized | None = attribute("Words in several languages.")
    texts: list[str] | None = attribute("Texts.", max_length=20, inaccessible=True)
    numbers: list[int] | None = attribute("Numbers of 32 bits.", minimum=-2_147_483_648, maximum=2_147_483_647)
    serials: list[Long] | None = attribute("Numbers of 64 bits.")
    weights: list[float] | None = attribute("Numbers.")
    prices: list[Decimal] | None = attribute("Decimals.", sortable=False)
    flags: list[bool] | None = attribute("True or false, several times.")
    days: list[Date] | None = attribute("Dates.")
    times: list[DateTime] | None = attribute("Times.")
    pages: list[Url] | None = attribute("URLs.")
    fees: list[Money] | None = attribute("Amounts of money.")
    grades: list[Grade] | None = attribute("Grades.")
    labels: list[Label] | None = attribute("Labels.")

    @computed("Its fee twelve times.", deprecated="Use `fee`.")
    def yearly(self) -> Money | None:
        return self.fee and {"amount": str(12 * int(float(self.fee["amount"]))), "currency": self.fee["currency"]}

    @computed("Its numbers, doubled.")
    def doubled(self) -> list[Long] | None:
        return self.numbers and [2 * one for one in self.numbers]


class Note(Node, hierarchy="note"):
    """A page of notes, as plain as a hierarchy can be."""


class Page(Note, under=[None, "self"]):
    """A page."""
