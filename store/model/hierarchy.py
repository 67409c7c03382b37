"""Hierarchy: levels, their attributes, and the levels that each may be under; and what is stored that no class of it
defines.

Undefined attributes and levels remain when one is removed from a class or renamed. They stay stored, and are not
served. Values under the former name of an attribute, and values that break a rule, are counted as well; both are
served.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

from store.errors import BadInput, FaultList, quantity, shorten, shown, suggestion
from store.model.attributes import NUMBERS, Attribute, Kind, Value
from store.model.names import NAMES, with_changes

MAX_UNIQUE = 4  # attributes of a level, so that the largest edit of a node fits into a transaction
MAX_NAME_CHARACTERS = 64  # of the names of a hierarchy and of a level, which are parts of keys
LEVEL_NAME = re.compile(rf"[A-Z][A-Z0-9_]{{0,{MAX_NAME_CHARACTERS - 1}}}")
# Names of Clade's own attributes of items, of the fields that every node has, and of columns of files.
RESERVED = frozenset(
    "pk sk parent rank tier expires id path key name level depth above kids below revision updated_at changed_by "
    "changed_at root ancestors children descendants siblings child_count descendant_count history at_revision "
    "undefined names name_language level_name position".split()
)


@dataclass(frozen=True)
class Level:
    """A level. `name` is its name in the table (`POSTAL_CODE`), `title` its type's name (`PostalCode`).

    `under` are the names of the levels that its nodes may be under; None among them: they may be roots. `renamed` is
    its present name, where that is another than the one in the table; clients and files have the present one.
    """

    name: str
    title: str
    description: str
    under: frozenset[str | None]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    renamed: str = ""

    @property
    def label(self) -> str:
        """Its present name."""
        return self.renamed or self.name

    @property
    def may_be_root(self) -> bool:
        return None in self.under

    @cached_property
    def searched(self) -> tuple[str, ...]:
        """The names of the attributes whose words are found by search."""
        return tuple(sorted(one.name for one in self.attributes.values() if one.search))

    @cached_property
    def unique(self) -> tuple[Attribute, ...]:
        """The attributes of whose values each belongs to one node."""
        return tuple([one for one in self.attributes.values() if one.unique])

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of this name, or else the one that had it before."""
        return self.attributes.get(name) or self._former.get(name)

    @cached_property
    def _former(self) -> dict[str, Attribute]:
        """Attributes by their former names."""
        return {name: one for one in self.attributes.values() for name in one.was}

    @cached_property
    def _localized(self) -> dict[str, str]:
        """The labels of texts by language."""
        return {one.name: one.label for one in self.attributes.values() if one.kind is Kind.LOCALIZED}

    @cached_property
    def _obliged(self) -> list[Attribute]:
        """The attributes that new nodes have in any case."""
        return [one for one in self.attributes.values() if one.rules.required or one.default is not None]

    def current(self, stored: Mapping[str, Value]) -> Mapping[str, Value]:
        """Stored attributes by their present names; where one is stored under several names, the present one counts."""
        if self._former.keys().isdisjoint(stored):
            return stored
        values = {name: value for name, value in stored.items() if name not in self._former}
        for one in self.attributes.values():
            if (value := one.value_in(stored)) is not None:
                values[one.name] = value
        return values

    def changed(self, stored: Mapping[str, Value], changes: Mapping[str, Value]) -> dict[str, Value]:
        """Stored attributes after changes, by their present names. Raises BadValue or Faults for too many languages."""
        return with_changes(self.current(stored), changes, self._localized)

    def new_values(self, values: dict[str, Value]) -> dict[str, Value]:
        """The attributes of a new node, with those that have a default; the same object where they are as given.

        Raises BadValue, or Faults, for required ones without and for too many languages.
        """
        if not (self._obliged or self._localized or NAMES in values or None in values.values()):
            return values  # of most nodes
        found, faults = values, FaultList()
        with faults.collecting():
            found = with_changes({}, values, self._localized)
        for one in self._obliged:
            if found.get(one.name) is None and one.default is None:
                faults.add(one.lacking().at("attributes", one.name))
            elif found.get(one.name) is None:
                found[one.name] = one.default
        faults.check()
        return found


class SearchScope(StrEnum):
    """The nodes that one search covers: those of the whole hierarchy, or those of one tree."""

    HIERARCHY = "hierarchy"
    TREE = "tree"


@dataclass(frozen=True)
class Search:
    """Search by words. Among equal matches nodes with a greater `weight`, which is an attribute, come first."""

    scope: SearchScope
    weight: str | None = None


@dataclass(frozen=True)
class Hierarchy:
    """A hierarchy: `name` is a part of keys and ids (`location`), `levels` are by name in the order of definition.

    With `search` its nodes are found by words; `location` are the attributes with latitude and longitude, in degrees,
    by which nodes near a point are found.
    """

    name: str
    levels: dict[str, Level]
    search: Search | None = None
    location: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name) or len(self.name) > MAX_NAME_CHARACTERS:
            raise ValueError(f'The name of a hierarchy has lower-case letters, digits and _, not "{self.name}".')
        for level in self.levels.values():
            _check_level(self, level)
        if not any(level.may_be_root for level in self.levels.values()):
            raise ValueError(f"No level of {self.name} may be a root: give one under=None.")
        _check_numbers(self)
        _check_unique(self)
        possible = self._possible()
        for level in self.levels.values():
            if level.name not in possible:
                raise ValueError(
                    f"No node of {self.name} can be of the level {level.title}: give the class under=, "
                    "with levels that lie below a root themselves, or under=None for a root."
                )

    def labelled(self, label: Callable[[str], str]) -> Self:
        """This hierarchy, whose messages name attributes so."""
        levels = {
            name: replace(level, attributes={part: one.labelled(label) for part, one in level.attributes.items()})
            for name, level in self.levels.items()
        }
        return replace(self, levels=levels)

    @cached_property
    def unique(self) -> dict[str, Attribute]:
        """The unique attributes of all levels by their names, without rules, which stored values may break."""
        return {one.name: one.without_rules() for level in self.levels.values() for one in level.unique}

    def level(self, name: str) -> Level:
        """The level of this name, present or in the table, in any case; raises BadInput, which lists the levels."""
        if (found := self.find(name)) is not None:
            return found
        wrong = f'{self.name} has no level "{shorten(name)}"; it' if name else f"The level is missing; {self.name}"
        raise BadInput(f"{wrong} has {', '.join(self._by_label)}.{suggestion(name, self._by_label)}")

    def find(self, name: str) -> Level | None:
        """The level of this name, present or in the table, in any case; None where it is not defined."""
        return self._by_label.get(name.upper()) or self.levels.get(name.upper())

    @cached_property
    def _by_label(self) -> dict[str, Level]:
        return {level.label: level for level in self.levels.values()}

    def any_level(self, name: str) -> Level:
        """The level of this name; one without attributes where it is not defined."""
        return self.levels.get(name) or Level(name, name, "", frozenset())

    def levels_above(self, names: Iterable[str]) -> set[str]:
        """The levels that ancestors of nodes of these levels may have."""
        found, ahead = set[str](), {*names}
        while ahead:
            above = {one for name in ahead for one in self.any_level(name).under if one is not None}
            ahead = above - found
            found |= above
        return found

    def _possible(self) -> set[str]:
        """The levels that can be reached from the roots."""
        found: set[str] = set()
        ahead = {level.name for level in self.levels.values() if level.may_be_root}
        while ahead:
            found |= ahead
            ahead = {level.name for level in self.levels.values() if level.under & found} - found
        return found


def _check_level(hierarchy: Hierarchy, level: Level) -> None:
    if not LEVEL_NAME.fullmatch(level.name):
        raise ValueError(
            f"{level.title} is not a valid name of a level; begin it with a letter, and write letters of A to Z, "
            f"digits and _, at most {MAX_NAME_CHARACTERS}."
        )
    if unknown := level.under - {None} - hierarchy.levels.keys():
        raise ValueError(
            f"{level.title} stands under {', '.join(map(str, unknown))}, no level of {hierarchy.name}; it has "
            f"{', '.join(hierarchy.levels)}."
        )
    if reserved := RESERVED & level.attributes.keys():
        raise ValueError(f"{level.title} has an attribute {', '.join(reserved)}, which every node has; rename it.")
    if private := [name for name in level.attributes if name.startswith("_")]:
        raise ValueError(f"{level.title} has an attribute {private[0]}; begin its name with a letter.")
    taken = {*level.attributes, *RESERVED}
    for attribute in level.attributes.values():
        for name in attribute.was:
            if name in taken:
                raise ValueError(f'{level.title}.{name} has a meaning besides was="{name}" of {attribute.name}.')
            taken.add(name)


def _check_numbers(hierarchy: Hierarchy) -> None:
    """Raise ValueError where an attribute for the weight or the location is not a number that some level has."""
    weight = hierarchy.search.weight if hierarchy.search else None
    for keyword, names in (("search_weight", [weight] if weight else []), ("location", hierarchy.location or [])):
        for name in names:
            found = [level.attributes[name] for level in hierarchy.levels.values() if name in level.attributes]
            if not found:
                raise ValueError(f'{hierarchy.name} has {keyword}= with "{name}", which no level has as an attribute.')
            if any(one.many or one.kind not in NUMBERS for one in found):
                raise ValueError(f'{hierarchy.name} has {keyword}= with "{name}", which is not a number.')


def _check_unique(hierarchy: Hierarchy) -> None:
    """Raise ValueError for too many unique attributes of a level, or one that is another one on another level."""
    first: dict[str, Level] = {}
    for level in hierarchy.levels.values():
        if len(level.unique) > MAX_UNIQUE:
            number = len(level.unique)
            raise ValueError(f"{level.title} has {number} attributes with unique=; at most {MAX_UNIQUE} may have it.")
        for one in level.unique:
            other = first.setdefault(one.name, level).attributes[one.name]
            if (other.kind, other.enum, other.disclosed) != (one.kind, one.enum, one.disclosed):
                shared = f"{level.title}.{one.name} shares its values with {first[one.name].title}"
                raise ValueError(f"{shared}; give both the same type and unique=.")


def may_stand(hierarchy: Hierarchy, level: str, under: str | None) -> bool:
    """Whether nodes of a level may be under one of another, None: be roots; True where either level is undefined."""
    found = hierarchy.levels.get(level)
    return found is None or under in found.under or (under is not None and under not in hierarchy.levels)


def misplaced(hierarchy: Hierarchy, name: str, under: str | None) -> str:
    """The message for a level that may not be under another, None: not be a root."""
    level = hierarchy.any_level(name)
    labels = [hierarchy.any_level(one).label for one in level.under if one is not None]
    may = ["as a root"] * level.may_be_root + [f"under {', '.join(sorted(labels))}"] * bool(labels)
    place = f"under {hierarchy.any_level(under).label}" if under else "as a root"
    return f"{level.label} may not stand {place}, only {' or '.join(may)}."


class Undefined:
    """The counts of undefined attributes and levels, former names and broken rules among the nodes of one hierarchy."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._levels: Counter[str] = Counter()
        self._attributes: Counter[tuple[str, str]] = Counter()
        self._former: Counter[tuple[str, str]] = Counter()
        self._broken: Counter[tuple[str, str]] = Counter()
        self._breaking: dict[tuple[str, str], str] = {}  # the path of the first node that breaks a rule

    @property
    def levels(self) -> set[str]:
        """The levels that are not defined."""
        return {*self._levels}

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

    def entries(self) -> list[dict[str, str | int]]:
        """The counts for programs: each with its hierarchy, level, problem, what that concerns, and the nodes."""
        found: list[dict[str, str | int]] = [
            {"level": level, "problem": "UNDEFINED_LEVEL", "nodes": count} for level, count in self._levels.items()
        ]
        for problem, counts in (("UNDEFINED_ATTRIBUTE", self._attributes), ("FORMER_NAME", self._former)):
            for (level, name), count in counts.items():
                found.append({"level": level, "problem": problem, "attribute": name, "nodes": count})
        for (level, rule), count in self._broken.items():
            example = self._breaking[level, rule]
            found.append({"level": level, "problem": "BROKEN_RULE", "rule": rule, "example": example, "nodes": count})
        return [{"hierarchy": self._hierarchy.name, **one} for one in found]

    def sentences(self) -> list[str]:
        """One message for each undefined level, undefined attribute, former name and broken rule of a level."""
        found: list[tuple[str, str]] = []

        def label(level: str) -> str:
            return self._hierarchy.any_level(level).label

        for level, count in self._levels.items():
            nodes = f"{quantity(count, 'node')} {'is' if count == 1 else 'are'}"
            found.append((level, f"{nodes} of the level {shorten(level)}, which is not defined."))
        for (level, name), count in self._attributes.items():
            nodes = f"{quantity(count, 'node')} {'has' if count == 1 else 'have'}"
            found.append((level, f"{nodes} a value of {shorten(name)}, which {label(level)} does not define."))
        for (level, name), count in self._former.items():
            nodes = f"{quantity(count, 'node')} of {label(level)} {'has' if count == 1 else 'have'}"
            present = self._hierarchy.any_level(level).attribute(name)
            found.append((level, f"{nodes} {present.name if present else name} under its former name {name}."))
        for (level, rule), count in self._broken.items():
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
