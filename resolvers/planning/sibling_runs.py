"""Sibling runs: the nodes between the first and the last of some nodes of one depth, as far as they were read.

One range from the first to the last also contains what belongs to the nodes in between, so their number decides whether
such a range is cheaper than one range for each node.
"""

from collections.abc import Iterable

from resolvers.planning.list_request import ListRequest
from resolvers.planning.tree_state import TreeState
from resolvers.session.records_read import RecordsRead
from store.metadata.tree_version import level_at_depth
from store.model.keys import Index, Key, KeyRange, children, just_after, level_range, parent_sort_key, prefix_end
from store.model.records import Record


def sorted_owners(lists: Iterable[ListRequest]) -> list[Record]:
    """The owners of lists in key order, each once."""
    owners = {requested.owner.sk: requested.owner for requested in lists}
    return [owners[sk] for sk in sorted(owners)]


def bounds(owners: list[Record]) -> tuple[str, str]:
    """The range of keys from the first of some nodes of one depth to the end of the subtree of the last."""
    return owners[0].sk, prefix_end(owners[-1].sk)


def is_gapless(owners: list[Record], tree: TreeState) -> bool:
    """Whether certainly no other node of their depth lies between the first and the last of these."""
    if len(owners) == 1:
        return True
    found = _between(owners, tree)
    return found is not None and {record.sk for record in found} <= {owner.sk for owner in owners}


def max_extra_children(owners: list[Record], level: str, tree: TreeState) -> int:
    """The maximum number of children of a level that the nodes in between have: the least of several bounds."""
    if len(owners) == 1:
        return 0
    limits = [tree.version.shape.get(level_at_depth(level, owners[0].depth + 1), 0)]
    parent = _common_parent(owners, tree.records_read)
    if parent is not None:
        limits.append(tree.version.with_counts(parent).descendant_counts.get(level, 0))
    if (found := _between(owners, tree)) is not None:
        limits.append(sum([record.kids.get(level, 0) for record in found]))
    return max(0, min(limits) - sum([owner.kids.get(level, 0) for owner in owners]))


def _between(owners: list[Record], tree: TreeState) -> list[Record] | None:
    """All nodes of the owners' depth from the first to the last, or None where some may not have been read."""
    records_read = tree.records_read
    pk, depth = owners[0].pk, owners[0].depth
    lo, hi = bounds(owners)
    parent = _common_parent(owners, records_read)
    family = _children_around(owners, parent, records_read) if parent is not None else None
    if family is not None:
        return [record for record in family if lo <= record.sk < hi]
    if parent is None:
        levels = [level for level, level_depth in tree.version.tiers() if level_depth == depth]
    else:
        levels = [level for level, count in parent.kids.items() if count]
    parts = [records_read.in_range(level_range(pk, level, depth, lo, hi)) for level in levels]
    if None not in parts:
        return [record for part in parts for record in part or ()]
    whole = records_read.in_range(KeyRange(Index.TABLE, pk, lo, hi))
    return None if whole is None else [record for record in whole if record.depth == depth]


def _children_around(owners: list[Record], parent: Record, records_read: RecordsRead) -> list[Record] | None:
    """The parent's children from the first owner to the last, or all of them.

    A page of children is in sibling order. A child that was reordered out of the page may lie in between in key order;
    the estimate is then too low, but no response is wrong.
    """
    span = children(parent.pk, parent.sk)
    found = records_read.in_range(span)
    if found is not None or len([level for level, count in parent.kids.items() if count]) > 1:
        return found
    ranks = [owner.rank for owner in owners]
    return records_read.in_range(KeyRange(span.index, span.partition, min(ranks), just_after(max(ranks))))


def _common_parent(owners: list[Record], records_read: RecordsRead) -> Record | None:
    if owners[0].is_root:
        return None
    parent = parent_sort_key(owners[0].sk)
    if any(parent_sort_key(owner.sk) != parent for owner in owners):
        return None
    return records_read.nodes.get(Key(owners[0].pk, parent))
