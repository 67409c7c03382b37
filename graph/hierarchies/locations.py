"""Hierarchy of places on Earth, from countries down to shops."""

from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node


class Location(Node, hierarchy="location", many="locations"):
    """A place, of whatever level: a country, a city, a shop."""

    code: str | None = attribute("A code of the place in another system, such as ISO 3166.")
    population: int | None = attribute("Number of inhabitants.")
    latitude: float | None = attribute("Degrees north of the equator.")
    longitude: float | None = attribute("Degrees east of Greenwich.")


class Country(Location, under=None):
    """A country; its key is its ISO 3166-1 code of two letters."""

    iso3: str | None = attribute("The ISO 3166-1 code of three letters.")


class Region(Location, under=[Country]):
    """A part of a country that is divided into states itself."""


class State(Location, under=[Country, Region]):
    """A state, province or department."""


class County(Location, under=[State, Region]):
    """A county or district."""


class City(Location, under=[County, State, Region, Country]):
    """A city, town or village."""

    timezone: str | None = attribute("Its time zone's name in the IANA database.")


class Neighborhood(Location, under=[City]):
    """A part of a city."""


class PostalCode(Location, under=[City, Neighborhood, County, State]):
    """The area of one postal code."""


class Store(Location, under=[PostalCode, Neighborhood, City, County, State]):
    """A shop at an address."""

    brand: str | None = attribute("Brand of the shop.")
    street: str | None = attribute("Street and number.")
    phone: str | None = attribute("Its telephone number.")
    square_feet: int | None = attribute("The area of its floor, in square feet.")
