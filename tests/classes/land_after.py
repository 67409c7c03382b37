"""The hierarchy as it is now: Town is City, people and mayor have other names, gone is gone."""

from clade import Node, attribute


class Land(Node, hierarchy="land", search="hierarchy", search_weight="population"):
    """Land."""


class Country(Land, under=None):
    """A country."""


class City(Land, under=[Country], was="Town"):
    """A city."""

    population: int | None = attribute("Inhabitants.", was=["people", "souls"])
    major: str | None = attribute("Mayor.", was="mayor", search=True)


class Farm(Land, under=["Country", "City"]):
    """A farm."""
