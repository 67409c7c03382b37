"""Hierarchies with prefixes, for a graph that has a Product and a Store of its own."""

from graph.hierarchies.node import Node


class Location(Node, hierarchy="geo", many="locations", prefix="Geo"):
    """A place, of whatever level."""


class City(Location, under=None):
    """A city."""


class Store(Location, under=[City]):
    """A shop at an address."""


class CategoryNode(Node, hierarchy="goods", many="categories", prefix="Goods"):
    """A part of the catalogue, of whatever level."""


class Category(CategoryNode, under=None):
    """A category."""


class Product(CategoryNode, under=[Category]):
    """A product."""
