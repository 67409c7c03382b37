"""Prefetch: reads that return several levels below a run of siblings in one round.

The range of a deeper level is known without the records of the parents: it has the bounds of the run. The selection
shows how deep to read. The counts of the owners and of the tree give the number of nodes, so the node budget is checked
before anything is read.
"""

from collections import Counter
from collections.abc import Sequence

from resolvers.planning.list_request import ListRequest
from resolvers.planning.read_cost import ReadOption, cheapest
from resolvers.planning.relations import Relation
from resolvers.planning.sibling_runs import bounds, sorted_owners
from resolvers.session.records_read import Read
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.keys import Index, KeyRange, level_range
from store.model.records import Record

LevelDepth = tuple[str, int]  # a level and a depth: one partition of `by_level`


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
    by_level = _level_ranges(owners, below, requested, counts, version)
    return cheapest(_table_range(owners, below), by_level), nodes


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


def _table_range(owners: list[Record], below: Counter[str]) -> ReadOption:
    """The subtrees as one range of the table; of a single owner, `begins_with` its key without itself."""
    lo, hi = bounds(owners)
    span, items = KeyRange(Index.TABLE, owners[0].pk, lo, hi), sum(below.values())
    return ReadOption.of([(Read(span.after(lo)), items) if len(owners) == 1 else (Read(span), items + len(owners))])


def _level_ranges(
    owners: list[Record],
    below: Counter[str],
    parts: list[LevelDepth],
    counts: dict[LevelDepth, int | None],
    version: TreeVersion,
) -> ReadOption:
    """One range of each level and depth, from the first owner to the last."""
    lo, hi = bounds(owners)
    reads = []
    for level, depth in parts:
        count = counts[level, depth]
        items = min(below[level], version.shape[level_at_depth(level, depth)]) if count is None else count
        if items:
            reads.append((Read(level_range(owners[0].pk, level, depth, lo, hi)), items))
    return ReadOption.of(reads)
