"""A hierarchy when its nodes were written."""

from clade import Node, attribute


class Land(Node, hierarchy="land", search="hierarchy", search_weight="people"):
    """Land."""


class Country(Land, under=None):
    """A country."""


class Town(Land, under=[Country]):
    """A town."""

    people: int | None = attribute("Inhabitants.", was="souls")
    mayor: str | None = attribute("Mayor.", search=True)
    gone: str | None = attribute("An attribute that goes.")


class Farm(Land, under=[Country, Town]):
    """A farm."""
