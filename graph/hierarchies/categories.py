"""Product catalogue: categories in categories, products in categories, and their variants."""

from graph.hierarchies.attribute import Decimal, attribute
from graph.hierarchies.node import Node


class CategoryNode(Node, hierarchy="category", many="categories", search="hierarchy"):
    """A node of the catalogue: a category, a product or a variant."""


class Category(CategoryNode, under=[None, "self"]):
    """A category of categories and products."""


class Product(CategoryNode, under=[Category]):
    """A product, sold as one or more variants."""

    brand: str | None = attribute("Brand or manufacturer.")
    price: Decimal | None = attribute("Price in the shop's currency.", minimum=0)


class Variant(CategoryNode, under=[Product]):
    """One variant of a product."""

    color: str | None = attribute("Colour.")
    price: Decimal | None = attribute("Price of the variant, where it differs from the product's.", minimum=0)
    stock: int | None = attribute("Number of pieces in stock.")
