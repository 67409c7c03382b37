# ruff: noqa: RUF009
"""Hierarchy of extreme values, for tests of the explorer: 64-bit integers wherever an attribute may have them."""

from dataclasses import dataclass

from clade import Long, Node, attribute

BEYOND_DOUBLES = 2**53 + 1
LEAST, MOST = -(2**63), 2**63 - 1


@dataclass
class Count:
    """A nested value."""

    number: Long | None = attribute("A number.")
    numbers: list[Long] | None = attribute("Numbers.")


class Thing(Node, hierarchy="thing"):
    """A thing."""


class Part(Thing, under=[None, "self"]):
    """A part of a thing."""

    serial: Long | None = attribute("Serial number.")
    serials: list[Long] | None = attribute("Former serial numbers.")
    count: Count | None = attribute("A count.")
