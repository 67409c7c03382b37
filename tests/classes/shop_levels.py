"""The shop after the first change: without offers, with variants."""

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


class Variant(Shop, under=[Product]):
    """A variant."""

    color: str | None = attribute("Its color.", search=True)
