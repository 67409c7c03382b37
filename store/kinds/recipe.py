"""Recipes: what the items of one kind are made of in a hierarchy, level by level, by the stored names of attributes.

An attribute that was renamed has several stored names, of which the first one that a node has counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, Self, cast

from msgspec import Struct

from store.model.attributes import Value
from store.model.decoding import Number
from store.model.hierarchy import Hierarchy, Level, SearchScope

Names = tuple[str, ...]
"""The stored names of an attribute."""


class LevelRecipe(NamedTuple):
    """What the items of a level's nodes are made of: the stored names of `attributes`, of which any number counts, and
    the names of single ones by their parts, such as a latitude. A level without both has no items; one with no
    attributes but not None has those that every node has, such as the words of its name.
    """

    attributes: frozenset[str] | None = None
    numbers: Mapping[str, Names] = {}

    @property
    def has_items(self) -> bool:
        """Whether the nodes of the level may have items."""
        return self.attributes is not None or bool(self.numbers)

    def number(self, part: str) -> Names:
        """The names of a single attribute, none where no item is made of it."""
        return self.numbers.get(part, ())

    def agrees(self, other: Self) -> bool:
        """Whether both have the same single attributes."""
        return all(agree(self.number(part), other.number(part)) for part in {*self.numbers, *other.numbers})

    def covers(self, other: Self) -> bool:
        """Whether items that are made of it lead to all that another one asks for."""
        has_all = other.attributes is None or (self.attributes is not None and other.attributes <= self.attributes)
        return not other.has_items or (has_all and self.agrees(other))

    def kept(self, target: Self) -> Self:
        """What of it is complete when all make another one: single attributes that are the same, or nothing with others
        where one differs.
        """
        if self.attributes is not None and not self.agrees(target):
            return self._replace(attributes=None, numbers={})
        numbers = {part: names for part, names in self.numbers.items() if agree(names, target.number(part))}
        return self._replace(numbers=numbers)

    def renamed(self, level: Level | None) -> Self:
        """With all names of the attributes of which it has one."""
        attributes, numbers = self.attributes, dict(self.numbers)
        for one in level.attributes.values() if level else ():
            if one.was:
                names = (one.name, *one.was)
                if attributes is not None and not attributes.isdisjoint(names):
                    attributes = attributes.union(names)
                numbers = {part: _joined(found, names) for part, found in numbers.items()}
        return self._replace(attributes=attributes, numbers=numbers)

    def together(self, other: Self) -> Self:
        """With all that another one names, whose names come first."""
        parts = dict.fromkeys((*self.numbers, *other.numbers))
        attributes = self.attributes if other.attributes is None else other.attributes.union(self.attributes or ())
        return self._replace(
            attributes=attributes, numbers={part: _first(self.number(part), other.number(part)) for part in parts}
        )

    def item(self) -> dict[str, Value]:
        attributes = {} if self.attributes is None else {"attributes": sorted(self.attributes)}
        numbers = {"numbers": {part: [*names] for part, names in self.numbers.items()}} if self.numbers else {}
        return cast(dict[str, Value], attributes | numbers)


NO_ITEMS = LevelRecipe()


@dataclass(frozen=True)
class Recipe:
    """What the items of one kind are made of, in a version of the kind; `by_tree` is whether each tree has partitions
    of its own.
    """

    hierarchy: str
    by_tree: bool
    version: int
    levels: Mapping[str, LevelRecipe] = field(default_factory=dict)

    def level(self, name: str) -> LevelRecipe:
        """What the items of a level's nodes are made of."""
        return self.levels.get(name, NO_ITEMS)

    @cached_property
    def has_items(self) -> bool:
        """Whether any nodes may have items."""
        return any(level.has_items for level in self.levels.values())

    def tree(self, root: str) -> str:
        """The hash of a root's id where each tree has partitions of its own, else empty."""
        return root if self.by_tree else ""

    def with_nothing(self, levels: Iterable[str]) -> Self:
        """With these levels, whose nodes have no items that are complete."""
        return replace(self, levels={**dict.fromkeys(levels, NO_ITEMS), **self.levels})

    def with_levels(self, levels: Mapping[str, LevelRecipe]) -> Self:
        """With these levels, which it does not name."""
        return replace(self, levels={**self.levels, **levels})

    def kept(self, target: Self) -> Self:
        """What of it is complete when all make another one: nothing where that has other keys of items."""
        is_same = (self.by_tree, self.version) == (target.by_tree, target.version)
        levels = {
            name: one.kept(target.levels.get(name, one)) if is_same else NO_ITEMS for name, one in self.levels.items()
        }
        return replace(target, levels=levels)

    def covers(self, other: Self) -> bool:
        """Whether it names all that another one does, with the same keys of items."""
        is_same = (self.by_tree, self.version) == (other.by_tree, other.version)
        return is_same and all(self.level(name).covers(one) for name, one in other.levels.items())

    def together(self, other: Self) -> Self:
        """With all that another one names, which has the same keys of items."""
        return replace(self, levels={**self.levels, **{n: self.level(n).together(o) for n, o in other.levels.items()}})

    def item(self) -> dict[str, Value]:
        scope = SearchScope.TREE if self.by_tree else SearchScope.HIERARCHY
        levels = {name: one.item() for name, one in self.levels.items()}
        return cast(dict[str, Value], {"version": self.version, "scope": scope.value, "levels": levels})


class _StoredLevel(Struct, forbid_unknown_fields=True):
    attributes: list[str] | None = None
    numbers: dict[str, list[str]] = {}


class StoredRecipe(Struct):
    """A recipe in an item."""

    version: Number
    scope: Literal["hierarchy", "tree"]
    levels: dict[str, _StoredLevel]

    def recipe(self, hierarchy: str) -> Recipe:
        """The recipe of a hierarchy, in the order of names: a map of DynamoDB has none, and where two attributes have
        become one, all have to take the same one of their parts.
        """
        levels = {
            name: LevelRecipe(
                None if one.attributes is None else frozenset(one.attributes),
                {part: tuple(names) for part, names in sorted(one.numbers.items()) if names},
            )
            for name, one in sorted(self.levels.items())
        }
        return Recipe(hierarchy, self.scope == "tree", self.version, levels)


def number_names(hierarchy: Hierarchy, level: str, name: str | None) -> Names:
    """The stored names of an attribute, such as the weight, of a level's nodes; none without a name.

    A level that does not define the attribute may have stored values, also under a former name on other levels.
    """
    if name is None:
        return ()
    own = hierarchy.any_level(level)
    if name in own.attributes:
        return name, *own.attributes[name].was
    former = [was for one in hierarchy.levels.values() if name in one.attributes for was in one.attributes[name].was]
    return name, *[one for one in dict.fromkeys(former) if own.attribute(one) is None]


def agree(names: Names, others: Names) -> bool:
    """Whether these are names of one attribute, or of none."""
    return names == others or not set(names).isdisjoint(others)


def _first(mine: Names, others: Names) -> Names:
    """The first of two that is there, with the names of the other if both are names of the same attribute."""
    return _joined(others, mine) if mine and agree(mine, others) else mine or others


def _joined(names: Names, others: Names) -> Names:
    """The names of an attribute with other ones if some are the same."""
    return tuple(dict.fromkeys([*names, *others])) if not set(names).isdisjoint(others) else names
