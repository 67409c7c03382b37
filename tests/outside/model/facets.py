"""Facets as docs/lists.md and the schema say: the values of the nodes of a list, counted one field after another."""

import random
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.outside.model import lists, values
from tests.outside.model.conditions import TEXTUAL, Arguments, Word, value_of
from tests.outside.model.trees import Node, Trees

OBJECTS = {"money", "parcel", "localized"}
KINDS = {"level": "level", **{name: kind for name, kind in values.KINDS.items() if kind.strip("[]") not in OBJECTS}}
NAMES = {name: field for field, name in lists.ORDER_FIELDS.items() if name in KINDS}
FIELDS = {NAMES.get(name, name.upper()): name for name in KINDS}
WITH_EXTREMES = {"int", "long", "float", "decimal", "day", "moment", "latitude", "longitude", "grade"}
SELECTED = "{ field distinctCount missingCount minimum maximum values { value count } }"
MOST_FIELDS, MOST_VALUES, DEFAULT = 10, 100, 20


@dataclass(frozen=True)
class Text:
    """Any text of a value, such as 1.0 and 1.00: "each is the text that a condition takes"."""

    kind: str
    value: Any

    def is_in(self, got: Any) -> bool:
        if not isinstance(got, str):
            return False
        if self.kind == "flag":
            return got == ("true" if self.value else "false")
        if self.kind in WITH_EXTREMES - {"day"}:
            read = {"decimal": Decimal, "moment": values.moment}
            return bool(read.get(self.kind, type(self.value))(got) == self.value)
        return bool(got == self.value)


def some_facets(chance: random.Random, where: Arguments) -> Arguments:
    """Arguments of facets, of fields that have conditions more often than of others."""
    own = [field for field, name in FIELDS.items() if name in where]
    fields = [*own, *chance.sample(["LEVEL", "NOTE", "SMALL", "STATE", *FIELDS], chance.choice((1, 1, 2, 5, 9)))]
    found: Arguments = {"fields": [Word(field) for field in dict.fromkeys(fields)][:MOST_FIELDS]}
    if chance.random() < 0.7:
        found["first"] = chance.choice((0, 1, 2, 3, 10, MOST_VALUES))
    return found


def refused_facets(chance: random.Random) -> Arguments:
    """Arguments of facets that are errors."""
    few, many = [Word("NOTE")], [Word(field) for field in FIELDS]
    return chance.choice((
        {"fields": []}, {"fields": [*few, *few]}, {"fields": many[: MOST_FIELDS + 1]},
        {"fields": few, "first": MOST_VALUES + 1}, {"fields": few, "first": -1},
    ))  # fmt: skip


def facets(trees: Trees, kind: str, node: Node | None, arguments: Arguments, asked: Arguments) -> list[Any]:
    """The facets of a list, each "without its own condition" directly in `where`."""
    found = []
    for field in asked["fields"]:
        name = FIELDS[field]
        where = {other: inner for other, inner in arguments.get("where", {}).items() if other != name}
        whole = lists.whole_list(trees, kind, node, {**arguments, "where": where, "orderBy": []})
        found.append({"field": str(field), **_facet(trees, whole, name, asked.get("first", DEFAULT))})
    return found


def _facet(trees: Trees, whole: list[Node], name: str, first: int) -> Arguments:
    kind = KINDS[name].strip("[]")
    counts = Counter[Any]()
    missing = 0
    for node in whole:
        value = value_of(trees, node, name)
        several = value if isinstance(value, list) else [] if value is None else [value]
        # "A node counts once for each of its values in an attribute that is a list."
        counts.update({*several})
        missing += value is None  # as `isNull: true` finds it

    def place(value: Any) -> Any:
        # "Then in the order in which lists sort them"; texts that are equal there by their characters.
        return -counts[value], lists.comparable(kind)(value), value if kind in TEXTUAL else ""

    has_extremes = counts and kind in WITH_EXTREMES
    return {
        "distinctCount": len(counts),
        "missingCount": missing,
        "minimum": Text(kind, min(counts)) if has_extremes else None,
        "maximum": Text(kind, max(counts)) if has_extremes else None,
        "values": [{"value": Text(kind, one), "count": counts[one]} for one in sorted(counts, key=place)[:first]],
    }
