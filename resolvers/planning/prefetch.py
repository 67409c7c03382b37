"""Reading ahead: the levels below a run of complete lists, in the same round as the lists.

Deeper tiers need no parents' records, only the bounds of the run. What is asked below tells how deep to go; the counts
of the owners and the tree's shape tell how many nodes that will be, so it is known beforehand whether they fit.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from resolvers.planning.list_request import ListRequest
from resolvers.planning.read_cost import ReadOption, cheapest
from resolvers.planning.relations import Relation
from resolvers.planning.sibling_runs import bounds, sorted_owners
from resolvers.session.records_read import Read
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.keys import Index
from store.model.ranges import KeyRange, level_range
from store.model.records import Record

Tier = tuple[str, int]


@dataclass(frozen=True)
class Prefetch:
    """The reads that bring several levels at once, and how many nodes of them the client asks for."""

    option: ReadOption
    nodes: int


def prefetch(jobs: Sequence[ListRequest], stamp: TreeVersion, hierarchy: Hierarchy) -> Prefetch | None:
    """How to read everything below a gapless run of complete lists, or None where one level is all that is asked."""
    owners = sorted_owners(jobs)
    below: Counter[str] = Counter()
    for owner in owners:
        below.update(owner.below)
    there = [(level, depth) for level, depth in stamp.tiers() if depth > owners[0].depth and below[level]]
    asked = _asked(jobs, there, hierarchy)
    counts = {one: _exactly(owners, below, one, stamp) for one in asked}
    nodes = sum(below.values())
    if set(asked) != set(there):  # else all that lies below is asked for, whatever tier it is in
        sure = min((depth for (_, depth), count in counts.items() if count is None), default=99)
        asked = [one for one in asked if one[1] < sure]
        nodes = sum(counts[one] or 0 for one in asked)
    if max((depth for _, depth in asked), default=0) <= owners[0].depth + 1:
        return None
    return Prefetch(cheapest(_as_one(owners, below), _as_tiers(owners, below, asked, counts, stamp)), nodes)


def _asked(jobs: Sequence[ListRequest], there: list[Tier], hierarchy: Hierarchy) -> list[Tier]:
    """The tiers, of those that are there, of which all nodes below the owners are asked for, from the top on."""
    relations = list(dict.fromkeys(job.relation for job in jobs))
    depth, found = jobs[0].owner.depth + 1, []
    while relations and (levels := [level for level, at in there if at == depth]):
        found += [(level, depth) for level in levels]
        relations = _below(relations, levels, hierarchy)
        depth += 1
    return found


def _below(relations: list[Relation], levels: list[str], hierarchy: Hierarchy) -> list[Relation]:
    """The complete lists asked below complete lists; none unless each level that may have any is asked for all."""
    found: dict[Relation, None] = {}
    for level in [one for one in levels if any(one in other.under for other in hierarchy.levels.values())]:
        for relation in relations:
            complete = [deeper for deeper in relation.selection.on(hierarchy.name, level) if deeper.is_complete]
            if not complete:
                return []
            found.update(dict.fromkeys(complete))
    return list(found)


def _exactly(owners: list[Record], below: Counter[str], one: Tier, stamp: TreeVersion) -> int | None:
    """How many nodes of a tier lie below the owners, None where the counts do not tell."""
    level, depth = one
    if len(owners) == 1 and owners[0].is_root:
        return stamp.shape[level_at_depth(level, depth)]
    if len(stamp.depths(level)) == 1:
        return below[level]
    if depth == owners[0].depth + 1:
        return sum([owner.kids.get(level, 0) for owner in owners])
    return None


def _as_one(owners: list[Record], below: Counter[str]) -> ReadOption:
    """The subtrees as one range of the table; of a single owner, what lies below it."""
    lo, hi = bounds(owners)
    span, items = KeyRange(Index.TABLE, owners[0].pk, lo, hi), sum(below.values())
    return ReadOption.of([(Read(span.after(lo)), items) if len(owners) == 1 else (Read(span), items + len(owners))])


def _as_tiers(
    owners: list[Record], below: Counter[str], asked: list[Tier], counts: dict[Tier, int | None], stamp: TreeVersion
) -> ReadOption:
    """A slice of each tier, from the first owner to the last."""
    lo, hi = bounds(owners)
    reads = []
    for level, depth in asked:
        count = counts[level, depth]
        likely = min(below[level], stamp.shape[level_at_depth(level, depth)]) if count is None else count
        if likely:
            reads.append((Read(level_range(owners[0].pk, level, depth, lo, hi)), likely))
    return ReadOption.of(reads)
