"""The hierarchy `place` before levels and attributes were renamed: what its nodes were written with."""

from clade import Node, attribute


class Place(Node, hierarchy="place", search="hierarchy", search_weight="souls", location="latitude,longitude"):
    """A place."""

    souls: int | None = attribute("Number of inhabitants.")
    latitude: float | None = attribute("Latitude in degrees.")
    longitude: float | None = attribute("Longitude in degrees.")


class Land(Place, under=None):
    """A land."""


class City(Place, under=[Land]):
    """A town."""

    head: str | None = attribute("Name of the mayor.", search=True)
    gone: bool | None = attribute("An attribute that was removed.")
