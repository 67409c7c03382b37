"""Which ranges to read for a whole response level of lists, decided from values alone.

DynamoDB answers one range of one partition at a time, so N parents asked one by one are N queries. But the keys allow
better, and the counts that every record carries tell beforehand what each way costs:

A *single* list is one query: a partition of `by_parent` for children, a range of the table for descendants.

*Sibling lists* lie side by side: in a tier (all nodes of one level at one depth of a tree, in key order) the children
of a run of siblings are one slice, from the first sibling to the last. So all children of one level of any number of
siblings are one query. Where siblings in between were not asked for, the slice holds their children too; how many, the
counts bound (`neighbours`), and the slice is taken only where that is cheaper than single queries.

*Levels below levels* need no parents' records, only their common prefix (`ahead`). If all children are asked for, and
all of theirs, the deeper tiers can be read in the same round; and if that goes as deep as the tree does, the whole
subtree is one range of the table.

*Pages* (`first`) are cut from single queries with a limit, or from a slice in memory, whichever costs less.

*Scattered parents* are grouped by tree and depth, then by parent; each group goes its cheapest way.

So a batch of lists becomes reads in four steps. Lists that the counts or what was read before (`known`) can answer
need none. The others are put in groups of the same arguments, tree and depth, those that bring most first. Each group
goes its cheapest way, measured in DynamoDB's read units and then in requests (`cost`). A list that the reads of an
earlier group will answer is left out of its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from resolvers.planning.assemble import answer
from resolvers.planning.cursors import CursorKind
from resolvers.planning.list_request import ListRequest
from resolvers.planning.prefetch import prefetch
from resolvers.planning.read_cost import ReadOption, cheapest
from resolvers.planning.relations import RelationKind
from resolvers.planning.sibling_runs import (
    bounds,
    extras,
    is_gapless,
    sorted_owners,
)
from resolvers.session.budget import refusal
from resolvers.session.records_read import Read, RecordsRead
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.keys import Index
from store.model.ranges import KeyRange, level_range, subtree
from store.model.records import Record


class Planner:
    """Plans reads for lists of one hierarchy's trees, given what is known, the trees' stamps and the nodes left.

    Lists are added, then each group of them is planned. After that `reads` answer them, none twice; `answered` holds
    the records of those that need no read, and `nodes` is how many the reads bring at most.
    """

    def __init__(
        self, known: RecordsRead, stamps: Mapping[str, TreeVersion], hierarchy: Hierarchy, nodes_left: int
    ) -> None:
        self.known = known
        self.stamps = stamps
        self.hierarchy = hierarchy
        self.nodes_left = nodes_left
        self.answered: dict[ListRequest, list[Record]] = {}
        self.reads: dict[Read, None] = {}
        self.nodes = 0
        self._groups: dict[tuple[object, ...], list[ListRequest]] = defaultdict(list)
        self._planned: dict[tuple[Index, str], list[Read]] = defaultdict(list)

    def add(self, jobs: Iterable[ListRequest]) -> None:
        """Take lists to plan for."""
        for job in jobs:
            if not self._is_answered(job):
                apart = job.owner.sk if job.window.is_narrow else ""
                self._groups[job.relation.kind, job.window, job.owner.pk, job.owner.depth, apart].append(job)

    @property
    def groups(self) -> list[list[ListRequest]]:
        """The lists that have to be read, in the order in which they are to be planned."""
        return sorted(self._groups.values(), key=_breadth)

    def plan(self, group: list[ListRequest]) -> None:
        """Plan the reads of a group; raises BudgetExceeded where they bring too much."""
        if missing := [job for job in group if not self._is_promised(job)]:
            chosen = self._group(missing)
            self._promise(chosen)
            self.nodes += chosen.nodes
            self.reads.update(dict.fromkeys(chosen.reads))

    def _is_answered(self, job: ListRequest) -> bool:
        found = answer(job, self.known, self.stamps[job.owner.pk]) if job.needs_nodes else []
        if found is not None:
            self.answered[job] = found
        return found is not None

    # -- groups of lists with the same arguments, owned by nodes at one depth of one tree ------------------------------

    def _group(self, jobs: list[ListRequest]) -> ReadOption:
        first = jobs[0]
        alone = list({job.owner.sk: job for job in jobs}.values())  # one node's twice, under two aliases, is one list
        match first.order:
            case CursorKind.SIBLINGS:
                return ReadOption.all(self._siblings(job) for job in {job.family_span: job for job in alone}.values())
            case CursorKind.CHILDREN_BY_KEY:
                return ReadOption.all(map(self._tiers, alone))
            case CursorKind.DESCENDANTS:
                return self._descendants(alone)
            case _ if first.window.is_narrow:
                return ReadOption.all(map(self._family, alone))
            case _ if first.relation.is_complete:
                return self._ahead(jobs) or self._children(alone)
            case _:
                return self._children(alone)

    def _siblings(self, job: ListRequest) -> ReadOption:
        return ReadOption.of([(Read(job.family_span, self._limit(job), job.window.descending), 1)])

    def _family(self, job: ListRequest) -> ReadOption:
        """The children of one node in sibling order: one query."""
        items = job.most if job.limit is None else min(job.most, job.limit)
        return ReadOption.of([(Read(job.family_span, job.limit, job.window.descending), items)])

    def _children(self, jobs: list[ListRequest]) -> ReadOption:
        """The children of several nodes: one by one, or as slices of tiers."""
        singles = ReadOption.all(map(self._family, jobs))
        if len(jobs) == 1:
            return singles
        options = [singles, self._slices(jobs)]
        families = _by_parent(jobs)
        if 1 < len(families) < len(jobs):
            options.append(ReadOption.all(map(self._children, families)))
        return cheapest(*options)

    def _slices(self, jobs: list[ListRequest]) -> ReadOption:
        """For each level of children one slice, from the first parent that has any to the last."""
        reads = []
        stamp = self.stamps[jobs[0].owner.pk]
        for level in sorted({level for job in jobs for level in job.levels}):
            owners = sorted_owners(job for job in jobs if level in job.levels)
            items = sum([owner.kids[level] for owner in owners]) + extras(owners, level, self.known, stamp)
            reads.append((Read(level_range(owners[0].pk, level, owners[0].depth + 1, *bounds(owners))), items))
        return ReadOption.of(reads)

    def _ahead(self, jobs: list[ListRequest]) -> ReadOption | None:
        """The lists that go on below together with what is below them, and the others as far as these leave any."""
        deep = [job for job in jobs if self._goes_on(job)]
        stamp = self.stamps[jobs[0].owner.pk]
        if not deep or not is_gapless(sorted_owners(deep), self.known, stamp):
            return None
        ahead = prefetch(deep, stamp, self.hierarchy)
        if ahead is None:
            return None
        if ahead.nodes > self.nodes_left:
            raise refusal("What is asked here and below", ahead.nodes, self.nodes_left)
        self._promise(ahead.option)
        rest = {job.owner.sk: job for job in jobs if not self._is_promised(job)}
        return ReadOption.all([ahead.option, self._children(list(rest.values()))]) if rest else ahead.option

    def _goes_on(self, job: ListRequest) -> bool:
        """Whether all children of some of its nodes are asked for, too."""
        on, name = job.relation.selection.on, self.hierarchy.name
        return any(deeper.is_complete for level in job.levels for deeper in on(name, level))

    # -- descendants ---------------------------------------------------------------------------------------------------

    def _descendants(self, jobs: list[ListRequest]) -> ReadOption:
        """Several subtrees one by one, or as one where they lie side by side."""
        singles = ReadOption.all(map(self._subtree, jobs))
        owners = sorted_owners(jobs)
        if len(jobs) == 1 or jobs[0].window.is_narrow or not is_gapless(owners, self.known, self.stamps[owners[0].pk]):
            return singles
        return cheapest(singles, self._run_of_subtrees(jobs, owners))

    def _subtree(self, job: ListRequest) -> ReadOption:
        """One subtree as a range of the table, or only the tiers that are asked for."""
        if job.is_whole_subtree:
            items = job.most if job.limit is None else min(job.most, job.limit)
            return ReadOption.of([(Read(job.table_span, self._limit(job), job.window.descending), items)])
        whole = ReadOption.of([(Read(job.table_span), sum(job.owner.below.values()))])
        return cheapest(self._tiers(job), whole)

    def _tiers(self, job: ListRequest) -> ReadOption:
        """The tiers that a list can lie in, each from bound to bound."""
        limit = self._limit(job)
        reads = []
        for level, depth in job.tiers(self.stamps[job.owner.pk]):
            items = self._likely(job, level, depth)
            read = Read(job.tier_span(level, depth), limit, job.window.descending)
            reads.append((read, items if job.limit is None else min(items, job.limit)))
        return ReadOption.of(reads)

    def _run_of_subtrees(self, jobs: list[ListRequest], owners: list[Record]) -> ReadOption:
        """The subtrees of neighbours as one: a range of the table, or of each tier that is asked for."""
        pk, (lo, hi) = owners[0].pk, bounds(owners)
        everything = sum([sum(owner.below.values()) for owner in owners]) + len(owners)
        table = ReadOption.of([(Read(KeyRange(Index.TABLE, pk, lo, hi)), everything)])
        if jobs[0].is_whole_subtree:
            return table
        tiers = sorted({one for job in jobs for one in job.tiers(self.stamps[pk])})
        slices = [
            (Read(level_range(pk, level, depth, lo, hi)), sum([self._likely(job, level, depth) for job in jobs]))
            for level, depth in tiers
        ]
        return cheapest(ReadOption.of(slices), table)

    def _limit(self, job: ListRequest) -> int | None:
        """Up to where to read: no further than the budget goes where the counts cannot tell beforehand."""
        if job.is_exact:
            return job.limit
        return min(job.limit or self.nodes_left + 2, self.nodes_left + 2)

    def _likely(self, job: ListRequest, level: str, depth: int) -> int:
        """How many of a tier's nodes lie below a node, at most."""
        counts = job.owner.kids if job.relation.kind is RelationKind.CHILDREN else job.owner.below
        return min(counts.get(level, 0), self.stamps[job.owner.pk].shape[level_at_depth(level, depth)])

    # -- what the reads planned so far will tell -----------------------------------------------------------------------

    def _promise(self, option: ReadOption) -> None:
        for read in option.reads:
            self._planned[read.span.index, read.span.partition].append(read)

    def _is_promised(self, job: ListRequest) -> bool:
        """Whether reads that are planned already will answer it."""
        if not self._planned:
            return False
        owner, limit = job.owner, job.limit
        if job.in_sibling_order and self._promises(job.family_span, limit, reverse=job.window.descending):
            return True
        if job.order is CursorKind.SIBLINGS:
            return False
        span = subtree(owner.pk, owner.sk).after(owner.sk) if job.in_sibling_order else job.table_span
        if self._promises(span) or (
            job.is_whole_subtree and self._promises(span, limit, reverse=job.window.descending)
        ):
            return True
        tiers = job.tiers(self.stamps[owner.pk])
        return bool(tiers) and all(self._promises(level_range(owner.pk, *one, span.lo, span.hi)) for one in tiers)

    def _promises(self, span: KeyRange, limit: int | None = None, *, reverse: bool = False) -> bool:
        planned = self._planned.get((span.index, span.partition), ())
        return any(read.answers(span, limit, reverse=reverse) for read in planned)


def _breadth(group: list[ListRequest]) -> tuple[object, ...]:
    """What groups are sorted by: first those whose reads may answer others, as whole subtrees and long lists do."""
    first = group[0]
    return first.limit is not None, not first.is_whole_subtree, not first.relation.is_complete, -(first.limit or 0)


def _by_parent(jobs: Iterable[ListRequest]) -> list[list[ListRequest]]:
    families: dict[str, list[ListRequest]] = defaultdict(list)
    for job in jobs:
        families[job.owner.siblings].append(job)
    return list(families.values())
