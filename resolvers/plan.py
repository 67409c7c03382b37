"""Which ranges to read for a whole response level of lists, decided from values alone.

DynamoDB answers one range of one partition at a time, so N parents asked one by one are N queries. But the keys allow
better, and the counts that every record carries tell beforehand what each way costs:

A *single* list is one query: a partition of `by_parent` for children, a range of the table for descendants.

*Sibling lists* lie side by side: in a tier (all nodes of one level at one depth of a tree, in key order) the children
of a run of siblings are one slice, from the first sibling to the last. So all children of one level of any number of
siblings are one query. Where siblings in between were not asked for, the slice holds their children too; how many, the
counts bound, and the slice is taken only where that is cheaper than single queries.

*Levels below levels* need no parents' records, only their common prefix. If all children are asked for, and all of
theirs, the deeper tiers can be read in the same round; and if that goes as deep as the tree does, the whole subtree is
one range of the table.

*Pages* (`first`) are cut from single queries with a limit, or from a slice in memory, whichever costs less.

*Scattered parents* are grouped by tree and depth, then by parent; each group goes its cheapest way.

What was read before (`Known`) is not read again. The cost of a plan is DynamoDB's read units, then its requests.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from resolvers.job import Job
from resolvers.known import Known, Read
from resolvers.selection import Kind, Relation
from resolvers.window import Order
from store.errors import BudgetExceeded
from store.hierarchy import Hierarchy
from store.keys import Index, Key, Span, parent_sort_key, subtree, tier
from store.keys import children as children_span
from store.reads import units_of
from store.records import Record
from store.stamps import Stamp, tier_name

ITEM_BYTES = 350  # what an ordinary node takes in a table; only the ratio of estimates matters


@dataclass(frozen=True)
class Option:
    """One way to get what is wanted, with DynamoDB read units as estimated beforehand."""

    reads: tuple[Read, ...]
    units: float

    @classmethod
    def of(cls, reads: Iterable[tuple[Read, int]]) -> "Option":
        """Reads with the number of items that each is thought to bring."""
        pairs = [(read, units_of(items * ITEM_BYTES)) for read, items in reads]
        return cls(tuple(read for read, _ in pairs), sum(units for _, units in pairs))

    def __add__(self, other: "Option") -> "Option":
        return Option(self.reads + other.reads, self.units + other.units)


NOTHING = Option((), 0.0)


def cheapest(*options: Option) -> Option:
    return min(options, key=lambda option: (option.units, len(option.reads)))


class Planner:
    """Plans reads for lists of one hierarchy's trees, given what is known, the trees' stamps and the nodes left."""

    def __init__(self, known: Known, stamps: Mapping[str, Stamp], hierarchy: Hierarchy, nodes_left: int) -> None:
        self.known = known
        self.stamps = stamps
        self.hierarchy = hierarchy
        self.nodes_left = nodes_left
        self._planned: list[Span] = []

    def plan(self, jobs: Collection[Job]) -> list[Read]:
        """The reads that answer these lists, none of them twice; raises BudgetExceeded before anything is read.

        Complete lists come first, since others of the same nodes can be cut out of them.
        """
        groups: dict[tuple[object, ...], list[Job]] = defaultdict(list)
        for job in jobs:
            apart = job.owner.sk if job.window.is_narrow else ""
            groups[(job.relation.kind, job.window, job.owner.pk, job.owner.depth, apart)].append(job)
        reads: dict[Read, None] = {}
        for group in sorted(groups.values(), key=lambda group: (group[0].limit is not None, not _is_complete(group))):
            missing = [job for job in group if not self._is_answered(job)]
            chosen = self._group(missing) if missing else NOTHING
            self._planned += [read.span for read in chosen.reads if read.limit is None]
            reads.update(dict.fromkeys(chosen.reads))
        return list(reads)

    # -- groups of lists with the same arguments, owned by nodes at one depth of one tree ------------------------------

    def _group(self, jobs: list[Job]) -> Option:
        match jobs[0].order:
            case Order.SIBLINGS:
                return Option.of((Read(job.family_span, self._limit(job), job.window.descending), 1) for job in jobs)
            case Order.CHILDREN_BY_KEY:
                return self._sum(jobs, self._tiers)
            case Order.DESCENDANTS:
                return self._descendants(jobs)
            case _ if jobs[0].window.is_narrow:
                return self._sum(jobs, self._family)
            case _:
                return self._ahead(jobs) or self._children(jobs)

    def _sum(self, jobs: Iterable[Job], way: Callable[[Job], Option]) -> Option:
        total = NOTHING
        for job in jobs:
            total += way(job)
        return total

    def _family(self, job: Job) -> Option:
        """The children of one node in sibling order: one query."""
        items = job.most if job.limit is None else min(job.most, job.limit)
        return Option.of([(Read(job.family_span, job.limit, job.window.descending), items)])

    def _children(self, jobs: list[Job]) -> Option:
        """The children of several nodes: one by one, or as slices of tiers."""
        singles = self._sum(jobs, self._family)
        if len(jobs) == 1:
            return singles
        options = [singles, self._slices(jobs)]
        families = _by_parent(jobs)
        if 1 < len(families) < len(jobs):
            options.append(self._sum_families(families, self._children))
        return cheapest(*options)

    def _slices(self, jobs: list[Job]) -> Option:
        """For each level of children one slice, from the first parent that has any to the last."""
        reads = []
        stamp = self.stamps[jobs[0].owner.pk]
        for level in sorted({level for job in jobs for level in job.levels}):
            owners = _sorted_owners(job for job in jobs if level in job.levels)
            lo, hi = _bounds(owners)
            items = sum(owner.kids[level] for owner in owners) + self._extras(owners, level, stamp)
            reads.append((Read(tier(owners[0].pk, level, owners[0].depth + 1, lo, hi)), items))
        return Option.of(reads)

    def _sum_families(self, families: Iterable[list[Job]], way: Callable[[list[Job]], Option]) -> Option:
        total = NOTHING
        for family in families:
            total += way(family)
        return total

    # -- descendants ---------------------------------------------------------------------------------------------------

    def _descendants(self, jobs: list[Job]) -> Option:
        """Several subtrees one by one, or as one where they lie side by side."""
        singles = self._sum(jobs, self._subtree)
        if len(jobs) == 1 or jobs[0].window.is_narrow or not self._is_gapless(jobs):
            return singles
        return cheapest(singles, self._run_of_subtrees(jobs))

    def _subtree(self, job: Job) -> Option:
        """One subtree as a range of the table, or only the tiers that are asked for."""
        limit, descending = job.limit, job.window.descending
        is_whole = job.window.level is None and job.window.max_depth is None
        if is_whole:
            items = job.most if limit is None else min(job.most, limit)
            return Option.of([(Read(job.table_span, self._limit(job), descending), items)])
        whole = Option.of([(Read(job.table_span), sum(job.owner.below.values()))])
        return cheapest(self._tiers(job), whole)

    def _tiers(self, job: Job) -> Option:
        """The tiers that a list can lie in, each from bound to bound."""
        stamp = self.stamps[job.owner.pk]
        return Option.of(
            (
                Read(job.tier_span(level, depth), self._limit(job), job.window.descending),
                self._likely(job, level, depth, stamp),
            )
            for level, depth in job.tiers(stamp)
        )

    def _limit(self, job: Job) -> int | None:
        """Up to where to read: no further than the budget goes where the counts cannot tell beforehand."""
        if job.is_exact:
            return job.limit
        return min(job.limit or self.nodes_left + 2, self.nodes_left + 2)

    def _likely(self, job: Job, level: str, depth: int, stamp: Stamp) -> int:
        """How many of a tier's nodes lie below a node, at most."""
        counts = job.owner.kids if job.relation.kind is Kind.CHILDREN else job.owner.below
        items = min(counts.get(level, 0), stamp.shape[tier_name(level, depth)])
        return items if job.limit is None else min(items, job.limit)

    def _run_of_subtrees(self, jobs: list[Job]) -> Option:
        """The subtrees of neighbours as one: a range of the table, or of each tier that is asked for."""
        owners = _sorted_owners(jobs)
        lo, hi = _bounds(owners)
        everything = sum(sum(owner.below.values()) for owner in owners) + len(owners)
        table = Option.of([(Read(Span(Index.TABLE, owners[0].pk, lo, hi)), everything)])
        if jobs[0].window.level is None and jobs[0].window.max_depth is None:
            return table
        stamp = self.stamps[owners[0].pk]
        tiers = {one for job in jobs for one in job.tiers(stamp)}
        slices = Option.of(
            (
                Read(tier(owners[0].pk, level, depth, lo, hi)),
                sum(self._likely(job, level, depth, stamp) for job in jobs),
            )
            for level, depth in sorted(tiers)
        )
        return cheapest(slices, table)

    # -- reading ahead -------------------------------------------------------------------------------------------------

    def _ahead(self, jobs: list[Job]) -> Option | None:
        """All levels below a run of complete lists at once, where the selection goes on below them; else None."""
        owners, relations = _sorted_owners(jobs), {job.relation for job in jobs}
        if not all(relation.is_complete for relation in relations) or not self._is_gapless(jobs):
            return None
        stamp = self.stamps[owners[0].pk]
        tiers = self._tiers_ahead(owners, relations, stamp)
        if not tiers or max(depth for _, depth in tiers) <= owners[0].depth + 1:
            return None
        nodes = sum(tiers.values())
        if nodes > self.nodes_left:
            raise BudgetExceeded(too_many(nodes, self.nodes_left))
        lo, hi = _bounds(owners)
        slices = [(Read(tier(owners[0].pk, level, depth, lo, hi)), items) for (level, depth), items in tiers.items()]
        below = sum(sum(owner.below.values()) for owner in owners)
        span = Span(Index.TABLE, owners[0].pk, lo, hi)
        single = len(owners) == 1
        table = (Read(span.after(lo) if single else span), below if single else below + len(owners))
        return cheapest(Option.of([table]), Option.of(slices))

    def _tiers_ahead(
        self, owners: list[Record], relations: Iterable[Relation], stamp: Stamp
    ) -> dict[tuple[str, int], int]:
        """The deeper tiers that the selection asks for in full, with how many nodes each has below the owners."""
        below: Counter[str] = Counter()
        for owner in owners:
            below.update(owner.below)
        found: dict[tuple[str, int], int] = {}
        depth = owners[0].depth + 1
        while relations:
            levels = [level for level, at in stamp.tiers() if at == depth and below[level]]
            exact = {level: self._below_at(owners, below, level, depth, stamp) for level in levels}
            if not levels or None in exact.values():
                break
            found.update({(level, depth): count for level, count in exact.items() if count})
            relations = self._going_on(relations, levels)
            depth += 1
        return found

    def _below_at(self, owners: list[Record], below: Counter[str], level: str, depth: int, stamp: Stamp) -> int | None:
        """How many nodes of a tier lie below the owners, None where the counts do not tell."""
        if len(owners) == 1 and owners[0].is_root:
            return stamp.shape[tier_name(level, depth)]
        if len(stamp.depths(level)) == 1:
            return below[level]
        if depth == owners[0].depth + 1:
            return sum(owner.kids.get(level, 0) for owner in owners)
        return None

    def _going_on(self, relations: Iterable[Relation], levels: Iterable[str]) -> list[Relation]:
        """The complete children asked of all nodes of these levels, or none if some level is not asked for them."""
        parents = [level for level in levels if any(level in other.under for other in self.hierarchy.levels.values())]
        found = []
        for level in parents:
            complete = [
                deeper
                for one in relations
                for deeper in one.selection.on(self.hierarchy.name, level)
                if deeper.is_complete
            ]
            if not complete:
                return []
            found += complete
        return list(dict.fromkeys(found))

    # -- what is known and what it tells -------------------------------------------------------------------------------

    def _is_answered(self, job: Job) -> bool:
        if not job.relation.nodes or job.window.size == 0:
            return True
        if job.order is not Order.SIBLINGS and not job.levels:
            return True
        return answer(job, self.known, self.stamps[job.owner.pk]) is not None or self._is_promised(job)

    def _is_promised(self, job: Job) -> bool:
        """Whether a read that is already planned will answer it."""
        if job.order is Order.SIBLINGS:
            return self._promises(job.family_span)
        span = job.table_span if not job.in_sibling_order else subtree(job.owner.pk, job.owner.sk).after(job.owner.sk)
        if self._promises(span) or (job.in_sibling_order and self._promises(job.family_span)):
            return True
        owner, tiers = job.owner, job.tiers(self.stamps[job.owner.pk])
        return bool(tiers) and all(
            self._promises(tier(owner.pk, level, depth, span.lo, span.hi)) for level, depth in tiers
        )

    def _promises(self, span: Span) -> bool:
        return any(
            (planned.index, planned.partition) == (span.index, span.partition)
            and planned.lo <= span.lo
            and span.hi <= planned.hi
            for planned in self._planned
        )

    def _extras(self, owners: list[Record], level: str, stamp: Stamp) -> int:
        """How many children of a level the nodes between these have that were not asked for: the least known bound."""
        depth, pk = owners[0].depth, owners[0].pk
        wanted = sum(owner.kids.get(level, 0) for owner in owners)
        bounds = [stamp.shape.get(tier_name(level, depth + 1), 0)]
        parent = self._common_parent(owners)
        if parent is not None:
            bounds.append(parent.below.get(level, 0))
        if self._is_explored(owners, parent, stamp):
            between = self.known.between(pk, depth, *_bounds(owners))
            bounds.append(sum(record.kids.get(level, 0) for record in between))
        return max(0, min(bounds) - wanted)

    def _is_gapless(self, jobs: Sequence[Job]) -> bool:
        """Whether between these lists' owners lies no other node of their depth."""
        if len(jobs) == 1:
            return True
        owners = _sorted_owners(jobs)
        stamp = self.stamps[owners[0].pk]
        if not self._is_explored(owners, self._common_parent(owners), stamp):
            return False
        between = self.known.between(owners[0].pk, owners[0].depth, *_bounds(owners))
        return {record.sk for record in between} <= {owner.sk for owner in owners}

    def _common_parent(self, owners: list[Record]) -> Record | None:
        parents = {parent_sort_key(owner.sk) for owner in owners if not owner.is_root}
        return self.known.nodes.get(Key(owners[0].pk, parents.pop())) if len(parents) == 1 else None

    def _is_explored(self, owners: list[Record], parent: Record | None, stamp: Stamp) -> bool:
        """Whether every node of the owners' depth between the first and the last is known."""
        pk, depth = owners[0].pk, owners[0].depth
        lo, hi = _bounds(owners)
        if self.known.covers(Span(Index.TABLE, pk, lo, hi)):
            return True
        if parent is not None:
            levels = [level for level, count in parent.kids.items() if count]
            if self.known.covers(children_span(pk, parent.sk)):
                return True
            ranked = sorted(owners, key=lambda owner: owner.rank)
            if len(levels) == 1 and self.known.covers_siblings(parent, ranked[0], ranked[-1]):
                return True
        else:
            levels = [level for level, at in stamp.tiers() if at == depth]
        return all(self.known.covers(tier(pk, level, depth, lo, hi)) for level in levels)


def answer(job: Job, known: Known, stamp: Stamp) -> list[Record] | None:
    """A list's records in reading order, as many as its limit, or None where not all of them were read."""
    limit, descending = job.limit, job.window.descending
    if job.in_sibling_order:
        found = known.take(job.family_span, limit, reverse=descending)
        if found is not None or job.order is Order.SIBLINGS:
            return found
        family = known.family(job.owner, job.levels)
        span = job.family_span
        return _cut([one for one in family if span.lo <= one.rank < span.hi], job) if family is not None else None
    below = known.take(job.table_span)
    if below is None and job.window.level is None and job.window.max_depth is None and job.order is Order.DESCENDANTS:
        return known.take(job.table_span, limit, reverse=descending)
    if below is not None:
        tiers = set(job.tiers(stamp))
        return _cut([one for one in below if (one.level, one.depth) in tiers], job)
    parts = []
    for level, depth in job.tiers(stamp):
        part = known.take(job.tier_span(level, depth), limit, reverse=descending)
        if part is None:
            return None
        parts += part
    return _cut(sorted(parts, key=lambda record: record.sk), job)


def _cut(records: list[Record], job: Job) -> list[Record]:
    """Records in the list's own order, as reading them would have brought them."""
    return (records[::-1] if job.window.descending else records)[: job.limit]


def too_many(nodes: int, left: int) -> str:
    return (
        f"This asks for {nodes:,} nodes where {left:,} more may be returned. "
        "Ask for fewer with first: and go on with after:, or raise CLADE_MAX_NODES."
    )


def _is_complete(jobs: list[Job]) -> bool:
    return jobs[0].relation.is_complete


def _by_parent(jobs: Iterable[Job]) -> list[list[Job]]:
    families: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        families[job.owner.siblings].append(job)
    return list(families.values())


def _sorted_owners(jobs: Iterable[Job]) -> list[Record]:
    owners = {job.owner.sk: job.owner for job in jobs}
    return [owners[sk] for sk in sorted(owners)]


def _bounds(owners: list[Record]) -> tuple[str, str]:
    """From the first of some nodes of one depth to the end of the last one's subtree."""
    return owners[0].sk, owners[-1].sk[:-1] + "$"
