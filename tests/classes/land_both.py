"""The hierarchy of `land_before` as it has to be before `land_after` is served beside it: it reads the new names."""

from clade import Node, attribute


class Land(Node, hierarchy="land", search="hierarchy", search_weight="people"):
    """Land."""


class Country(Land, under=None):
    """A country."""


class Town(Land, under=[Country]):
    """A town."""

    people: int | None = attribute("Inhabitants.", was=["population", "souls"])
    mayor: str | None = attribute("Mayor.", was="major", search=True)
    gone: str | None = attribute("An attribute that goes.")


class Farm(Land, under=[Country, Town]):
    """A farm."""
