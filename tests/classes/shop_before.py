"""A shop before two changes: it has offers, and only brands are searched."""

from clade import Node, attribute


class Shop(Node, hierarchy="shop", search="hierarchy", search_weight="stock"):
    """Something in a shop."""


class Department(Shop, under=[None, "self"]):
    """A department."""


class Product(Shop, under=[Department]):
    """A product."""

    brand: str | None = attribute("Its brand.", search=True)
    serial: str | None = attribute("Its serial number.")
    stock: int | None = attribute("How many there are.")


class Offer(Shop, under=[Department]):
    """An offer."""
