"""Unique values: the items by which no two nodes of a hierarchy have the same value of an attribute, such as a code
that another system knows, and by which nodes are found by it.

| item | pk | sk | |
| --- | --- | --- | --- |
| value of at most 500 bytes | `unique/category.sku#TV-48` | `#` | `id`: that of its node, `at`: its place |
| longer value | `unique/category.sku#<digest>` | `##` | the same |

Values compare exactly, as texts in NFC; numbers are written in decimal. Levels that have an attribute of the same name
share its values. `at` is where the node was when its value was written; no move writes it.

The name in the key is the one that the attribute had when its first value was written: in the marker it is the part of
a level's recipe, whose names are all that the attribute has had since. So whoever looks for a value reads the keys of
all names that a class gives the attribute, and the marker, which says which of them counts.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple
from unicodedata import normalize

from msgspec import Struct

from store.errors import NotIndexed, Taken, shorten
from store.kinds.kind import Located, NodeKind
from store.kinds.lineage import Moves
from store.kinds.recipe import LevelRecipe, Names, Recipe, agree
from store.model.attributes import Attribute, Value
from store.model.decoding import decoded
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import Key, Path
from store.model.paths import format_path
from store.model.records import Item, Record, key_of

MAX_VALUE_BYTES = 500  # in a key


class Holder(Struct):
    """What an item says: the full id of the node that has the value, and where that was then."""

    id: str
    at: str

    @classmethod
    def of(cls, item: Item) -> "Holder":
        """The holder in an item; raises DamagedItem."""
        return decoded(item, cls)

    def key(self, hierarchy: str) -> Key:
        """The key of the node when the value was written."""
        root, _, rest = self.at.partition("#")
        return Key(f"{hierarchy}#{root}", f"#{rest}")


class UniqueValue(NamedTuple):
    """A value of an attribute, whose `names` begin with the present one, in a hierarchy."""

    hierarchy: str
    names: Names
    value: str

    @classmethod
    def of(cls, hierarchy: str, attribute: Attribute, value: Value) -> "UniqueValue":
        """A value in canonical form."""
        return cls(hierarchy, names_of(attribute), _text(value))

    @property
    def keys(self) -> list[Key]:
        """The keys at which its item may be."""
        return [_key(self.hierarchy, name, self.value) for name in self.names]

    @property
    def label(self) -> str:
        """The name of the attribute with the value, for messages."""
        return f"{self.names[0]} {shorten(self.value)}"

    def key(self, hierarchy: Hierarchy, made: Recipe | None) -> Key:
        """The key at which its item is if there is one; `made` is what the items of all nodes are made of.

        Raises NotIndexed where some nodes lack such items.
        """
        name, parts = self.names[0], list[str | None]()
        for level in hierarchy.levels.values():
            if (one := level.attributes.get(name)) and one.unique and (made is None or level.name in made.levels):
                parts.append(None if made is None else part_of(made.level(level.name), self.names))
        if None in parts:
            raise not_indexed(self.hierarchy, name)
        return _key(self.hierarchy, (parts or [name])[0] or name, self.value)

    def is_of(self, record: Record) -> bool:
        """Whether a node has the value."""
        found = [_text(record.attributes[one]) for one in self.names if one in record.attributes]
        return found[:1] == [self.value]


class UniqueKind(NodeKind):
    """Items of unique values: each is written on condition that no other node has it."""

    name = "unique"
    has_conditions = True

    def is_asked(self, hierarchy: Hierarchy) -> bool:
        return any(one.unique for level in hierarchy.levels.values() for one in level.attributes.values())

    def asked(self, hierarchy: Hierarchy, level: str) -> LevelRecipe:
        return LevelRecipe(None, {one.name: names_of(one) for one in unique_attributes(hierarchy, level)})

    def aligned(self, found: LevelRecipe, levels: Iterable[LevelRecipe]) -> LevelRecipe:
        numbers = {}
        for part, names in found.numbers.items():
            others = [other for one in levels if (other := part_of(one, names)) is not None]
            numbers[others[0] if others else part] = names
        return found._replace(numbers=numbers)

    def lacks(self, hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
        found = unique_attributes(hierarchy, level.name)
        return [f"the values of {one.name} of {level.label}" for one in found if part_of(made, names_of(one)) is None]

    def unmade(self, hierarchy: Hierarchy, made: Recipe | None, old: Record | None, new: Record) -> NotIndexed | None:
        for one in unique_attributes(hierarchy, new.level):
            value = one.value_in(new.attributes)
            if value is None or (old is not None and value == one.value_in(old.attributes)):
                continue
            if made is None or (new.level in made.levels and part_of(made.level(new.level), names_of(one)) is None):
                return not_indexed(hierarchy.name, one.name)
        return None

    def items(self, recipe: Recipe, node: Located) -> list[Item]:
        record = node.record
        at = f"{record.pk[len(recipe.hierarchy) + 1 :]}{record.sk}"
        found = unique_values(recipe, record.level, record.attributes)
        return [{"pk": key.pk, "sk": key.sk, "id": record.id, "at": at} for key in found]

    def owner(self, item: Item) -> str | None:
        return str(item.get("id")) if str(item["pk"]).startswith(f"{self.name}/") else None

    def is_same(self, found: Item, item: Item) -> bool:
        return found.get("id") == item["id"]

    def is_outdated(self, found: Item, item: Item, moves: Moves | None) -> bool:
        return Holder.of(found).id == item["id"]

    def taken(self, hierarchy: Hierarchy | None, record: Record, item: Item, holder: Path | None) -> Taken:
        part, _, text = str(item["pk"]).partition(".")[2].partition("#")
        name = part
        for one in unique_attributes(hierarchy, record.level) if hierarchy else ():
            if key_of(item) in UniqueValue.of(record.hierarchy, one, one.value_in(record.attributes)).keys:
                name, text = one.name, _text(one.value_in(record.attributes))
        place = "another node" if holder is None else shorten(format_path(holder))
        return Taken(f"{shorten(text)} is the {name} of {place}; choose another.").at("attributes", name)


def unique_attributes(hierarchy: Hierarchy, level: str) -> list[Attribute]:
    """The attributes of a level of whose values each belongs to one node."""
    return [one for one in hierarchy.any_level(level).attributes.values() if one.unique]


def unique_by_name(hierarchy: Hierarchy) -> dict[str, Attribute]:
    """The unique attributes of all levels by their present names."""
    return {one.name: one for level in hierarchy.levels for one in unique_attributes(hierarchy, level)}


def unique_values(recipe: Recipe, level: str, attributes: Mapping[str, Value]) -> dict[Key, UniqueValue]:
    """The values of a node of which it has items, by their keys."""
    found = dict[Key, UniqueValue]()
    for part, names in recipe.level(level).numbers.items():
        value = next((attributes[one] for one in names if one in attributes), None)
        if isinstance(value, str | int) and not isinstance(value, bool):
            text = _text(value)
            found[_key(recipe.hierarchy, part, text)] = UniqueValue(recipe.hierarchy, names, text)
    return found


def names_of(attribute: Attribute) -> Names:
    """All names of an attribute, the present one first."""
    return attribute.name, *attribute.was


def part_of(made: LevelRecipe, names: Names) -> str | None:
    """The name of an attribute in keys; None where the items of a level are not made of it."""
    return next((part for part, own in made.numbers.items() if agree(names, own)), None)


def not_indexed(hierarchy: str, name: str) -> NotIndexed:
    """The error where not all values of an attribute have their items."""
    return NotIndexed(f"Not all values of {name} of {hierarchy} are known to be unique yet; that takes clade repair.")


def _key(hierarchy: str, name: str, value: str) -> Key:
    text = normalize("NFC", value)
    if len(text.encode()) <= MAX_VALUE_BYTES:
        return Key(f"unique/{hierarchy}.{name}#{text}", "#")
    return Key(f"unique/{hierarchy}.{name}#{blake2b(text.encode(), digest_size=32).hexdigest()}", "##")


def _text(value: Value) -> str:
    return normalize("NFC", value) if isinstance(value, str) else str(value)
