"""The hierarchy of places without search, for the benchmark of imports."""

from clade import Node, attribute


class Location(Node, hierarchy="location", many="locations"):
    """A place."""

    code: str | None = attribute("Code of the place.")
    population: int | None = attribute("Number of inhabitants.")
    latitude: float | None = attribute("Latitude in degrees, north positive.")
    longitude: float | None = attribute("Longitude in degrees, east positive.")


class Country(Location, under=None):
    """A country."""

    iso3: str | None = attribute("ISO 3166-1 alpha-3 code.")


class Region(Location, under=[Country]):
    """A part of a country, itself divided into states."""


class State(Location, under=[Country, Region]):
    """A state, province or department."""


class County(Location, under=[State, Region]):
    """A county or district."""


class City(Location, under=[County, State, Region, Country]):
    """A city, town or village."""

    timezone: str | None = attribute("Time zone of the IANA database.")
