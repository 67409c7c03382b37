"""Hierarchies with unique attributes, for tests."""

import enum

from graph.hierarchies.attribute import Date, Long, attribute
from graph.hierarchies.node import Node


class Bin(enum.Enum):
    """A bin of the store room."""

    LEFT = "left"
    RIGHT = "right"


class WareNode(Node, hierarchy="ware", many="wareNodes"):
    """What a shop has."""

    serial: Long | None = attribute("Number of all nodes.", unique=True, federation_key=True)


class Shelf(WareNode, under=[None, "self"]):
    """A shelf."""


class Ware(WareNode, under=Shelf):
    """A ware."""

    sku: str | None = attribute(
        "Stock keeping unit.", unique=True, was="code", max_length=5, pattern="[A-Z0-9-]*", federation_key=True
    )
    since: Date | None = attribute("Day on which it came.", unique=True)
    in_bin: Bin | None = attribute("Its bin.", unique=True)


class Piece(WareNode, under=Ware):
    """A piece of a ware."""

    sku: str | None = attribute("Stock keeping unit.", unique=True)


class Old(Node, hierarchy="old", many="olds"):
    """A hierarchy whose attribute was renamed twice."""


class OldShelf(Old, under=None, was="SHELF"):
    """A shelf."""


class OldWare(Old, under=OldShelf, was="WARE"):
    """A ware."""

    third: str | None = attribute("Code.", unique=True, was="second")
