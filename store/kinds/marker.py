"""Marker: the item of a hierarchy that says, kind by kind and level by level, what the items of its nodes are made of.

All who write nodes make the items that the marker names, whatever their own class asks for. So servers with two
versions of a class write the same items, and what one version searches stays complete while the other one writes.

| item | pk | sk |
| --- | --- | --- |
| marker: what items are made of | `kinds/location` | `-` |

| attribute | |
| --- | --- |
| `n` | the number of its writes; each requires the one before |
| `kinds` | by the name of a kind its `made`: what the items of all nodes are made of |
| | `making`, while a repair runs: what they are made of when it has ended; all writers make these already |

Both have the scope, the version of the kind, and for each level the stored names of its attributes (`LevelRecipe`).

A level that the marker does not name has no nodes: who writes the first one names it in the same transaction. The first
root of all and a repair name all levels of which their class asks for items, since a server with another class may
write the first node of a level. An attribute that is renamed is named by its other name in the transaction that may
first store a value under it. Items of another version of a kind cannot be made, so who would have to make them takes
the kind's levels off the marker, and those of a kind that this version of Clade does not know. A kind that the marker
does not name has no items, until a repair.

A hierarchy without a marker has no items of any kind. It is made with the first root, or by a repair.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, cast

from msgspec import Struct

from store.kinds.kind import NodeKind
from store.kinds.lineage import MARKER
from store.kinds.recipe import NO_ITEMS, LevelRecipe, Recipe, StoredRecipe
from store.kinds.registry import KINDS
from store.model.attributes import Value
from store.model.decoding import Number, decoded
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.records import ABSENT, Condition, Item, Put

Recipes = Mapping[str, Recipe]
"""What the items of each kind are made of, by its name."""


MAX_DECODED = 100  # markers of which the last one is kept decoded, since each edit reads it

_decoded: dict[tuple[str, ...], "tuple[Item, Marker]"] = {}


class Part(NamedTuple):
    """Of one kind: what its items are `made` of, and what a repair is `making` them of."""

    made: Recipe
    making: Recipe | None = None

    @property
    def recipe(self) -> Recipe:
        """What all writers make the items of."""
        return self.making or self.made

    def naming(self, kind: NodeKind, hierarchy: Hierarchy | None, levels: Sequence[str]) -> Self:
        """The part for writing nodes of these levels with the class of a hierarchy; the same if all is named, as it is
        without a class.
        """
        if self.recipe.version != kind.version:
            made = self.made
            made = replace(made, version=kind.version, levels=dict.fromkeys(made.levels, NO_ITEMS))
            return self._replace(made=made, making=None).naming(kind, hierarchy, levels)
        made = _naming(self.made, kind, hierarchy, levels)
        making = self.making and _naming(self.making, kind, hierarchy, levels)
        return self if made is self.made and making is self.making else self._replace(made=made, making=making)

    def item(self) -> dict[str, Value]:
        """The part in the item of the marker."""
        parts = {"made": self.made, "making": self.making}
        return cast(dict[str, Value], {name: one.item() for name, one in parts.items() if one is not None})


def _naming(recipe: Recipe, kind: NodeKind, hierarchy: Hierarchy | None, levels: Sequence[str]) -> Recipe:
    if hierarchy is None:
        return recipe
    changed: dict[str, LevelRecipe] = {}
    if kind.has_conditions:  # of which all levels with an attribute share the items
        levels = [*levels, *[name for name, one in recipe.levels.items() if one.numbers]]
    for name in levels:
        present = recipe.levels.get(name)
        if present is None:
            found = _asked(kind, hierarchy, name, {**recipe.levels, **changed})
        else:
            found = present.renamed(hierarchy.levels.get(name))
        if found != present:
            changed[name] = found
    return replace(recipe, levels={**recipe.levels, **changed}) if changed else recipe


def _asked(kind: NodeKind, hierarchy: Hierarchy, level: str, present: Mapping[str, LevelRecipe]) -> LevelRecipe:
    """What a class asks for of a level, with the parts of present ones, whose attributes may have other names now."""
    levels = [one.renamed(hierarchy.levels.get(name)) for name, one in present.items()]
    return kind.aligned(kind.asked(hierarchy, level), levels)


def _asked_besides(kind: NodeKind, hierarchy: Hierarchy, present: Mapping[str, LevelRecipe]) -> dict[str, LevelRecipe]:
    """The levels of which a class asks for items, besides present ones."""
    found: dict[str, LevelRecipe] = {}
    for name in [one for one in hierarchy.levels if one not in present]:
        asked = _asked(kind, hierarchy, name, {**present, **found})
        if asked.has_items:
            found[name] = asked
    return found


class _StoredPart(Struct):
    made: StoredRecipe
    making: StoredRecipe | None = None


class _StoredMarker(Struct):
    n: Number
    kinds: dict[str, _StoredPart]


@dataclass(frozen=True)
class Marker:
    """What the items of each kind are made of; `number` counts its writes. `has_others` is whether it names kinds that
    this version of Clade does not know.
    """

    hierarchy: str
    number: int
    parts: Mapping[str, Part]
    has_others: bool = False

    @classmethod
    def of(cls, hierarchy: str, item: Item | None) -> Self | None:
        """The marker in an item, None without one; raises DamagedItem."""
        if item is None:
            return None
        if (last := _decoded.get((hierarchy, *KINDS))) is not None and last[0] == item:
            return cast(Self, last[1])
        found = decoded(item, _StoredMarker)
        parts = {
            name: Part(part.made.recipe(hierarchy), part.making.recipe(hierarchy) if part.making else None)
            for name, part in found.kinds.items()
            if name in KINDS
        }
        marker = cls(hierarchy, found.n, parts, len(parts) < len(found.kinds))
        if len(_decoded) >= MAX_DECODED:
            _decoded.clear()
        _decoded[hierarchy, *KINDS] = item, marker
        return marker

    @classmethod
    def first(cls, hierarchy: Hierarchy) -> Self:
        """The marker of a hierarchy that has no node yet."""
        recipes = {
            name: Recipe(hierarchy.name, kind.is_by_tree(hierarchy), kind.version) for name, kind in KINDS.items()
        }
        return cls(hierarchy.name, 0, {name: Part(recipe) for name, recipe in recipes.items()}).asking(hierarchy)

    @cached_property
    def recipes(self) -> Recipes:
        """What all writers make the items of."""
        return {name: part.recipe for name, part in self.parts.items()}

    @property
    def is_complete(self) -> bool:
        """Whether no repair is making items, and all are of the present versions of their kinds."""
        return all(one.making is None and one.made.version == KINDS[name].version for name, one in self.parts.items())

    def naming(self, hierarchy: Hierarchy | None, levels: Iterable[str]) -> Self:
        """The marker for writing nodes of these levels with the class of a hierarchy; the same if all is named."""
        levels = list(levels)
        parts = {name: part.naming(KINDS[name], hierarchy, levels) for name, part in self.parts.items()}
        is_same = not self.has_others and all(parts[name] is part for name, part in self.parts.items())
        return self if is_same else replace(self, parts=parts, has_others=False)

    def asking(self, hierarchy: Hierarchy) -> Self:
        """The marker that names all levels of which a class asks for items, with what it asks for of those that have no
        nodes yet; the same if all are named. All that the class asks for must be made.
        """
        parts = {}
        for name, part in self.parts.items():
            asked = _asked_besides(KINDS[name], hierarchy, part.made.levels)
            parts[name] = part._replace(made=part.made.with_levels(asked)) if asked else part
        return replace(self, parts=parts) if parts != self.parts else self

    def adding(self, hierarchy: Hierarchy, levels: Iterable[str]) -> Self:
        """The marker while a repair writes the items of these levels, of which it does not name some; the same if it
        names all.
        """
        lacks = {name: {*levels} - part.recipe.levels.keys() for name, part in self.parts.items()}
        recipes = named(self.recipes, hierarchy, levels)
        parts = {
            name: Part(part.made.with_nothing(lacks[name]), recipes[name]) if lacks[name] else part
            for name, part in self.parts.items()
        }
        return replace(self, parts=parts) if any(lacks.values()) else self

    def begun(self, targets: Recipes) -> Self:
        """The marker while a repair writes what the targets name; a kind that it does not name has nothing made yet."""
        parts = {}
        for name, target in targets.items():
            part = self.parts.get(name)
            if part is None:
                made = replace(target, levels={}).with_nothing(target.levels)
            else:
                without_nodes = {level: one for level, one in target.levels.items() if level not in part.recipe.levels}
                made = part.made.kept(target).with_levels(without_nodes)
            parts[name] = Part(made, None if made == target else target)
        return replace(self, parts=parts, has_others=False)

    def ended(self, hierarchy: Hierarchy, targets: Recipes) -> Self | None:
        """The marker after a repair has written what the targets name; None where others no longer make that."""
        parts = dict(self.parts)
        for name, target in targets.items():
            part = self.parts.get(name)
            if part is None or not part.recipe.covers(target):
                return None
            if part.making is None:
                continue
            made = _naming(part.made.together(target), KINDS[name], hierarchy, [*target.levels])
            parts[name] = Part(made, None if made == part.making else part.making)
        return replace(self, parts=parts)

    def put(self) -> Put:
        """The change that writes the marker over the one that it was made of."""
        key, kinds = marker_key(self.hierarchy), {name: part.item() for name, part in self.parts.items()}
        return Put({"pk": key.pk, "sk": key.sk, "n": self.number + 1, "kinds": cast(Value, kinds)}, self.when)

    @property
    def when(self) -> Condition:
        """The condition that the stored marker is the one that was read."""
        return {"n": self.number} if self.number else ABSENT


def marker_key(hierarchy: str) -> Key:
    """The key of the marker of a hierarchy."""
    return Key(f"kinds/{hierarchy}", MARKER)


def made_of(hierarchy: str, marker: Marker | None, kind: NodeKind, *, had_nodes: bool) -> Recipe | None:
    """What the items of a kind of all nodes are made of, None where nobody knows; without a marker a hierarchy that
    never `had_nodes` lacks none.
    """
    if marker is None:
        return None if had_nodes else Recipe(hierarchy, False, kind.version)
    part = marker.parts.get(kind.name)
    return None if part is None else part.made


def named(recipes: Recipes, hierarchy: Hierarchy, levels: Iterable[str]) -> Recipes:
    """The recipes for nodes of these levels with a class."""
    names = list(levels)
    return {name: _naming(recipe, KINDS[name], hierarchy, names) for name, recipe in recipes.items()}


def lacking(hierarchy: Hierarchy, marker: Marker | None, kind: NodeKind) -> list[str]:
    """What a class asks for that not all nodes have items of, in words; none where its searches can be answered."""
    if not kind.is_asked(hierarchy):
        return []
    if marker is None or (part := marker.parts.get(kind.name)) is None:
        return ["all"]
    made = part.made
    if made.by_tree != kind.is_by_tree(hierarchy):
        return ["all, since search= was another one"]
    if made.version != kind.version:
        return [f"all {kind.name}, since another version of Clade has written them"]
    levels = [(level, made.levels[level.name]) for level in hierarchy.levels.values() if level.name in made.levels]
    return [text for level, one in levels for text in kind.lacks(hierarchy, level, one)]


def all_lacking(hierarchy: Hierarchy, marker: Marker | None) -> dict[str, list[str]]:
    """What a class lacks of any kind, by the word for the items."""
    found: dict[str, list[str]] = {}
    for kind in KINDS.values():
        if lacks := lacking(hierarchy, marker, kind):
            found[kind.word] = [*dict.fromkeys([*found.get(kind.word, []), *lacks])]
    return found


def missing_text(hierarchy: str, found: Sequence[str], word: str) -> str:
    """The sentence on items that are missing."""
    return f"{word.capitalize()}s of {hierarchy} are missing: {', '.join(found)}."


def unasked(hierarchy: Hierarchy, marker: Marker) -> list[str]:
    """What a repair with a class takes off the marker of kinds with conditions."""
    wanted = targets(hierarchy, marker)
    return sorted(
        f"{part} of {hierarchy.levels[level].label}"
        for name, recipe in marker.recipes.items()
        for level, one in recipe.levels.items()
        for part in (one.numbers.keys() - wanted[name].level(level).numbers if KINDS[name].has_conditions else ())
    )


def targets(hierarchy: Hierarchy, marker: Marker | None) -> Recipes:
    """What a repair with a class makes: what the class asks for, and what the marker names besides; of kinds with
    conditions the latter only of levels that the class does not define.
    """
    return {name: _target(hierarchy, marker.parts.get(name) if marker else None, kind) for name, kind in KINDS.items()}


def _target(hierarchy: Hierarchy, part: Part | None, kind: NodeKind) -> Recipe:
    present = {} if part is None else part.recipe.levels
    asked = {name: _asked(kind, hierarchy, name, present) for name in hierarchy.levels}
    own = Recipe(hierarchy.name, kind.is_by_tree(hierarchy), kind.version, asked)
    if part is None:
        return own
    levels = {}
    for name, one in part.recipe.levels.items():
        wanted = own.levels.get(name, NO_ITEMS)
        found = wanted.together(one)
        # So that an attribute that the class no longer asks for does not stay.
        if wanted.has_items or (kind.has_conditions and name in asked):
            found = found._replace(numbers={part: found.numbers[part] for part in wanted.numbers})
        levels[name] = found.renamed(hierarchy.levels.get(name))
    levels |= _asked_besides(kind, hierarchy, present)  # whose first node may be written with another class
    return replace(own, by_tree=own.by_tree if kind.is_asked(hierarchy) else part.recipe.by_tree, levels=levels)
