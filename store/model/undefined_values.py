"""Undefined attributes and levels: stored values that no class of the hierarchy defines, with their counts.

They remain when an attribute or a level is removed from a class or renamed. They stay stored, and are not served.
Values under the former name of an attribute, and values that break a rule, are counted as well; both are served.
"""

from collections import Counter
from collections.abc import Mapping

from store.errors import BadInput
from store.model.attributes import Value
from store.model.hierarchy import RESERVED, Hierarchy, Level
from store.text import quantity, shorten, shown


class Undefined:
    """The counts of undefined attributes and levels, former names and broken rules among the nodes of one hierarchy."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._levels: Counter[str] = Counter()
        self._attributes: Counter[tuple[str, str]] = Counter()
        self._former: Counter[tuple[str, str]] = Counter()
        self._broken: Counter[tuple[str, str]] = Counter()
        self._breaking: dict[tuple[str, str], str] = {}  # the path of the first node that breaks a rule

    def see(self, level: str, values: Mapping[str, Value]) -> dict[str, Value]:
        """Count a node, given by its item or its attributes, and return its undefined attributes."""
        found_level = self._hierarchy.levels.get(level)
        if found_level is None:
            self._levels[level] += 1
            return {name: value for name, value in values.items() if name not in RESERVED}
        attributes = found_level.attributes
        found = {name: value for name, value in values.items() if name not in attributes and name not in RESERVED}
        for name in list(found):
            if found_level.attribute(name) is None:
                self._attributes[level, name] += 1
            else:
                self._former[level, name] += 1
                del found[name]
        return found

    def see_rules(self, level: str, values: Mapping[str, Value], path: str) -> None:
        """Count the rules that the values of a node break, or that it breaks by having none."""
        for attribute in self._hierarchy.any_level(level).attributes.values():
            value = attribute.value_in(values)
            if value is None and attribute.rules.required:
                rule = f"no {attribute.name}, which is required"
            elif value is not None and attribute.is_valid(value) and (broken := attribute.broken_rule(value)):
                rule = f"a value of {attribute.name} that {broken}"
            else:
                continue
            self._broken[level, rule] += 1
            self._breaking.setdefault((level, rule), path)

    def add(self, other: "Undefined") -> None:
        """Add the counts of other nodes."""
        self._levels += other._levels
        self._attributes += other._attributes
        self._former += other._former
        self._broken += other._broken
        self._breaking = other._breaking | self._breaking

    def sentences(self) -> list[str]:
        """One message for each undefined level, undefined attribute, former name and broken rule of a level."""
        found: list[tuple[str, str]] = []

        def label(level: str) -> str:
            return self._hierarchy.any_level(level).label

        for level, count in self._levels.items():
            nodes = f"{quantity(count, 'node')} {'is' if count == 1 else 'are'}"
            found.append((level, f"{nodes} of the level {shorten(level)}, which is not defined."))
        for (level, name), count in sorted(self._attributes.items()):
            nodes = f"{quantity(count, 'node')} {'has' if count == 1 else 'have'}"
            found.append((level, f"{nodes} a value of {shorten(name)}, which {label(level)} does not define."))
        for (level, name), count in sorted(self._former.items()):
            nodes = f"{quantity(count, 'node')} of {label(level)} {'has' if count == 1 else 'have'}"
            present = self._hierarchy.any_level(level).attribute(name)
            found.append((level, f"{nodes} {present.name if present else name} under its former name {name}."))
        for (level, rule), count in sorted(self._broken.items()):
            nodes = f"{quantity(count, 'node')} of {label(level)} {'has' if count == 1 else 'have'}"
            found.append((level, f"{nodes} {rule}, such as {self._breaking[level, rule]}."))
        return [f"{self._hierarchy.name}: {sentence}" for _, sentence in sorted(found)]


def undefined_values(level: Level, values: object) -> dict[str, Value]:
    """The undefined attributes in a file; those that the level defines by now are parsed as its own.

    Raises BadInput where they are no attributes by name.
    """
    if not isinstance(values, dict):
        raise BadInput(f"undefined must be an object of attributes by name, not {shown(values)}.")
    found: dict[str, Value] = {}
    for name, value in values.items():
        if not name or name in RESERVED:
            raise BadInput(f'"{name}" is not the name of an attribute.')
        attribute = level.attribute(name)
        found[attribute.name if attribute else name] = attribute.change(value) if attribute else value
    return found
