"""A hierarchy with unique attributes: codes of products and variants, numbers and days of products."""

from clade import Date, Node, attribute


class GoodsNode(Node, hierarchy="goods"):
    """Place in an assortment."""


class Shelf(GoodsNode, under=[None, "Shelf"]):
    """Shelf."""


class Product(GoodsNode, under=[Shelf]):
    """Product."""

    sku: str | None = attribute("Stock keeping unit.", unique=True)
    number: int | None = attribute("Number in the list of prices.", unique=True)
    listed: Date | None = attribute("Day of which it is the product.", unique=True)
    qty: int | None = attribute("Pieces in stock.")


class Variant(GoodsNode, under=[Product]):
    """Variant."""

    sku: str | None = attribute("Stock keeping unit.", unique=True, required=True)
    qty: int | None = attribute("Pieces in stock.")
