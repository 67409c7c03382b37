"""Marker: the item of a hierarchy that says, level by level, what its search items are made of.

All who write nodes make the search items that the marker names, whatever their own class searches. So servers with two
versions of a class write the same items, and what one version searches stays complete while the other one writes.

| item | pk | sk |
| --- | --- | --- |
| marker: what the search items are made of | `search/location` | `-` |

| attribute | |
| --- | --- |
| `n` | the number of its writes; each requires the one before |
| `made` | what the items of all nodes are made of: what can be searched |
| `making` | what they are made of when the repair that is running has ended; all writers make these already |

Both have the scope, the version of the words, and for each level the stored names of its attributes: `words` are those
whose words are found, beside the name of the node; without it the level has no word items. `weight`, `latitude` and
`longitude` have an attribute's present and former names, of which the first one that a node has counts.

A level that the marker does not name has no nodes: who writes the first one names it in the same transaction. An
attribute that is renamed is named by its other name in the transaction that may first store a value under it. Items of
another version of the words cannot be made, so who would have to make them takes the words off the marker.

A hierarchy without a marker has no search items. It is made with the first root, or by a repair.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal, NamedTuple, Self, cast

from msgspec import Struct

from store.model.attributes import Value
from store.model.decoding import Number, decoded
from store.model.hierarchy import Hierarchy, Level, SearchScope
from store.model.keys import Key
from store.model.records import ABSENT, Condition, Item, Put

WORDS_VERSION = 2
"""Of what words are made of; a change of folding or of the items raises it, and each table needs a repair."""
MARKER = "-"  # the sort key of the marker, before all others

Names = tuple[str, ...]
"""The stored names of an attribute."""


class Kind(Enum):
    """A kind of search items."""

    WORDS = "words"
    PLACES = "places"


class LevelRecipe(NamedTuple):
    """What the search items of a level's nodes are made of; `words` is None where they have no word items."""

    words: frozenset[str] | None = None
    weight: Names = ()
    latitude: Names = ()
    longitude: Names = ()

    def covers(self, other: Self) -> bool:
        """Whether items that are made of it lead to all that another one asks for."""
        has_words = other.words is None or (
            self.words is not None and other.words <= self.words and _agree(self.weight, other.weight)
        )
        has_places = _agree(self.latitude, other.latitude) and _agree(self.longitude, other.longitude)
        return has_words and (has_places or not other.latitude)

    def renamed(self, level: Level | None) -> Self:
        """With all names of the attributes of which it has one."""
        found = self
        for one in level.attributes.values() if level else ():
            if one.was:
                found = found._with((one.name, *one.was))
        return found

    def _with(self, names: Names) -> Self:
        words = self.words
        if words is not None and not words.isdisjoint(names):
            words = words.union(names)
        numbers = [_joined(one, names) for one in (self.weight, self.latitude, self.longitude)]
        return self._replace(words=words, weight=numbers[0], latitude=numbers[1], longitude=numbers[2])

    def item(self) -> dict[str, Value]:
        words = {} if self.words is None else {"words": sorted(self.words)}
        numbers = {"weight": self.weight, "latitude": self.latitude, "longitude": self.longitude}
        return cast(dict[str, Value], words | {name: [*names] for name, names in numbers.items() if names})


NO_ITEMS = LevelRecipe()


@dataclass(frozen=True)
class Recipe:
    """What the search items of a hierarchy are made of; `by_tree` is whether each tree is searched by itself."""

    hierarchy: str
    by_tree: bool
    levels: Mapping[str, LevelRecipe] = field(default_factory=dict)
    version: int = WORDS_VERSION

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> Self:
        """What a class searches."""
        levels = {name: asked(hierarchy, name) for name in hierarchy.levels}
        return cls(hierarchy.name, is_by_tree(hierarchy), levels)

    @property
    def is_made(self) -> bool:
        """Whether this version of Clade makes its words."""
        return self.version == WORDS_VERSION

    def level(self, name: str) -> LevelRecipe:
        return self.levels.get(name, NO_ITEMS)

    def tree(self, root: str) -> str:
        """The hash of a root's id where each tree is searched by itself, else empty."""
        return root if self.by_tree else ""

    def naming(self, hierarchy: Hierarchy | None, levels: Iterable[str]) -> Self:
        """This one for writing nodes of these levels with the class of a hierarchy, None where all is named."""
        if hierarchy is None:
            return self
        changed: dict[str, LevelRecipe] = {}
        for name in levels:
            present = self.levels.get(name)
            found = asked(hierarchy, name) if present is None else present.renamed(hierarchy.levels.get(name))
            if found != present:
                changed[name] = found
        return replace(self, levels={**self.levels, **changed}) if changed else self

    def with_nothing(self, levels: Iterable[str]) -> Self:
        """With these levels, whose nodes have no items that are complete."""
        return replace(self, levels={**dict.fromkeys(levels, NO_ITEMS), **self.levels})

    def without_words(self) -> Self:
        """What is left where this version of Clade does not make the words."""
        levels = {name: one._replace(words=None, weight=()) for name, one in self.levels.items()}
        return replace(self, levels=levels, version=WORDS_VERSION)

    def kept(self, target: Self) -> Self:
        """What of it is complete when all make another one: nothing where that has other keys of items."""
        same_scope = self.by_tree == target.by_tree
        levels = {}
        for name, one in self.levels.items():
            other = target.levels.get(name, one)
            has_words = same_scope and self.version == target.version and _agree(one.weight, other.weight)
            has_places = same_scope and _agree(one.latitude, other.latitude) and _agree(one.longitude, other.longitude)
            words = (one.words, one.weight) if has_words else (None, ())
            levels[name] = LevelRecipe(*words, *((one.latitude, one.longitude) if has_places else ((), ())))
        return replace(target, levels=levels)

    def covers(self, other: Self) -> bool:
        """Whether it names all that another one does, with the same keys of items."""
        pairs = [(self.level(name), one) for name, one in other.levels.items()]
        return (self.by_tree, self.version) == (other.by_tree, other.version) and all(
            own.covers(one) for own, one in pairs
        )

    def together(self, other: Self) -> Self:
        """With all that another one names, which has the same keys of items."""
        levels = dict(self.levels)
        for name, one in other.levels.items():
            own = levels.get(name, NO_ITEMS)
            words = own.words if one.words is None else one.words.union(own.words or ())
            numbers = [_first(own, one, part) for part in ("weight", "latitude", "longitude")]
            levels[name] = LevelRecipe(words, *numbers)
        return replace(self, levels=levels)

    def item(self) -> dict[str, Value]:
        scope = SearchScope.TREE if self.by_tree else SearchScope.HIERARCHY
        levels = {name: one.item() for name, one in self.levels.items()}
        return cast(dict[str, Value], {"version": self.version, "scope": scope.value, "levels": levels})


class _StoredLevel(Struct, forbid_unknown_fields=True):
    words: list[str] | None = None
    weight: list[str] = []
    latitude: list[str] = []
    longitude: list[str] = []


class _StoredRecipe(Struct):
    version: Number
    scope: Literal["hierarchy", "tree"]
    levels: dict[str, _StoredLevel]

    def recipe(self, hierarchy: str) -> Recipe:
        levels = {
            name: LevelRecipe(
                None if one.words is None else frozenset(one.words),
                tuple(one.weight), tuple(one.latitude), tuple(one.longitude),
            )
            for name, one in self.levels.items()
        }  # fmt: skip
        return Recipe(hierarchy, self.scope == "tree", levels, self.version)


class _StoredMarker(Struct):
    n: Number
    made: _StoredRecipe
    making: _StoredRecipe | None = None


@dataclass(frozen=True)
class Marker:
    """What the search items are `made` of, and what a repair is `making` them of; `number` counts its writes."""

    number: int
    made: Recipe
    making: Recipe | None = None

    @classmethod
    def of(cls, hierarchy: str, item: Item | None) -> Self | None:
        """The marker in an item, None without one; raises DamagedItem."""
        if item is None:
            return None
        found = decoded(item, _StoredMarker)
        making = None if found.making is None else found.making.recipe(hierarchy)
        return cls(found.n, found.made.recipe(hierarchy), making)

    @classmethod
    def first(cls, hierarchy: Hierarchy) -> Self:
        """The marker of a hierarchy that has no node yet."""
        return cls(0, Recipe(hierarchy.name, is_by_tree(hierarchy)))

    @classmethod
    def begin(cls, target: Recipe) -> Self:
        """The marker of a hierarchy that has none yet, while a repair writes what the target names."""
        return cls(0, replace(target, levels={}).with_nothing(target.levels), target)

    @property
    def recipe(self) -> Recipe:
        """What all writers make the items of."""
        return self.making or self.made

    def naming(self, hierarchy: Hierarchy | None, levels: Iterable[str]) -> Self:
        """The marker for writing nodes of these levels with the class of a hierarchy; the same if all is named."""
        if not self.recipe.is_made:
            return replace(self, made=self.recipe.without_words(), making=None).naming(hierarchy, levels)
        levels = list(levels)
        made, making = self.made.naming(hierarchy, levels), self.making and self.making.naming(hierarchy, levels)
        return self if made is self.made and making is self.making else replace(self, made=made, making=making)

    def begun(self, target: Recipe) -> Self:
        """The marker while a repair writes what the target names."""
        return replace(self, made=self.made.kept(target), making=target)

    def ended(self, hierarchy: Hierarchy, target: Recipe) -> Self | None:
        """The marker after a repair has written what the target names; None where others no longer make that."""
        making = self.making
        if making is None or not making.covers(target):
            return None
        made = self.made.together(target).naming(hierarchy, target.levels)
        return replace(self, made=made, making=None if made == making else making)

    def put(self) -> Put:
        """The change that writes the marker over the one that it was made of."""
        key, when = marker_key(self.made.hierarchy), self.when
        item: Item = {"pk": key.pk, "sk": key.sk, "n": self.number + 1, "made": cast(Value, self.made.item())}
        return Put(item if self.making is None else item | {"making": cast(Value, self.making.item())}, when)

    @property
    def when(self) -> Condition:
        """The condition that the stored marker is the one that was read."""
        return {"n": self.number} if self.number else ABSENT


def marker_key(hierarchy: str) -> Key:
    """The key of the marker of a hierarchy."""
    return Key(f"search/{hierarchy}", MARKER)


# -- what a class searches ---------------------------------------------------------------------------------------------


def is_indexed(hierarchy: Hierarchy) -> bool:
    """Whether a class searches: by words, or near a point."""
    return hierarchy.search is not None or hierarchy.location is not None


def is_by_tree(hierarchy: Hierarchy) -> bool:
    """Whether each tree is searched by itself."""
    return hierarchy.search is not None and hierarchy.search.scope is SearchScope.TREE


def asked(hierarchy: Hierarchy, name: str) -> LevelRecipe:
    """What a class searches of a level; of one that it does not define the names of nodes, and numbers by them."""
    level = hierarchy.any_level(name)
    searched = [level.attributes[one] for one in level.searched]
    weight = hierarchy.search.weight if hierarchy.search else None
    latitude, longitude = hierarchy.location or (None, None)
    return LevelRecipe(
        frozenset([name for one in searched for name in (one.name, *one.was)]) if hierarchy.search else None,
        *[number_names(hierarchy, name, one) for one in (weight, latitude, longitude)],
    )


def number_names(hierarchy: Hierarchy, level: str, name: str | None) -> Names:
    """The stored names of the weight, the latitude or the longitude of a level's nodes.

    A level that does not define the attribute may have stored values, also under a former name on other levels.
    """
    if name is None:
        return ()
    own = hierarchy.any_level(level)
    if name in own.attributes:
        return name, *own.attributes[name].was
    former = [was for one in hierarchy.levels.values() if name in one.attributes for was in one.attributes[name].was]
    return name, *[one for one in dict.fromkeys(former) if own.attribute(one) is None]


def lacking(hierarchy: Hierarchy, marker: Marker | None, kind: Kind) -> list[str]:
    """What a class searches that not all nodes have items of, in words; none where its searches can be answered."""
    if (hierarchy.search if kind is Kind.WORDS else hierarchy.location) is None:
        return []
    if marker is None:
        return ["all"]
    made = marker.made
    if made.by_tree != is_by_tree(hierarchy):
        return ["all, since search= was another one"]
    if kind is Kind.WORDS and not made.is_made:
        return ["all words, since another version of Clade has written them"]
    levels = [(level, made.levels[level.name]) for level in hierarchy.levels.values() if level.name in made.levels]
    lacks = _lacks_words if kind is Kind.WORDS else _lacks_places
    return [text for level, one in levels for text in lacks(hierarchy, level, one)]


def _lacks_words(hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
    if made.words is None:
        return [f"the words of {level.label}"]
    if not _agree(made.weight, asked(hierarchy, level.name).weight):
        return [f"the words of {level.label} by their weight"]
    attributes = [level.attributes[name] for name in level.searched]
    return [f"{one.label} of {level.label}" for one in attributes if made.words.isdisjoint((one.name, *one.was))]


def _lacks_places(hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
    own = asked(hierarchy, level.name)
    is_there = _agree(made.latitude, own.latitude) and _agree(made.longitude, own.longitude)
    return [] if is_there else [f"the places of {level.label}"]


def all_lacking(hierarchy: Hierarchy, marker: Marker | None) -> list[str]:
    """What any search of a class lacks."""
    return list(dict.fromkeys([text for kind in Kind for text in lacking(hierarchy, marker, kind)]))


def missing_text(hierarchy: str, found: Sequence[str]) -> str:
    """The sentence on search items that are missing."""
    return f"Search items of {hierarchy} are missing: {', '.join(found)}."


def target(hierarchy: Hierarchy, marker: Marker | None) -> Recipe:
    """What a repair with a class makes: what the class searches, and what the marker names besides."""
    own = Recipe.of(hierarchy)
    if marker is None:
        return own
    present = marker.recipe
    levels = {}
    for name, one in present.levels.items():
        wanted = own.levels.get(name, NO_ITEMS)
        words = one.words if wanted.words is None else wanted.words.union(one.words or ())
        numbers = [_first(wanted, one, part) for part in ("weight", "latitude", "longitude")]
        if wanted.words is not None and not wanted.weight:
            numbers[0] = ()
        levels[name] = LevelRecipe(words, *numbers).renamed(hierarchy.levels.get(name))
    return Recipe(hierarchy.name, present.by_tree if hierarchy.search is None else own.by_tree, levels)


def _first(one: LevelRecipe, other: LevelRecipe, part: str) -> Names:
    """A part of the first of two that has it, with the names of the other if both have the same attribute."""
    mine, others = cast(Names, getattr(one, part)), cast(Names, getattr(other, part))
    return _joined(others, mine) if mine and _agree(mine, others) else mine or others


def _joined(names: Names, others: Names) -> Names:
    """The names of an attribute with other ones if some are the same."""
    return tuple(dict.fromkeys([*names, *others])) if not set(names).isdisjoint(others) else names


def _agree(names: Names, others: Names) -> bool:
    """Whether these are names of one attribute, or of none."""
    return names == others or not set(names).isdisjoint(others)
