"""Trees as the records of a store, and values of arguments as documents and variables have them."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node
from store.engine import Store
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import Path, id_key
from store.model.records import Item, Put, Record

AT = "2026-11-20T12:00:00.000Z"


class Ground(Node, hierarchy="ground", many="grounds"):
    """A piece of ground, for tests."""

    note: str | None = attribute("Whatever is to be said.")


class Area(Ground, under=[None, "self"]):
    """An area in an area."""


class AreaPart(Ground, under=[None, Area, "self"]):
    """A part of an area; its level's name has another level's as a prefix."""


class Plot(Ground, under=[Area, AreaPart]):
    """A plot."""


class Tree(Ground, under=[Area, AreaPart, Plot]):
    """A tree."""


@dataclass(frozen=True)
class Word:
    """A member of an enum, which is written without quotes."""

    name: str


def plain(value: Any) -> Any:
    """A value of an argument as a variable has it."""
    match value:
        case Word(name):
            return name
        case list():
            return list(map(plain, value))
        case dict():
            return {name: plain(one) for name, one in value.items()}
    return value


def literal(value: Any) -> str:
    """A value of an argument as a document has it."""
    match value:
        case None:
            return "null"
        case Word(name):
            return name
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\u{{{ord(c):X}}}" for c in value) + '"'
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case dict():
            return "{" + ", ".join([f"{name}: {literal(one)}" for name, one in value.items()]) + "}"
        case _:
            return str(value)


class Model:
    """The nodes of a hierarchy by path, as records of a store."""

    def __init__(self, hierarchy: str, nodes: dict[Path, str]) -> None:
        """`nodes` are the levels by path, parents included."""
        kids: dict[Path, Counter[str]] = {path: Counter() for path in nodes}
        below: dict[Path, Counter[str]] = {path: Counter() for path in nodes}
        for path, level in nodes.items():
            if len(path) > 1:
                kids[path[:-1]][level] += 1
            for length in range(1, len(path)):
                below[path[:length]][level] += 1
        self.hierarchy = hierarchy
        self.nodes: dict[Path, Record] = {}
        for number, path in enumerate(sorted(nodes)):
            above = [nodes[path[:length]] for length in range(1, len(path))]
            made = Record.new(hierarchy, path, nodes[path], f"N {path[-1]}", f"n{number}", AT, {}, above=above)
            self.nodes[path] = replace(made, kids=dict(kids[path]), below=dict(below[path]))
        self.ids = {record.id: record for record in self.nodes.values()}
        self.families: dict[Path, list[Record]] = {}
        for path, record in self.nodes.items():
            self.families.setdefault(path[:-1], []).append(record)
        for family in self.families.values():
            family.sort(key=lambda record: record.rank)

    def items(self) -> list[Item]:
        """All items of the table: records, ids and tree versions."""
        items = [record.item() for record in self.nodes.values()]
        shapes: dict[str, Counter[str]] = {}
        for record in self.nodes.values():
            place = id_key(record.id)
            items.append({"pk": place.pk, "sk": place.sk, "tree": record.pk, "key": record.sk})
            shapes.setdefault(record.pk, Counter())[level_at_depth(record.level, record.depth)] += 1
            if record.is_root:
                shapes.setdefault(self.hierarchy, Counter())[level_at_depth(record.level, 0)] += 1
        return items + [TreeVersion(partition).incremented(dict(shape)).item for partition, shape in shapes.items()]

    async def plant(self, store: Store) -> None:
        """Write all items into a store."""
        items = self.items()
        for start in range(0, len(items), store.max_changes):
            await store.commit([Put(item) for item in items[start : start + store.max_changes]])

    def below(self, record: Record) -> list[Record]:
        found: list[Record] = []
        for child in sorted(self.families.get(record.path, []), key=lambda one: one.path):
            found += [child, *self.below(child)]
        return found
