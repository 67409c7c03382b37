"""Undefined attributes and levels: stored values that no class of the hierarchy defines, with their counts.

They remain when an attribute or a level is removed from a class or renamed. They stay stored, and are not served.
"""

from collections import Counter
from collections.abc import Mapping

from store.errors import BadInput
from store.model.attributes import Value
from store.model.hierarchy import RESERVED, Hierarchy, Level
from store.text import quantity, shorten


class Undefined:
    """The counts of undefined attributes and levels among the nodes of one hierarchy."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._levels: Counter[str] = Counter()
        self._attributes: Counter[tuple[str, str]] = Counter()

    def see(self, level: str, values: Mapping[str, Value]) -> dict[str, Value]:
        """Count a node, given by its item or its attributes, and return its undefined attributes."""
        found_level = self._hierarchy.levels.get(level)
        if found_level is None:
            self._levels[level] += 1
            return {name: value for name, value in values.items() if name not in RESERVED}
        attributes = found_level.attributes
        found = {name: value for name, value in values.items() if name not in attributes and name not in RESERVED}
        for name in found:
            self._attributes[level, name] += 1
        return found

    def add(self, other: "Undefined") -> None:
        """Add the counts of other nodes."""
        self._levels += other._levels
        self._attributes += other._attributes

    def sentences(self) -> list[str]:
        """One message for each undefined level, and for each undefined attribute of a level."""
        found: list[tuple[str, str]] = []
        for level, count in self._levels.items():
            nodes = f"{quantity(count, 'node')} {'is' if count == 1 else 'are'}"
            found.append((level, f"{nodes} of the level {shorten(level)}, which is not defined."))
        for (level, name), count in sorted(self._attributes.items()):
            nodes = f"{quantity(count, 'node')} {'has' if count == 1 else 'have'}"
            found.append((level, f"{nodes} a value of {shorten(name)}, which {level} does not define."))
        return [f"{self._hierarchy.name}: {sentence}" for _, sentence in sorted(found)]


def undefined_values(level: Level, values: object) -> dict[str, Value]:
    """The undefined attributes in a file; those that the level defines by now are parsed as its own.

    Raises BadInput where they are no attributes by name.
    """
    if not isinstance(values, dict):
        raise BadInput(f"undefined holds attributes by their names, which {shorten(repr(values))} does not.")
    found: dict[str, Value] = {}
    for name, value in values.items():
        if not name or name in RESERVED:
            raise BadInput(f'"{name}" is no name of an attribute.')
        attribute = level.attributes.get(name)
        found[name] = value if attribute is None or value is None else attribute.parse(value)
    return found
