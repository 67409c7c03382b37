"""Probes: two node kinds that only tests have, each with one item for every node of a searched hierarchy.

An item is created on condition that there is none, and changed and removed on condition that it is this node's. One
that another node has is not taken from it. The items of `TreeProbe` have lineages, and are in the partitions of the
trees that are searched by themselves.
"""

from store.kinds.kind import Located, NodeKind
from store.kinds.lineage import STEP, Moves, id_hash
from store.kinds.recipe import LevelRecipe, Recipe, number_names
from store.kinds.registry import KINDS
from store.kinds.words import is_by_tree, leads
from store.model.hierarchy import Hierarchy, Level
from store.model.records import Item

NOTE = "note"  # the attribute of which items are made, and the part of a recipe


class Probe(NodeKind):
    """Items of names and notes, keyed by ids."""

    name = "probe"
    has_conditions = True

    def is_asked(self, hierarchy: Hierarchy) -> bool:
        return hierarchy.search is not None

    def asked(self, hierarchy: Hierarchy, level: str) -> LevelRecipe:
        if not self.is_asked(hierarchy):
            return LevelRecipe()
        return LevelRecipe(frozenset(), {NOTE: number_names(hierarchy, level, NOTE)})

    def lacks(self, hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
        is_right = made.attributes is not None and made.agrees(self.asked(hierarchy, level.name))
        return [] if is_right else [f"the {self.name} of {level.label}"]

    def items(self, recipe: Recipe, node: Located) -> list[Item]:
        level, record = recipe.level(node.record.level), node.record
        if level.attributes is None:
            return []
        note = next((record.attributes[name] for name in level.number(NOTE) if name in record.attributes), None)
        item: Item = {
            "pk": f"{self.name}/{recipe.hierarchy}#{recipe.tree(node.line[:STEP])}{id_hash(record.id)}",
            "sk": record.id, "id": record.id, "named": record.name,
        }  # fmt: skip
        return [item if note is None else {**item, "noted": note}]

    def owner(self, item: Item) -> str | None:
        return str(item["sk"]) if str(item["pk"]).startswith(f"{self.name}/") else None


class TreeProbe(Probe):
    """The same with lineages, which moves of ancestors leave as they were."""

    name = "treeprobe"
    has_lineage = True

    def is_by_tree(self, hierarchy: Hierarchy) -> bool:
        return is_by_tree(hierarchy)

    def items(self, recipe: Recipe, node: Located) -> list[Item]:
        return [{**item, "line": node.line} for item in super().items(recipe, node)]

    def is_outdated(self, found: Item, item: Item, moves: Moves | None) -> bool:
        return leads(found, item, moves) and {**found, "line": item["line"]} == item


PROBES = (Probe(), TreeProbe())


def register() -> None:
    """Registers the probes in a process of their own; others use the fixture `probes`."""
    KINDS.update({kind.name: kind for kind in PROBES})
