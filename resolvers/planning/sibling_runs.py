"""Which nodes stand between some nodes of one depth of a tree, as far as that is known without a read.

A slice from the first to the last of them holds what belongs to those in between as well, so their number decides
whether a slice pays.
"""

from collections.abc import Iterable

from resolvers.planning.list_request import ListRequest
from resolvers.session.records_read import RecordsRead
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.keys import Index, Key, parent_sort_key
from store.model.ranges import (
    KeyRange,
    children,
    just_after,
    level_range,
)
from store.model.records import Record


def sorted_owners(jobs: Iterable[ListRequest]) -> list[Record]:
    """The owners of lists in key order, each once."""
    owners = {job.owner.sk: job.owner for job in jobs}
    return [owners[sk] for sk in sorted(owners)]


def bounds(owners: list[Record]) -> tuple[str, str]:
    """From the first of some nodes of one depth to the end of the last one's subtree."""
    return owners[0].sk, owners[-1].sk[:-1] + "$"


def is_gapless(owners: list[Record], known: RecordsRead, stamp: TreeVersion) -> bool:
    """Whether surely no other node of their depth stands between the first and the last of these."""
    if len(owners) == 1:
        return True
    found = _between(owners, known, stamp)
    return found is not None and {record.sk for record in found} <= {owner.sk for owner in owners}


def extras(owners: list[Record], level: str, known: RecordsRead, stamp: TreeVersion) -> int:
    """How many children of a level the nodes in between have, at most: the least bound that is known."""
    if len(owners) == 1:
        return 0
    most = [stamp.shape.get(level_at_depth(level, owners[0].depth + 1), 0)]
    parent = _common_parent(owners, known)
    if parent is not None:
        most.append(parent.below.get(level, 0))
    if (found := _between(owners, known, stamp)) is not None:
        most.append(sum([record.kids.get(level, 0) for record in found]))
    return max(0, min(most) - sum([owner.kids.get(level, 0) for owner in owners]))


def _between(owners: list[Record], known: RecordsRead, stamp: TreeVersion) -> list[Record] | None:
    """All nodes of the owners' depth from the first to the last, or None where some may not have been read."""
    pk, depth = owners[0].pk, owners[0].depth
    lo, hi = bounds(owners)
    parent = _common_parent(owners, known)
    family = _family_around(owners, parent, known) if parent is not None else None
    if family is not None:
        return [record for record in family if lo <= record.sk < hi]
    levels = [level for level, count in parent.kids.items() if count] if parent is not None else None
    tiers = [level for level, at in stamp.tiers() if at == depth] if levels is None else levels
    parts = [known.take(level_range(pk, level, depth, lo, hi)) for level in tiers]
    if None not in parts:
        return [record for part in parts for record in part or ()]
    whole = known.take(KeyRange(Index.TABLE, pk, lo, hi))
    return None if whole is None else [record for record in whole if record.depth == depth]


def _family_around(owners: list[Record], parent: Record, known: RecordsRead) -> list[Record] | None:
    """The parent's children from the first owner to the last, or all of them.

    A page of them is in the order of ranks. One that a hand has moved off the page may still stand in between in the
    order of keys; then an estimate is too low, and no answer is wrong.
    """
    span = children(parent.pk, parent.sk)
    everyone = known.take(span)
    if everyone is not None or len([level for level, count in parent.kids.items() if count]) > 1:
        return everyone
    ranks = [owner.rank for owner in owners]
    return known.take(KeyRange(span.index, span.partition, min(ranks), just_after(max(ranks))))


def _common_parent(owners: list[Record], known: RecordsRead) -> Record | None:
    if owners[0].is_root:
        return None
    parent = parent_sort_key(owners[0].sk)
    if any(parent_sort_key(owner.sk) != parent for owner in owners):
        return None
    return known.nodes.get(Key(owners[0].pk, parent))
