"""Hierarchy of places on Earth, from countries down to shops."""

from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node


class Location(
    Node,
    hierarchy="location",
    many="locations",
    search="hierarchy",
    search_weight="population",
    location="latitude,longitude",
):
    """A place of any level, such as a country, a city or a shop."""

    code: str | None = attribute("Code of the place, such as its ISO 3166 code.")
    population: int | None = attribute("Number of inhabitants.", minimum=0)
    latitude: float | None = attribute("Latitude in degrees, north positive.")
    longitude: float | None = attribute("Longitude in degrees, east positive.")


class Country(Location, under=None):
    """A country; its key is its ISO 3166-1 alpha-2 code, such as US."""

    iso3: str | None = attribute("ISO 3166-1 alpha-3 code, such as USA.")


class Region(Location, under=[Country]):
    """A part of a country, itself divided into states."""


class State(Location, under=[Country, Region]):
    """A state, province or department."""


class County(Location, under=[State, Region]):
    """A county or district."""


class City(Location, under=[County, State, Region, Country]):
    """A city, town or village."""

    timezone: str | None = attribute("Time zone of the IANA database, such as America/Chicago.")


class Neighborhood(Location, under=[City]):
    """A part of a city."""


class PostalCode(Location, under=[City, Neighborhood, County, State]):
    """The area of one postal code."""


class Store(Location, under=[PostalCode, Neighborhood, City, County, State]):
    """A shop at an address."""

    brand: str | None = attribute("Brand of the shop.")
    street: str | None = attribute("Street and number.")
    phone: str | None = attribute("Telephone number.")
    square_feet: int | None = attribute("Floor area in square feet.", minimum=0)
