"""Changes of items of kinds with conditions, of which no two nodes have one of the same key.

They follow from the nodes before and after a whole transaction: first all items are given up, then all are taken. So
nodes may pass their items on to one another in one transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from store.kinds.kind import Located, NodeKind
from store.kinds.marker import Marker, Recipes
from store.kinds.registry import KINDS
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path
from store.model.records import ABSENT, Change, Delete, Item, Put, Record, key_of


class Waiting(NamedTuple):
    """The items of one kind that a node has `before` and `after` a change, which wait for what is stored at their keys.

    `record` is the node after it, or before it where it is removed; `edits` are the places of the edits among several
    that took those `after` it. `former` is the last path of a node that is restored.
    """

    kind: NodeKind
    record: Record
    before: Mapping[Key, Item]
    after: Mapping[Key, Item]
    edits: Mapping[Key, int] = {}
    former: Path | None = None

    @classmethod
    def of(cls, recipes: Recipes, old: Located | None, new: Located | None) -> "list[Waiting]":
        """What waits of all kinds; a node without or with the same items before and after waits for none."""
        node, found = new or old, list[Waiting]()
        for name, recipe in recipes.items():
            if node is not None and (kind := KINDS[name]).has_conditions and recipe.level(node.record.level).has_items:
                before, after = [{key_of(one): one for one in kind.items(recipe, n)} if n else {} for n in (old, new)]
                found += cls(kind, node.record, before, after)._needed()
        return found

    @property
    def keys(self) -> list[Key]:
        """The keys to be read."""
        return [*{**self.before, **self.after}]

    def then(self, later: "Waiting") -> "Waiting":
        """What waits after a later change of the same node."""
        before = {key: one for key, one in later.before.items() if key not in self.after}
        after = {key: one for key, one in self.after.items() if key not in later.before}
        edits = {**self.edits, **later.edits}
        return later._replace(before={**self.before, **before}, after={**after, **later.after}, edits=edits)

    def _needed(self) -> "list[Waiting]":
        """This, without what stays the same; empty where nothing is left."""
        before, after = self.before, self.after
        same = {key for key in before if key in after and self.kind.is_same(before[key], after[key])}
        if not same:
            return [self] if before or after else []
        sides = [{key: one for key, one in side.items() if key not in same} for side in (before, after)]
        return [self._replace(before=sides[0], after=sides[1])] if any(sides) else []


class Taken(NamedTuple):
    """An item that a node needs and another one has, whose full id is the `holder`."""

    waiting: Waiting
    item: Item
    holder: str


def check_made(hierarchy: Hierarchy, marker: Marker | None, old: Record | None, new: Record) -> None:
    """Raise NotIndexed where a node may not be written so before a repair makes items of a kind."""
    for name, kind in KINDS.items():
        if kind.has_conditions:
            recipe = marker.recipes.get(name) if marker else None
            if error := kind.unmade(hierarchy, recipe, old, new):
                raise error


def net(waiting: Iterable[Waiting]) -> list[Waiting]:
    """What waits of each node, of which several changes are one."""
    found: dict[tuple[str, str], Waiting] = {}
    for one in waiting:
        first = found.get(key := (one.kind.name, one.record.id))
        found[key] = one if first is None else first.then(one)
    return [needed for one in found.values() for needed in one._needed()]


def keys_of(waiting: Iterable[Waiting]) -> list[Key]:
    """The keys to be read before `conditional_changes`."""
    return [key for one in waiting for key in one.keys]


def conditional_changes(
    waiting: Sequence[Waiting], found: Mapping[Key, Item | None]
) -> tuple[dict[Key, Change], list[Taken]]:
    """The changes of one transaction by key, and what cannot be taken, since others have it; `found` is what is stored
    at all keys.

    An item that is missing, or another node's, is not removed: a condition on it would never hold.
    """
    changes, left, taken = dict[Key, Change](), dict[Key, Item | None](), list[Taken]()
    for one in waiting:
        own = {"id": one.record.id}
        for key in one.before:
            stored = left.setdefault(key, found[key])
            if key not in one.after and stored is not None and stored.get("id") == one.record.id:
                changes[key], left[key] = Delete(key, own), None
    takes = [(one, key) for one in waiting for key in one.after]
    for one, key in sorted(takes, key=lambda take: take[0].edits.get(take[1], 0)):
        item, stored = one.after[key], left.setdefault(key, found[key])
        if stored is not None and stored.get("id") != one.record.id:
            taken.append(Taken(one, item, str(stored.get("id"))))
            continue
        put, first = Put(item, ABSENT if stored is None else {"id": one.record.id}), changes.get(key)
        changes[key], left[key] = put if first is None else replace(put, when=first.when), item
    return changes, taken
