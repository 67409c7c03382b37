"""Items of all kinds of a node, and the changes that keep them right.

`recipes` are what the items are made of, by kind (`Marker.recipes`); a hierarchy without a marker has none.
"""

from collections.abc import Iterable, Iterator, Sequence

from store.kinds.kind import Located
from store.kinds.lineage import STEP, id_hash, lineage, moved_key, running_key
from store.kinds.marker import Recipes, marker_key
from store.kinds.registry import KINDS
from store.model.keys import Index, Key, KeyRange
from store.model.records import Change, Delete, Item, Record


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


def node_items(recipes: Recipes, node: Located) -> list[Item]:
    """All items of a node."""
    return [item for name, recipe in recipes.items() for item in KINDS[name].items(recipe, node)]


def item_changes(recipes: Recipes, old: Located | None, new: Located | None) -> list[Change]:
    """The changes that make the items of a node right, but for those of kinds with conditions; None for a node that did
    not exist before, or does not now.
    """
    return [
        change
        for name, recipe in recipes.items()
        if not KINDS[name].has_conditions
        for change in KINDS[name].changes(recipe, old, new)
    ]


def removals(recipes: Recipes, record: Record, root_id: str) -> list[Change]:
    """The changes that remove all items of a node in the tree of this root, but for those of kinds with conditions."""
    # It may have been moved when it had nodes below it.
    moved = moved_keys(recipes, record.id, id_hash(root_id))
    return [*item_changes(recipes, removed(record, root_id), None), *map(Delete, moved)]


def removed(record: Record, root_id: str) -> Located:
    """A node whose items in the tree of this root are removed: the beginning of a lineage is enough for their keys."""
    return Located(record, id_hash(root_id))


def moved_keys(recipes: Recipes, node_id: str, root: str) -> list[Key]:
    """The keys at which kinds with lineages have a move of a node; `root` is the hash of the id of its root."""
    found = [one for name, one in recipes.items() if KINDS[name].has_lineage and one.has_items]
    trees = {(one.hierarchy, one.tree(root)): None for one in found}
    return [moved_key(hierarchy, node_id, tree) for hierarchy, tree in trees]


def taken(recipes: Recipes, source: Key, target: Key) -> Recipes:
    """The kinds of which a move takes all items of the subtree to other partitions: each tree has its own, and the node
    gets another root.
    """
    is_other_root = source.sk != target.sk if "#" in (source.sk, target.sk) else source.pk != target.pk
    return {name: one for name, one in recipes.items() if one.by_tree and is_other_root}


def index_range(hierarchy: str) -> KeyRange:
    """The range of what a search has to know: the marker, the moved nodes and the running moves."""
    key = marker_key(hierarchy)
    return KeyRange(Index.TABLE, key.pk, key.sk, running_key(hierarchy, "\U0010ffff").sk)
