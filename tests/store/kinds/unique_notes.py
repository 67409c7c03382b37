"""A kind that no code knows: the note of a node is unique in its hierarchy, or in its tree. It reads before it writes,
and writes on a condition.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from store.errors import AlreadyExists
from store.kinds.node_kind import Found, Located, NodeKind
from store.model.items import ABSENT, Change, Delete, Item, Put, key_of
from store.model.keys import Key
from store.search.lineage import STEP, Moves


class UniqueNotes(NodeKind):
    noun = "unique note"
    in_tree = False

    @property
    def applies(self) -> bool:
        return self.hierarchy.name == "category"

    @property
    def partitions(self) -> Sequence[str]:
        return [f"unique/{self.hierarchy.name}.note"]

    def items(self, node: Located) -> list[Item]:
        note = node.record.attributes.get("note")
        tree = f"{node.line[:STEP]}#" if self.in_tree else ""
        pk = f"unique/{self.hierarchy.name}.note#{tree}{note}"
        record = node.record
        return [] if note is None else [{"pk": pk, "sk": "#", "id": record.id, "tree": record.pk, "key": record.sk}]

    def owner(self, item: Item) -> str:
        return str(item.get("id"))

    def keys_to_read(self, before: Located | None, after: Located | None) -> list[Key]:
        return [key_of(item) for node in (before, after) if node for item in self.items(node)]

    def put(self, item: Item, old: Item | None, found: Found) -> Change:
        holder = found.get(key_of(item))
        if holder is not None and holder.get("id") != item["id"]:
            raise AlreadyExists("Another node has this note; choose another.").at("attributes", "note")
        return Put(item, ABSENT if holder is None else {"id": item["id"]})

    def delete(self, item: Item, found: Found) -> Change | None:
        holder = found.get(key_of(item))
        is_own = holder is not None and holder.get("id") == item["id"]
        return Delete(key_of(item), {"id": item["id"]}) if is_own else None

    def follows(self, source: Key, target: Key) -> bool:
        return False  # the key in an item is a hint, which moves leave as it is

    def is_same(self, stored: Item, derived: Item) -> bool:
        return stored.get("id") == derived["id"]

    def facts(self, items: Sequence[Item], moves: Moves | None) -> Iterable[str]:
        return [f"{item['pk']}\n{item.get('id')}" for item in items]


class UniqueInTree(UniqueNotes):
    in_tree = True
    by_ancestors = True

    def follows(self, source: Key, target: Key) -> bool:
        return source.pk != target.pk or source.sk == "#"


def notes(items: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """The notes and ids in the items of a table, as the kind stores them."""
    return sorted((item["pk"].rpartition("#")[2], item["id"]) for item in items if item["pk"].startswith("unique/"))


def notes_of_nodes(items: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """The same as the nodes of the table have them."""
    return sorted((item["note"], item["id"]) for item in items if "tier" in item and item.get("note") is not None)
