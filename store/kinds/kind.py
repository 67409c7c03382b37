"""Node kinds: kinds of items that are stored because of a node, beside the node and its id record.

All who write nodes write the items of all kinds: edits, large moves, imports and repairs loop over `KINDS`
(`store/kinds/items.py`) and name none of them. What the items are made of says the marker of the hierarchy
(`store/kinds/marker.py`), whatever the class of the server asks for.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple, Self

from store.errors import AlreadyExists, Fault, NotIndexed
from store.kinds.lineage import Lineage, Moves, lineage
from store.kinds.recipe import LevelRecipe, Recipe
from store.model.hierarchy import Hierarchy, Level
from store.model.keys import Path
from store.model.records import Change, Delete, Item, Put, Record, key_of


class Located(NamedTuple):
    """A node with its lineage."""

    record: Record
    line: Lineage

    @classmethod
    def below(cls, ancestors: Sequence[Record], record: Record) -> Self:
        """A node whose ancestors, the root first, are read."""
        return cls(record, lineage([one.id for one in (*ancestors, record)]))


class NodeKind(ABC):
    """A kind of items, by its `name` in the marker; the `version` is raised by a change of what items are made of,
    after which each table needs a repair.

    The keys of items follow from the node itself, and where the recipe is `by_tree` from the id of its root. With
    `has_lineage` items have the lineage of their node, which the moves of its ancestors leave as it was; without it an
    item has nothing that such a move changes. With `has_conditions` no two nodes have items of the same key: each
    item has the full `id` of its node, and all writers read what is stored before they write. What a class
    no longer asks for of these a repair takes off the marker. Messages call items of the kind by `word`.
    """

    name: ClassVar[str]
    word: ClassVar[str] = "search item"
    version: ClassVar[int] = 1
    has_lineage: ClassVar[bool] = False
    has_conditions: ClassVar[bool] = False

    @abstractmethod
    def is_asked(self, hierarchy: Hierarchy) -> bool:
        """Whether a class asks for items of this kind."""

    @abstractmethod
    def asked(self, hierarchy: Hierarchy, level: str) -> LevelRecipe:
        """What a class asks for of a level, which it need not define."""

    @abstractmethod
    def lacks(self, hierarchy: Hierarchy, level: Level, made: LevelRecipe) -> list[str]:
        """What a class asks for of a level that items which are `made` so lack, in words for a person."""

    @abstractmethod
    def items(self, recipe: Recipe, node: Located) -> list[Item]:
        """All items of a node; their keys follow from the beginning of its lineage alone."""

    @abstractmethod
    def owner(self, item: Item) -> str | None:
        """The full id of the node of an item of this kind, None for any other item."""

    def is_by_tree(self, hierarchy: Hierarchy) -> bool:
        """Whether each tree has partitions of its own, by a class."""
        return False

    def aligned(self, found: LevelRecipe, levels: Iterable[LevelRecipe]) -> LevelRecipe:
        """What a class asks for of a level, with the names of parts that other levels have made."""
        return found

    def changes(self, recipe: Recipe, old: Located | None, new: Located | None) -> list[Change]:
        """The changes that make the items of a node right; None for one that did not exist before, or does not now.

        Those of a kind with conditions are made of what is stored (`store/kinds/conditional.py`).
        """
        if old is None:
            return [Put(item) for item in self.items(recipe, new)] if new else []
        before = {key_of(item): item for item in self.items(recipe, old)}
        after = {key_of(item): item for item in self.items(recipe, new)} if new else {}
        changes: list[Change] = [Put(item) for key, item in after.items() if before.get(key) != item]
        return changes + [Delete(key) for key in before if key not in after]

    def is_outdated(self, found: Item, item: Item, moves: Moves | None) -> bool:
        """Whether an item that was `found` is as it was made before ancestors of its node were renamed or moved: the
        `moves` lead from it to the present one. Raises DamagedItem for one that cannot be read.
        """
        return False

    # -- kinds with conditions -----------------------------------------------------------------------------------------

    def label(self, hierarchy: Hierarchy | None, record: Record | None, item: Item) -> str:
        """What an item is made of, such as `sku TV-48`, by its node if that is known and has it."""
        return self.word

    def is_same(self, old: Item, new: Item) -> bool:
        """Whether an item that a node has need not be written for what it has now."""
        return old == new

    def unmade(self, hierarchy: Hierarchy, recipe: Recipe | None, old: Record | None, new: Record) -> NotIndexed | None:
        """Why a node may not be written so with a class while items are made by a recipe, None where it may."""
        return None

    def taken(
        self,
        hierarchy: Hierarchy | None,
        record: Record,
        item: Item,
        holder: Path | None,
        former: Path | None = None,
        *,
        is_beside: bool = False,
    ) -> Fault:
        """The fault of a node whose item another one has, with the path of that; None where that is not told. `former`
        is the last path of a node that is restored, perhaps together with the other one (`is_beside`).
        """
        return AlreadyExists(f"Another node has the {self.name} of {record.id}.")
