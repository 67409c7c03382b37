"""Versions: two versions of one class, written into files, and the nodes that a store of them holds by the docs."""

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Attributes = dict[str, Any]
SOURCE = '''"""Goods: shelves, and what is on them."""

from clade import Node, attribute


class Good(Node, hierarchy="good", many="goods", search="hierarchy"):
    """A good, or a place for some."""


class Shelf(Good, under=[None, "self"]):
    """A shelf."""


class Item(Good, under=[Shelf]):
    """An item on a shelf."""

    maker: str | None = attribute("Who made it."{maker})
    code: str | None = attribute("Its code."{code})
    stock: int | None = attribute("How many there are."{stock})
    label: str | None = attribute("What is on it."{label})
'''
MORE = '    {name}: str | None = attribute("Known to one version.")\n'
BUNDLE = '''

class Bundle(Good, under=[Shelf]):
    """Items that are sold together."""
'''


@dataclass(frozen=True)
class Version:
    """A version of the class: what it searches, what is unique, which rules it has, and what it has alone."""

    searches: bool = False
    is_unique: bool = False
    has_minimum: bool = False
    is_required: bool = False
    has_bundles: bool = False
    own: str = ""

    @property
    def served(self) -> tuple[str, ...]:
        return ("maker", "code", "stock", "label", *([self.own] if self.own else []))

    def write(self, file: Path) -> Path:
        """Write its class file."""
        options = {
            "maker": ", search=True" * self.searches,
            "code": ", unique=True" * self.is_unique,
            "stock": ", minimum=0" * self.has_minimum,
            "label": ", required=True" * self.is_required,
        }
        own = MORE.format(name=self.own) if self.own else ""
        file.write_text(SOURCE.format(**options) + own + BUNDLE * self.has_bundles)
        return file

    def broken_rules(self, values: Attributes, *, is_new: bool) -> bool:
        """Whether values that are given break a rule of this version."""
        is_missing = self.is_required and values.get("label", None if is_new else "") is None
        return is_missing or (self.has_minimum and (values.get("stock") or 0) < 0)


def two_versions(chance: random.Random) -> tuple[Version, Version]:
    """An old version and a new one, which differ in what is unique or searched, and in more."""
    unique, searched = chance.choice(
        [((False, True), (False, True))] * 2
        + [((False, True), (True, False)), ((False, True), (True, True)), ((True, True), (False, True))]
        + [((True, False), (False, True)), ((True, False), (True, False))]
    )
    minimum, required = ([chance.random() < 0.5 for _ in range(2)] for _ in range(2))
    owns = chance.choice((("", "added"), ("gone", ""), ("gone", "added")))
    made = zip(searched, unique, minimum, required, (False, chance.random() < 0.7), owns, strict=True)
    old, new = (Version(*one) for one in made)
    return old, new


@dataclass
class Good:
    """A node: its id, key, parent (an id, None for a root), level, name, values of whatever version, and revision."""

    id: str
    key: str
    parent: str | None
    level: str
    name: str
    values: Attributes = field(default_factory=dict)
    revision: int = 1


class Goods:
    """What a store holds, and what was deleted with the paths of that time."""

    def __init__(self) -> None:
        self.nodes: dict[str, Good] = {}
        self.deleted: dict[str, Good] = {}

    def add(self, good: Good) -> None:
        self.nodes[good.id] = good

    def path(self, good: Good) -> str:
        above = self.nodes[good.parent] if good.parent else None
        return f"{self.path(above)}/{good.key}" if above else good.key

    def children(self, parent: str | None) -> list[Good]:
        return [good for good in self.nodes.values() if good.parent == parent]

    def level(self, level: str) -> list[Good]:
        return [good for good in self.nodes.values() if good.level == level]

    def is_free(self, parent: str | None, key: str) -> bool:
        return all(good.key != key for good in self.children(parent))

    def holders(self, code: str | None) -> list[Good]:
        """The nodes that have a code."""
        return [good for good in self.nodes.values() if code is not None and good.values.get("code") == code]

    def twice(self) -> dict[str, list[Good]]:
        """Codes that several nodes have."""
        codes = Counter(good.values["code"] for good in self.nodes.values() if good.values.get("code") is not None)
        return {code: self.holders(code) for code in sorted(codes) if codes[code] > 1}

    def with_word(self, word: str, version: Version) -> set[str]:
        """The paths of nodes that a search for a word finds."""
        levels = ("SHELF", "ITEM", *(["BUNDLE"] if version.has_bundles else []))
        found = [good for good in self.nodes.values() if good.level in levels and word in self._words(good, version)]
        return {self.path(good) for good in found}

    @staticmethod
    def _words(good: Good, version: Version) -> list[str]:
        more = [good.values.get("maker") or ""] if version.searches else []
        return f"{good.name} {' '.join(more)}".lower().split()

    def lines(self) -> str:
        """The file that `clade import` reads."""
        rows = []
        for good in sorted(self.nodes.values(), key=lambda good: self.path(good).split("/")):
            row = {"path": self.path(good).split("/"), "level": good.level, "name": good.name, "id": good.id}
            rows.append(json.dumps({**row, **good.values}))
        return "\n".join(rows) + "\n"
