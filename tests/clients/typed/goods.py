"""A hierarchy whose attributes have every scalar."""

from clade import Date, DateTime, Decimal, Long, Node, Url, attribute


class Goods(Node, hierarchy="goods", many="allGoods"):
    """What a warehouse holds."""


class Item(Goods, under=[None]):
    """An item of a warehouse."""

    weight: Long | None = attribute("Weight in grams.")
    since: Date | None = attribute("First day in stock.")
    counted: DateTime | None = attribute("Time of the last count.")
    price: Decimal | None = attribute("Price.")
    site: Url | None = attribute("Web site.")
