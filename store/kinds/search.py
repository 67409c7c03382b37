"""Search items as kinds: words and cells of nodes, and what search has to know of moves.

A table whose items are complete has a marker, made with the first root of the hierarchy or by `clade repair`. It
records what they were made from, so that a search is an error if the class has other options.

| item | pk | sk |
| --- | --- | --- |
| marker: the items of all nodes are written | `search/location` | `-` |
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, cast

from store.kinds.event_kind import EventKind
from store.kinds.node_kind import Found, Located, NodeKind
from store.model.hierarchy import Hierarchy
from store.model.items import Change, Delete, Item, Put, key_of
from store.model.keys import Index, Key
from store.model.ranges import KeyRange
from store.model.records import Record
from store.search.cell_items import cell_items
from store.search.lineage import STEP, MovedNode, Moves, id_hash, lineage, moved_key, running_key
from store.search.word_items import WEIGHT, is_by_tree, word_items

_RANK = re.compile(rf"([01]{WEIGHT})\d\d(.*)", re.DOTALL)


class _SearchKind(NodeKind):
    """What words and cells have alike.

    Items are keyed by the ids of their nodes, so a move changes those of nodes below its top only where each tree is
    searched by itself and the node gets another root. Other items keep the lineage that they were written with.
    """

    noun = "search item"
    by_ancestors = True
    are_canonical = True
    unwanted = "but its class has no search="
    stray = "of words or a place that it does not have"
    unmarked = (
        "the items of search are not complete, since its class had no search= when nodes were written; nothing is "
        "searched until clade repair has written them",
        "the items of search are outdated, since its class has another search= or searched attributes; nothing is "
        "searched until clade repair has written them",
        "marked as searched, but its class has no search=",
    )

    def owner(self, item: Item) -> str:
        return f"{self.hierarchy.name}:{cast(str, item['sk']).rpartition('#')[2]}"

    def marker(self) -> Item | None:
        return marker(self.hierarchy)

    def follows(self, source: Key, target: Key) -> bool:
        return leaves_tree(self.hierarchy, source, target)

    def facts(self, items: Sequence[Item], moves: Moves | None) -> Iterable[str]:
        """Where ancestors were renamed or moved, their keys in an item stay as they were."""
        shared = _shared_fact(items[0], moves) if items else ""  # what all items of the node have alike
        for item in items:
            rank = self.rank_fact(item, moves)
            yield f"{item.get('pk')}\n{item.get('sk')}\n{item.get('parent')}\n{rank}\n{shared}"

    def rank_fact(self, item: Item, moves: Moves | None) -> object:
        """What an item says beside its keys and what all items of its node say."""
        raise NotImplementedError


class WordItems(_SearchKind):
    """The beginnings of the words of nodes."""

    @property
    def applies(self) -> bool:
        return self.hierarchy.search is not None

    @property
    def partitions(self) -> Sequence[str]:
        return [f"words/{self.hierarchy.name}"]

    def items(self, node: Located) -> list[Item]:
        return word_items(self.hierarchy, node.record, node.line)

    def rank_fact(self, item: Item, moves: Moves | None) -> object:
        rank, line = item.get("rank"), item.get("line")
        if moves and type(line) is str and moves.is_moved(line):
            match = _RANK.fullmatch(rank) if type(rank) is str else None
            return match and f"{match[1]}{moves.depth(line):02d}{match[2]}"
        return rank


class CellItems(_SearchKind):
    """The places of nodes on the Earth."""

    @property
    def applies(self) -> bool:
        return self.hierarchy.location is not None

    @property
    def partitions(self) -> Sequence[str]:
        return [f"cells/{self.hierarchy.name}"]

    def items(self, node: Located) -> list[Item]:
        return cell_items(self.hierarchy, node.record, node.line)

    def rank_fact(self, item: Item, moves: Moves | None) -> object:
        return f"{_number(item.get('latitude'))} {_number(item.get('longitude'))}"


def _shared_fact(item: Item, moves: Moves | None) -> str:
    get = cast(dict[str, Any], item).get
    at, line, names = get("at"), get("line"), get("names")
    if moves is not None and type(at) is str and type(line) is str:
        levels = at.count("#")
        if moves and moves.is_moved(line):
            line = moves.present(line)
            levels = len(line) // STEP
        at = f"{levels}{at[at.rfind('#', 0, -1) :]}"
    if names is not None:
        names = sorted(names.items()) if type(names) is dict else [names]
    return f"{line}\n{at}\n{get('level')}\n{get('others')}\n{names}\n{len(item)}"


def _number(value: object) -> str:
    return repr(float(value)) if type(value) is int or type(value) is float else repr(value)


class MovesForSearch(EventKind):
    """What search has of moves: the lineages of moved nodes with others below them, and the moves that are running."""

    def deleted(self, node: Located, at: str, by: str | None) -> list[Change]:
        # It may have been moved when it had nodes below it.
        found = self._searched
        return [] if found is None else [Delete(_moved_key(found, node.record.id, node.line[:STEP]))]

    def carried(self, before: Located, source: Key, target: Key) -> list[Change]:
        found = self._searched
        return self.deleted(before, "", None) if found is not None and leaves_tree(found, source, target) else []

    def keys_of_move(self, nodes: Sequence[Record]) -> list[Key]:
        found = self._searched
        return [] if found is None else [_moved_key(found, one.id, id_hash(nodes[0].id)) for one in nodes]

    def moved(self, before: Sequence[Record], after: Sequence[Record], found: Found) -> list[Change]:
        hierarchy, old = self._searched, before[-1]
        if hierarchy is None or leaves_tree(hierarchy, old.key, after[-1].key):
            return []
        former, line = [lineage([one.id for one in nodes]) for nodes in (before, after)]
        if former == line:
            return []
        *above, own = [found.get(key) for key in self.keys_of_move(before)]
        if old.kids:
            items = [item for item in (*above, own) if item is not None]
            moved = MovedNode.after(old.id, former, line, items)
            return [Put(moved.item(hierarchy.name, by_tree=is_by_tree(hierarchy)))]
        return [] if own is None else [Delete(key_of(own))]

    def began(self, move_id: str) -> list[Change]:
        if self._searched is None:
            return []
        key = running_key(self._searched.name, move_id)
        return [Put({"pk": key.pk, "sk": key.sk})]

    def ended(self, move_id: str) -> list[Change]:
        return [] if self._searched is None else [Delete(running_key(self._searched.name, move_id))]

    def most_of_removal(self, nodes: int) -> int:
        return 0 if self._searched is None else nodes

    def most_of_move(self, nodes: int, source: Key, target: Key) -> int:
        found = self._searched
        return 0 if found is None else 2 * (nodes if leaves_tree(found, source, target) else 1)

    @property
    def _searched(self) -> Hierarchy | None:
        return self.hierarchy if self.hierarchy is not None and is_indexed(self.hierarchy) else None


def is_indexed(hierarchy: Hierarchy) -> bool:
    """Whether nodes of a hierarchy have search items."""
    return hierarchy.search is not None or hierarchy.location is not None


def searched_tree(hierarchy: Hierarchy, root_id: str) -> str:
    """The hash of a root's id where each tree is searched by itself, else empty."""
    return id_hash(root_id) if is_by_tree(hierarchy) else ""


def _moved_key(hierarchy: Hierarchy, node_id: str, root: str) -> Key:
    """The key of the item of a moved node below the root whose id has this hash."""
    return moved_key(hierarchy.name, node_id, root if is_by_tree(hierarchy) else "")


def leaves_tree(hierarchy: Hierarchy, source: Key, target: Key) -> bool:
    """Whether a move takes all items of the subtree to other partitions: each tree is searched by itself, and the node
    gets another root.
    """
    if source.sk == "#" or target.sk == "#":
        return is_by_tree(hierarchy) and source.sk != target.sk
    return is_by_tree(hierarchy) and source.pk != target.pk


def index_range(hierarchy: str) -> KeyRange:
    """The range of what a search has to know: the marker, the moved nodes and the running moves."""
    key = marker_key(hierarchy)
    return KeyRange(Index.TABLE, key.pk, key.sk, running_key(hierarchy, "\U0010ffff").sk)


def marker_key(hierarchy: str) -> Key:
    """The key of the marker of a hierarchy."""
    return Key(f"search/{hierarchy}", "-")


def marker(hierarchy: Hierarchy) -> Item:
    """The marker of a hierarchy whose search items are all written."""
    key = marker_key(hierarchy.name)
    return {"pk": key.pk, "sk": key.sk, "made_of": made_of(hierarchy)}


def made_of(hierarchy: Hierarchy) -> str:
    """A hash of all that search items depend on beside the nodes; attributes are in it under their oldest names."""
    levels: list[str] = []
    first: dict[str, str] = {}
    for level in hierarchy.levels.values():
        first |= (names := {name: one.was[-1] if one.was else name for name, one in level.attributes.items()})
        levels.append(f"{level.name}: {', '.join(sorted([names[name] for name in level.searched]))}")
    search, location = hierarchy.search, hierarchy.location
    if search is not None and search.weight is not None:
        search = replace(search, weight=first[search.weight])
    if location is not None:
        location = first[location[0]], first[location[1]]
    described = "\n".join(["keys are names", repr(search), repr(location), *sorted(levels)])
    return blake2b(described.encode(), digest_size=16).hexdigest()
