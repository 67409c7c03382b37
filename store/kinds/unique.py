"""Unique values: the items by which no two nodes of a hierarchy have the same value of an attribute, such as a code
that another system knows, and by which nodes are found by it.

| item | pk | sk | |
| --- | --- | --- | --- |
| value of at most 500 bytes | `unique/category.sku#TV-48` | `#` | `id`: that of its node, `at`: its place |
| longer value | `unique/category.sku#<digest>` | `##` | the same |

Values compare exactly, as texts in NFC where they have at most 500 characters; numbers are written in decimal. Levels
that have an attribute of the same name share its values. `at` is where the node was when its value was written; no move
writes it.

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
    """A value of an attribute, whose `names` begin with the present one, in a hierarchy; `label` is its name in
    messages.
    """

    hierarchy: str
    names: Names
    value: str
    label: str

    @classmethod
    def of(cls, hierarchy: str, attribute: Attribute, value: Value) -> "UniqueValue":
        """A value in canonical form."""
        return cls(hierarchy, names_of(attribute), _text(value), attribute.label)

    @property
    def keys(self) -> list[Key]:
        """The keys at which its item may be."""
        return [_key(self.hierarchy, name, self.value) for name in self.names]

    @property
    def text(self) -> str:
        """The name of the attribute with the value, for messages."""
        return f"{self.label} {shorten(self.value)}"

    def key(self, hierarchy: Hierarchy, made: Recipe | None) -> Key:
        """The key at which its item is if there is one; `made` is what the items of all nodes are made of.

        Raises NotIndexed where some nodes lack such items.
        """
        name, parts = self.names[0], list[str | None]()
        for level in hierarchy.levels.values():
            if (one := level.attributes.get(name)) and one.unique and (made is None or level.name in made.levels):
                parts.append(None if made is None else part_of(made.level(level.name), names_of(one)))
        if None in parts or len({*parts}) > 1:  # of several where two attributes have become one
            raise not_indexed(self.hierarchy, self.label)
        return _key(self.hierarchy, (parts or [name])[0] or name, self.value)

    def is_of(self, record: Record) -> bool:
        """Whether a node has the value."""
        found = [_text(record.attributes[one]) for one in self.names if one in record.attributes]
        return found[:1] == [self.value]


class UniqueKind(NodeKind):
    """Items of unique values: each is written on condition that no other node has it."""

    name = "unique"
    word = "unique-value item"
    has_conditions = True

    def is_asked(self, hierarchy: Hierarchy) -> bool:
        return any(level.unique for level in hierarchy.levels.values())

    def asked(self, hierarchy: Hierarchy, level: str) -> LevelRecipe:
        return LevelRecipe(None, {one.name: names_of(one) for one in hierarchy.any_level(level).unique})

    def aligned(self, found: LevelRecipe, levels: Iterable[LevelRecipe]) -> LevelRecipe:
        numbers = {}
        for part, names in found.numbers.items():
            others = [other for one in levels if (other := part_of(one, names)) is not None]
            numbers[others[0] if others else part] = names
        return found._replace(numbers=numbers)

    def lacks(self, hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
        return [f"{one.name} of {level.label}" for one in level.unique if part_of(made, names_of(one)) is None]

    def unmade(self, hierarchy: Hierarchy, recipe: Recipe | None, old: Record | None, new: Record) -> NotIndexed | None:
        for one in hierarchy.any_level(new.level).unique:
            value = one.value_in(new.attributes)
            if value is None or (old is not None and value == one.value_in(old.attributes)):
                continue
            levels = {} if recipe is None else recipe.levels
            if recipe is None or (new.level in levels and part_of(levels[new.level], names_of(one)) is None):
                return not_indexed(hierarchy.name, one.label)
        return None

    def items(self, recipe: Recipe, node: Located) -> list[Item]:
        record = node.record
        at = f"{record.pk[len(recipe.hierarchy) + 1 :]}{record.sk}"
        found = unique_values(recipe, record.level, record.attributes)
        return [{"pk": key.pk, "sk": key.sk, "id": record.id, "at": at} for key in found]

    def owner(self, item: Item) -> str | None:
        kind, _, rest = str(item["pk"]).partition("/")
        own, found = rest.partition(".")[0] + ":", item.get("id")
        # Damaged ids are those of a node that does not exist.
        return None if kind != self.name else found if isinstance(found, str) and found.startswith(own) else own

    def is_same(self, found: Item, item: Item) -> bool:
        return found.get("id") == item["id"]

    def is_outdated(self, found: Item, item: Item, moves: Moves | None) -> bool:
        holder = Holder.of(found)
        return found.keys() == item.keys() and holder.id == item["id"] and holder.at.endswith("#")

    def label(self, hierarchy: Hierarchy | None, record: Record | None, item: Item) -> str:
        return " ".join(_named(hierarchy, record, item)[1:])

    def taken(
        self,
        hierarchy: Hierarchy | None,
        record: Record,
        item: Item,
        holder: Path | None,
        former: Path | None = None,
        *,
        is_beside: bool = False,
    ) -> Taken:
        name, label, text = _named(hierarchy, record, item)
        place = "another node" if holder is None else shorten(format_path(holder))
        fault = f"{text} is the {label} of {place}"
        if former is None:
            return Taken(f"{fault}; choose another.").at("attributes", name)
        way = "restore one of them alone to another place and change it" if is_beside else "change or delete that first"
        return Taken(f"{shorten(format_path(former))}: {fault}; {way}.").at("id")


def given_values(hierarchy: Hierarchy, level: str, values: Mapping[str, Value]) -> list[UniqueValue]:
    """The unique ones of the values that a node of a level gets."""
    found = hierarchy.any_level(level).unique if values else ()
    return [UniqueValue.of(hierarchy.name, one, values[one.name]) for one in found if values.get(one.name) is not None]


def unique_values(recipe: Recipe, level: str, attributes: Mapping[str, Value]) -> dict[Key, UniqueValue]:
    """The values of a node of which it has items, by their keys: of an attribute that is stored under several names, as
    after an undone renaming, all of them, since each version of a class reads another one.
    """
    found = dict[Key, UniqueValue]()
    for part, names in recipe.level(level).numbers.items():
        for value in (attributes[one] for one in names if one in attributes):
            if isinstance(value, str | int) and not isinstance(value, bool):
                text = _text(value)
                found[_key(recipe.hierarchy, part, text)] = UniqueValue(recipe.hierarchy, names, text, names[0])
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


def _named(hierarchy: Hierarchy | None, record: Record | None, item: Item) -> tuple[str, str, str]:
    """The attribute of an item, its name in messages and its value, by the node if that has it, else as in the key."""
    name, _, text = str(item["pk"]).partition(".")[2].partition("#")
    label = name
    if hierarchy is not None and record is not None:
        for one in hierarchy.any_level(record.level).unique:
            value = one.value_in(record.attributes)
            if value is not None and key_of(item) in UniqueValue.of(hierarchy.name, one, value).keys:
                name, label, text = one.name, one.label, _text(value)
    return name, label, shorten(text) or '""'


def _key(hierarchy: str, name: str, value: str) -> Key:
    if len(value.encode()) <= MAX_VALUE_BYTES:
        return Key(f"unique/{hierarchy}.{name}#{value}", "#")
    return Key(f"unique/{hierarchy}.{name}#{blake2b(value.encode(), digest_size=32).hexdigest()}", "##")


def _text(value: Value) -> str:
    """A value as it is compared. Long texts stay as they are, since normalizing n combining characters takes n²."""
    text = str(value)
    return text if text.isascii() or len(text) > MAX_VALUE_BYTES else normalize("NFC", text)
