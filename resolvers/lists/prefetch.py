"""Prefetch: reads that return several lists, or several levels, below a run of siblings in one round.

One range from the first to the last of some nodes of one depth also contains what belongs to the nodes in between, so
their number, as far as they were read, decides whether such a range is cheaper than one range for each node.

The range of a deeper level is known without the records of the parents: it has the bounds of the run. The selection
shows how deep to read. The counts of the owners and of the tree give the number of nodes, so the node budget is checked
before anything is read.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from resolvers.lists.arguments import Relation
from resolvers.lists.list_request import ListRequest, ReadOption, TreeState, cheapest
from resolvers.session.records_read import Read, RecordsRead
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.keys import Index, Key, KeyRange, children, just_after, level_range, parent_sort_key, prefix_end
from store.model.records import Record

MANY = 1_000_000  # nodes, where nothing limits their number
LevelDepth = tuple[str, int]  # a level and a depth: one partition of `by_level`


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
    limits = [tree.version.shape.get(level_at_depth(level, owners[0].depth + 1), 0 if tree.version.has_shape else MANY)]
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
    if parts and None not in parts:
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


def prefetch(lists: Sequence[ListRequest], version: TreeVersion, hierarchy: Hierarchy) -> tuple[ReadOption, int] | None:
    """The reads of everything below a gapless run of complete lists, and the number of their nodes that the client
    requests; None if only one level is requested.
    """
    owners = sorted_owners(lists)
    below: Counter[str] = Counter()
    for owner in owners:
        below.update(owner.descendant_counts)
    existing = [(level, depth) for level, depth in version.tiers() if depth > owners[0].depth and below[level]]
    requested = _requested(lists, existing, hierarchy)
    counts = {part: _count(owners, below, part, version) for part in requested}
    nodes = sum(below.values())
    if set(requested) != set(existing):  # else everything below is requested, and the counts of levels are enough
        countable = min((depth for (_, depth), count in counts.items() if count is None), default=99)
        requested = [part for part in requested if part[1] < countable]
        nodes = sum(counts[part] or 0 for part in requested)
    if max((depth for _, depth in requested), default=0) <= owners[0].depth + 1:
        return None
    pk, (lo, hi), items = owners[0].pk, bounds(owners), sum(below.values())
    # The subtrees as one range of the table; of a single owner, `begins_with` its key without itself.
    span = KeyRange(Index.TABLE, pk, lo, hi)
    whole = (Read(span.after(lo)), items) if len(owners) == 1 else (Read(span), items + len(owners))
    by_level = []  # one range of each level and depth, from the first owner to the last
    for level, depth in requested:
        count = counts[level, depth]
        items = min(below[level], version.shape[level_at_depth(level, depth)]) if count is None else count
        if items:
            by_level.append((Read(level_range(pk, level, depth, lo, hi)), items))
    return cheapest(ReadOption.of([whole]), ReadOption.of(by_level)), nodes


def _requested(lists: Sequence[ListRequest], existing: list[LevelDepth], hierarchy: Hierarchy) -> list[LevelDepth]:
    """The parts, from the top on, of which all nodes below the owners are requested."""
    relations = list(dict.fromkeys(requested.relation for requested in lists))
    depth, found = lists[0].owner.depth + 1, []
    while relations and (levels := [level for level, level_depth in existing if level_depth == depth]):
        found += [(level, depth) for level in levels]
        relations = _complete_below(relations, levels, hierarchy)
        depth += 1
    return found


def _complete_below(relations: list[Relation], levels: list[str], hierarchy: Hierarchy) -> list[Relation]:
    """The complete lists selected below complete lists; none unless all children of each level are requested."""
    found: dict[Relation, None] = {}
    for level in [name for name in levels if any(name in other.under for other in hierarchy.levels.values())]:
        for relation in relations:
            selected = [deeper.whole for deeper in relation.selection.on(hierarchy.name, level)]
            complete = [deeper for deeper in selected if deeper.is_complete]
            if not complete:
                return []
            found.update(dict.fromkeys(complete))
    return list(found)


def _count(owners: list[Record], below: Counter[str], part: LevelDepth, version: TreeVersion) -> int | None:
    """The number of nodes of a level and depth below the owners, None where the counts do not give it."""
    level, depth = part
    if len(owners) == 1 and owners[0].is_root:
        return version.shape[level_at_depth(level, depth)]
    if len(version.depths(level)) == 1:
        return below[level]
    if depth == owners[0].depth + 1:
        return sum([owner.kids.get(level, 0) for owner in owners])
    return None
