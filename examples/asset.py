"""Hierarchy of equipment, its parts, and the audits of both. Serve it with CLADE_HIERARCHIES=examples/asset.py."""

from enum import Enum

from clade import Date, Node, attribute


class Result(Enum):
    """Result of an audit."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    OPEN = "OPEN"


class AssetNode(Node, hierarchy="asset", many="assets"):
    """A piece of equipment, a part of one, or an audit."""


class Equipment(AssetNode, under=None):
    """A machine."""

    manufacturer: str | None = attribute("Name of its manufacturer.")
    installed: Date | None = attribute("Day of its installation.")


class Part(AssetNode, under=[Equipment, "self"]):
    """A part that has audits of its own."""

    serial_number: str | None = attribute("Serial number by its manufacturer.")


class Audit(AssetNode, under=[Equipment, Part]):
    """One audit; its key is its day or its number."""

    auditor: str | None = attribute("Name of the auditor.")
    result: Result | None = attribute("Its result; null until it has one.")
    findings: list[str] | None = attribute("Findings, one sentence each.")
