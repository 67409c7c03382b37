"""Lineage: the ids of a node and its ancestors in the search items of the node, and how moves change it.

Search items are keyed by the ids of their nodes, and are not written when an ancestor is renamed or moved. Six
characters for each id, the root's first, let a search find the nodes below another one without reading them. An
ancestor that is renamed keeps its id. One that is moved with nodes below it leaves an item with its new lineage: with
those of all such nodes, the lineage in a search item leads to where its node is now.

| item | pk | sk |
| --- | --- | --- |
| node that was moved with others below it | `kinds/location` | its id |
| the same where each tree is searched by itself | `kinds/drive` | the hash of the root's id, and its id |
| large move that is running | `kinds/location` | `~` and its id |
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from store.model.decoding import decoded
from store.model.keys import MAX_SEGMENTS, Index, Key, KeyRange
from store.model.records import Item

STEP = 6  # characters of an id
MARKER = "-"  # the sort key of the marker, before all others
RUNNING = "~"  # begins the sort keys of running moves, after all others

Lineage = str
"""The hashes of the ids from the root to a node."""
Line = Annotated[str, Meta(pattern=rf"^(.{{{STEP}}})+$")]
Place = Annotated[str, Meta(pattern="#")]
"""A lineage, and a key of a node without its hierarchy, as items have them."""


@lru_cache(8_192)
def id_hash(node_id: str) -> str:
    """Six characters for an id; others may have the same, so what they find has to be verified."""
    return urlsafe_b64encode(blake2b(node_id.encode(), digest_size=5).digest()).decode()[:STEP]


def lineage(ids: Iterable[str]) -> Lineage:
    """The lineage of a node, by the ids from its root to itself."""
    return "".join(map(id_hash, ids))


def steps(line: Lineage) -> list[str]:
    """The hashes in a lineage."""
    return [line[start : start + STEP] for start in range(0, len(line), STEP)]


class _StoredMovedNode(Struct):
    sk: str
    line: Line
    deepest: Annotated[int, Meta(ge=0, lt=MAX_SEGMENTS)]


class MovedNode(NamedTuple):
    """A node that was moved with others below it: its id, its lineage after its last move, and the greatest depth that
    any of its moves began or ended at.
    """

    id: str
    line: Lineage
    deepest: int

    @classmethod
    def of(cls, item: Item) -> "MovedNode":
        """The moved node in an item; raises DamagedItem."""
        found = decoded(item, _StoredMovedNode)
        return cls(moved_id(item), found.line, found.deepest)

    def item(self, key: Key) -> Item:
        """The item at one of its keys."""
        return {"pk": key.pk, "sk": key.sk, "line": self.line, "deepest": self.deepest}

    @classmethod
    def after(cls, node_id: str, old: Lineage, new: Lineage, former: Iterable[Item]) -> "MovedNode":
        """The node after a move from one lineage to another.

        `former` are the items of moved nodes that it and its ancestors had before: those below it may have search items
        from before these moves, too.
        """
        deepest = max(_depth(old), _depth(new))
        for moved in map(cls.of, former):
            distance = len(steps(old)) - 1 - steps(old).index(id_hash(moved.id))
            deepest = max(deepest, moved.deepest + distance)
        return cls(node_id, new, min(deepest, MAX_SEGMENTS - 1))


def moved_key(hierarchy: str, node_id: str, tree: str = "") -> Key:
    """The key of the item of a moved node; `node_id` is full, such as `location:5074472`.

    `tree` is the hash of the id of its root, where each tree is searched by itself.
    """
    return Key(f"kinds/{hierarchy}", tree + node_id)


def moved_nodes(hierarchy: str, tree: str = "") -> KeyRange:
    """The range of the items of all moved nodes of a hierarchy, or of a tree that is searched by itself."""
    lo, hi = (f"{tree}{hierarchy}:", f"{tree}{hierarchy};") if tree else (MARKER + "!", RUNNING)
    return KeyRange(Index.TABLE, f"kinds/{hierarchy}", lo, hi)


def moved_id(item: Item) -> str:
    """The id in the key of an item of a moved node, empty where there is none."""
    sk, hierarchy = str(item["sk"]), str(item["pk"]).partition("/")[2]
    tree, found, rest = sk.partition(f"{hierarchy}:")
    return found + rest if len(tree) in (0, STEP) else ""


def running_key(hierarchy: str, move_id: str) -> Key:
    """The key of the item that shows to searches that a large move is running."""
    return Key(f"kinds/{hierarchy}", f"{RUNNING}{move_id}")


class Moves:
    """Moved nodes, and what follows for lineages that were written before their moves."""

    def __init__(self, moved: Iterable[MovedNode]) -> None:
        self._moved = {one.line[-STEP:]: one for one in moved}
        self.rise = max([0, *[one.deepest - self.depth(one.line) for one in self._moved.values()]])
        """The maximum number by which a node may be less deep than its search items say."""

    def in_tree(self, root: str) -> "Moves":
        """The same without the nodes of other trees; `root` is the hash of the id of the root."""
        return Moves([one for one in self._moved.values() if one.line.startswith(root)])

    def present(self, line: Lineage) -> Lineage:
        """The present lineage of a node, by one that it has or had."""
        below = ""
        # Not without end: where two ids have one hash, a lineage may contain itself.
        for _ in range(MAX_SEGMENTS if self._moved else 0):
            end = next((end for end in range(len(line), 0, -STEP) if line[end - STEP : end] in self._moved), 0)
            if not end:
                break
            line, below = self._moved[line[end - STEP : end]].line[:-STEP], line[end - STEP :] + below
        return line + below

    def depth(self, line: Lineage) -> int:
        """The present depth of a node, by a lineage that it has or had."""
        return _depth(self.present(line)) if self._moved else _depth(line)


def _depth(line: Lineage) -> int:
    return len(line) // STEP - 1
