"""The shop after the second change: serial numbers are searched, and shops are found near a point."""

from clade import Node, attribute


class Shop(Node, hierarchy="shop", search="hierarchy", search_weight="stock", location="latitude,longitude"):
    """Something in a shop."""


class Department(Shop, under=[None, "self"]):
    """A department."""

    latitude: float | None = attribute("Where it is.")
    longitude: float | None = attribute("Where it is.")


class Product(Shop, under=[Department]):
    """A product."""

    brand: str | None = attribute("Its brand.", search=True)
    serial: str | None = attribute("Its serial number.", search=True)
    stock: int | None = attribute("How many there are.")


class Variant(Shop, under=[Product]):
    """A variant."""

    color: str | None = attribute("Its color.", search=True)
