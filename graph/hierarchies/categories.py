"""Hierarchy of a catalogue: categories in categories, products in them, and the variants that are sold."""

from graph.hierarchies.attribute import Decimal, attribute
from graph.hierarchies.node import Node


class CategoryNode(Node, hierarchy="category", many="categories"):
    """A part of the catalogue, of whatever level: a category, a product, a variant."""


class Category(CategoryNode, under=[None, "self"]):
    """A category, which may hold categories and products."""


class Product(CategoryNode, under=[Category]):
    """A product, which is sold as one or more variants."""

    brand: str | None = attribute("Its brand.")
    price: Decimal | None = attribute("Its price in the shop's currency.")


class Variant(CategoryNode, under=[Product]):
    """One variant of a product."""

    color: str | None = attribute("Its colour.")
    price: Decimal | None = attribute("Its price, where that differs from its product's.")
    stock: int | None = attribute("Number of pieces in stock.")
