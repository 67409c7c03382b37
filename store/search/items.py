"""Search items of a node: all items by which it is found, and the changes that keep them up to date.

A table whose items are complete has a marker, made with the first root of the hierarchy or by `clade repair`. It
records what they were made from, so that a search is an error if the class has other options.

| item | pk | sk |
| --- | --- | --- |
| marker: the items of all nodes are written | `search/location` | `-` |
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

from store.model.hierarchy import Hierarchy
from store.model.keys import Index, Key, KeyRange
from store.model.records import Change, Delete, Item, Put, Record, key_of
from store.search.cells import cell_items
from store.search.lineage import MARKER, STEP, Lineage, id_hash, lineage, moved_key, running_key
from store.search.words import is_by_tree, word_items


class Located(NamedTuple):
    """A node with its lineage."""

    record: Record
    line: Lineage

    @classmethod
    def below(cls, ancestors: Sequence[Record], record: Record) -> "Located":
        """A node whose ancestors, the root first, are read."""
        return cls(record, lineage([one.id for one in (*ancestors, record)]))


def located(ancestors: Sequence[Record], subtree: Iterable[Record]) -> Iterator[Located]:
    """The nodes of a subtree in key order, or siblings with all below them, with their lineages.

    `ancestors` are those of the first one, the root first.
    """
    above, line = list(ancestors), lineage([one.id for one in ancestors])
    for record in subtree:
        while above and not above[-1].key.holds(record.key):
            above.pop()
            line = line[:-STEP]
        above.append(record)
        line += id_hash(record.id)
        yield Located(record, line)


def is_indexed(hierarchy: Hierarchy) -> bool:
    """Whether nodes of a hierarchy have search items."""
    return hierarchy.search is not None or hierarchy.location is not None


def search_items(hierarchy: Hierarchy, node: Located) -> list[Item]:
    """All items by which a node is found."""
    return word_items(hierarchy, node.record, node.line) + cell_items(hierarchy, node.record, node.line)


def item_keys(hierarchy: Hierarchy, record: Record, root_id: str) -> list[Key]:
    """The keys of all search items of a node in the tree of this root."""
    # The beginning of a lineage is enough for the keys.
    return [key_of(item) for item in search_items(hierarchy, Located(record, id_hash(root_id)))]


def searched_tree(hierarchy: Hierarchy, root_id: str) -> str:
    """The hash of a root's id where each tree is searched by itself, else empty."""
    return id_hash(root_id) if is_by_tree(hierarchy) else ""


def removals(hierarchy: Hierarchy, record: Record, root_id: str) -> list[Change]:
    """The changes that remove all search items of a node in the tree of this root."""
    # It may have been moved when it had nodes below it.
    moved = moved_key(hierarchy.name, record.id, searched_tree(hierarchy, root_id))
    keys = [*item_keys(hierarchy, record, root_id), moved]
    return [Delete(key) for key in keys]


def takes_items(hierarchy: Hierarchy, source: Key, target: Key) -> bool:
    """Whether a move takes all items of the subtree to other partitions: each tree is searched by itself, and the node
    gets another root.
    """
    if source.sk == "#" or target.sk == "#":
        return is_by_tree(hierarchy) and source.sk != target.sk
    return is_by_tree(hierarchy) and source.pk != target.pk


def search_changes(hierarchy: Hierarchy, old: Located | None, new: Located) -> list[Change]:
    """The changes that make the search items of a node right; None for one that did not exist before."""
    if old is None:
        return [Put(item) for item in search_items(hierarchy, new)]
    before = {key_of(item): item for item in search_items(hierarchy, old)}
    after = {key_of(item): item for item in search_items(hierarchy, new)}
    changes: list[Change] = [Put(item) for key, item in after.items() if before.get(key) != item]
    return changes + [Delete(key) for key in before if key not in after]


def index_range(hierarchy: str) -> KeyRange:
    """The range of what a search has to know: the marker, the moved nodes and the running moves."""
    key = marker_key(hierarchy)
    return KeyRange(Index.TABLE, key.pk, key.sk, running_key(hierarchy, "\U0010ffff").sk)


def marker_key(hierarchy: str) -> Key:
    """The key of the marker of a hierarchy."""
    return Key(f"search/{hierarchy}", MARKER)


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
    kind = (
        "keys are names" if search is None else "keys are names, words have parts"
    )  # of the items; other kinds are written anew
    described = "\n".join([kind, repr(search), repr(location), *sorted(levels)])
    return blake2b(described.encode(), digest_size=16).hexdigest()
