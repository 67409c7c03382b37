"""Search items of a node: all items by which it is found, and the changes that keep them up to date.

What they are made of says the marker of the hierarchy (`store/search/marker.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from store.model.keys import Index, Key, KeyRange
from store.model.records import Change, Delete, Item, Put, Record, key_of
from store.search.cells import cell_items
from store.search.lineage import STEP, Lineage, id_hash, lineage, moved_key, running_key
from store.search.marker import Recipe, marker_key
from store.search.words import word_items


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


def search_items(recipe: Recipe, node: Located) -> list[Item]:
    """All items by which a node is found."""
    return word_items(recipe, node.record, node.line) + cell_items(recipe, node.record, node.line)


def item_keys(recipe: Recipe, record: Record, root_id: str) -> list[Key]:
    """The keys of all search items of a node in the tree of this root."""
    # The beginning of a lineage is enough for the keys.
    return [key_of(item) for item in search_items(recipe, Located(record, id_hash(root_id)))]


def removals(recipe: Recipe, record: Record, root_id: str) -> list[Change]:
    """The changes that remove all search items of a node in the tree of this root."""
    # It may have been moved when it had nodes below it.
    moved = moved_key(recipe.hierarchy, record.id, recipe.tree(id_hash(root_id)))
    return [Delete(key) for key in (*item_keys(recipe, record, root_id), moved)]


def takes_items(recipe: Recipe, source: Key, target: Key) -> bool:
    """Whether a move takes all items of the subtree to other partitions: each tree is searched by itself, and the node
    gets another root.
    """
    if source.sk == "#" or target.sk == "#":
        return recipe.by_tree and source.sk != target.sk
    return recipe.by_tree and source.pk != target.pk


def search_changes(recipe: Recipe, old: Located | None, new: Located) -> list[Change]:
    """The changes that make the search items of a node right; None for one that did not exist before."""
    if old is None:
        return [Put(item) for item in search_items(recipe, new)]
    before = {key_of(item): item for item in search_items(recipe, old)}
    after = {key_of(item): item for item in search_items(recipe, new)}
    changes: list[Change] = [Put(item) for key, item in after.items() if before.get(key) != item]
    return changes + [Delete(key) for key in before if key not in after]


def index_range(hierarchy: str) -> KeyRange:
    """The range of what a search has to know: the marker, the moved nodes and the running moves."""
    key = marker_key(hierarchy)
    return KeyRange(Index.TABLE, key.pk, key.sk, running_key(hierarchy, "\U0010ffff").sk)
