# ruff: noqa: RUF009
"""A hierarchy whose attributes have every type with an object and every option."""

from dataclasses import dataclass
from enum import Enum

from clade import Date, DateTime, Decimal, Localized, Money, Node, Url, attribute, computed


class Weekday(Enum):
    MONDAY = "Mon"
    SUNDAY = "Sun"


@dataclass
class Hours:
    """Opening hours of a day."""

    day: Weekday | None = attribute("Day of the week.", required=True)
    opens: int | None = attribute("Minute of the day.", minimum=0, maximum=1439, default=480)


@dataclass
class Address:
    """Postal address."""

    street: str | None = attribute("Street and number.", required=True, max_length=30)
    postcode: str | None = attribute("Postcode.", pattern="[0-9]{4,5}", deprecated="Use `code`.")
    hours: list[Hours] | None = attribute("Opening hours.", inaccessible=True)


class Place(Node, hierarchy="place"):
    """A place of the test."""

    site: Url | None = attribute("Web site.", tags=["public"], shareable=True)
    greeting: Localized | None = attribute("Greeting.", max_length=20)

    @computed("Name in capitals.")
    def shout(self) -> str | None:
        return self.name.upper()


class Mall(Place, under=None):
    """A mall."""

    floors: int | None = attribute("Number of floors.", minimum=1, maximum=9, default=1, shareable=True)


class Shop(Place, under=[Mall]):
    """A shop."""

    owner: str | None = attribute("Owner.", required=True, pattern="[A-Z][a-z]+", was="keeper")
    address: Address | None = attribute("Address.")
    rent: Money | None = attribute("Rent of a month.", tags=["internal", "money"])
    secret: str | None = attribute("Alarm code.", inaccessible=True)
    fees: list[Money] | None = attribute("Fees.")
    area: Decimal | None = attribute("Area in square metres.", minimum="0.5", maximum=1000)
    opened: Date | None = attribute("First day.", minimum="1990-01-01")
    checked: DateTime | None = attribute("Last check.", maximum="2030-01-01T00:00:00.5Z")
    codes: list[str] | None = attribute("Codes.", max_length=3, pattern="[a-z]+", sortable=False)
    weekday: Weekday | None = attribute("Day off.", default=Weekday.SUNDAY, deprecated="Use `address`.")

    @computed("Rent of a year, in its currency.", deprecated="Use `rent`.")
    def yearly_rent(self) -> Money | None:
        return self.rent and {"amount": str(int(float(self.rent["amount"]) * 12)), "currency": self.rent["currency"]}

    @computed("Streets of the address.")
    def streets(self) -> list[str] | None:
        street = (self.address or {}).get("street")
        return street and [street, self.key]

    @computed("Square of the area; fails for 13.")
    def square(self) -> float | None:
        if self.area == "13":
            raise ValueError("thirteen")
        return None if self.area is None else float(self.area) ** 2
