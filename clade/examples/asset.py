"""Equipment, its parts, and the audits of both. Serve it with CLADE_HIERARCHIES=clade.examples.asset."""

from enum import Enum

from clade import Date, Node, attribute


class Result(Enum):
    """How an audit ended."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    OPEN = "OPEN"


class AssetNode(Node, hierarchy="asset", many="assets"):
    """A piece of equipment, a part of one, or an audit."""


class Equipment(AssetNode, under=None):
    """A machine that stands somewhere and is looked after."""

    manufacturer: str | None = attribute("Who made it.")
    installed: Date | None = attribute("When it was put where it stands.")


class Part(AssetNode, under=[Equipment, "self"]):
    """A part that is audited by itself."""

    serial_number: str | None = attribute("The maker's number of this very part.")


class Audit(AssetNode, under=[Equipment, Part]):
    """One audit; its key is the day or the number under which it was begun."""

    auditor: str | None = attribute("Who looked.")
    result: Result | None = attribute("How it ended.")
    findings: list[str] | None = attribute("What was found, one sentence each.")
