"""Planner: decides how a whole response level of lists is read, from values alone.

DynamoDB's Query reads one range of one partition. There is no batch Query, so reading N lists one by one takes N
requests. Often fewer are possible, and every record has counts that give the price of each way beforehand:

A *single list* is one Query: of `by_parent` for children, of the table for descendants.

*Lists of siblings* are adjacent: in the partition of one level and depth of a tree, in key order, the children of
adjacent siblings are one range, from the first sibling to the last. So the children of one level of any number of
siblings are one Query. If other siblings lie in between, the range contains their children as well. The counts limit
their number (`lists/prefetch.py`), and the range is read only if that is cheaper than one Query for each parent.

*Levels below levels* need only the common prefix of the parents, not their records (`lists/prefetch.py`). If a
selection has all children of some nodes and all children of these, the deeper levels are read in the same round. If it
goes as deep as the tree, the whole subtree is one range of the table.

*Pages* (`first`) are one Query with a Limit for each parent, or are cut from one range in memory, whichever is cheaper.

*Scattered parents* are grouped by tree and depth, then by parent; each group is read in its cheapest way.

Planning has four steps. Lists that the counts or the records read before already answer need no read. The others are
grouped by arguments, tree and depth, and groups whose reads may contain other lists come first. Each group is read in
its cheapest way (`lists/list_request.py`): the least read units, then the fewest requests. A list that the reads of an
earlier group contain is left out of its own.

The ways themselves, with their key ranges, are in `children.py` and `descendants.py`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from resolvers.children import ChildrenBetweenRequest, ChildrenByKeyRequest, ChildrenRequest
from resolvers.descendants import DescendantsRequest
from resolvers.lists.arguments import Relation, RelationKind
from resolvers.lists.list_request import ListRequest, PlannedReads, ReadOption, TreeState
from resolvers.lists.prefetch import is_gapless, prefetch, sorted_owners
from resolvers.session.budget import Budget, TooManyNodes
from resolvers.session.records_read import Read, RecordsRead
from resolvers.sorting.ordering import PlaceOrder
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.records import Record


def list_requests(owners: Iterable[Record], relation: Relation) -> list[ListRequest]:
    """The lists that a relation leads to from these nodes."""
    kind: type[ListRequest] = DescendantsRequest
    if relation.kind is RelationKind.CHILDREN:
        kind = ChildrenRequest if relation.arguments.bounds is None else ChildrenBetweenRequest
        if relation.arguments.ordering.place in (PlaceOrder.KEY, PlaceOrder.PATH):
            kind = ChildrenByKeyRequest
    return [kind(owner, relation) for owner in owners]


def list_request(owner: Record, relation: Relation) -> ListRequest:
    """The list that a relation leads to from a node."""
    return list_requests([owner], relation)[0]


class Planner:
    """Plans the reads of lists of one hierarchy's trees, given their versions and the nodes left in a budget.

    Lists are added, then each of `groups` is planned. After that `reads` return all lists but those in `answered`,
    which need no read; `max_nodes` is the maximum number of nodes that the reads return.
    """

    def __init__(
        self,
        records_read: RecordsRead,
        versions: Mapping[str, TreeVersion],
        hierarchy: Hierarchy,
        budget: Budget,
    ) -> None:
        self.answered: dict[ListRequest, list[Record]] = {}
        self.reads: dict[Read, None] = {}
        self.max_nodes = 0
        self._records_read = records_read
        self._versions = versions
        self._hierarchy = hierarchy
        self._budget = budget
        self._planned = PlannedReads()
        self._groups: dict[tuple[object, ...], list[ListRequest]] = defaultdict(list)

    def add(self, lists: Iterable[ListRequest]) -> None:
        """Add lists to plan."""
        for requested in lists:
            owner, arguments = requested.owner, requested.relation.arguments
            version = self._versions[owner.pk]
            records = requested.records(self._records_read, version) if requested.needs_nodes else []
            if records is not None:
                self.answered[requested] = records
            else:
                separate = arguments.compared, owner.sk if arguments.is_narrow else ""
                self._groups[requested.relation.kind, arguments, owner.pk, owner.depth, separate].append(requested)

    @property
    def groups(self) -> list[list[ListRequest]]:
        """The lists that have to be read, in the order in which they are to be planned."""
        return sorted(self._groups.values(), key=_breadth)

    def plan(self, group: Sequence[ListRequest]) -> None:
        """Plan the reads of a group; raises BudgetExceeded where they return more nodes than are left."""
        version = self._versions[group[0].owner.pk]
        tree = TreeState(version, self._records_read, self._planned, self._budget)
        missing = self._unplanned(group, tree)
        if missing and missing[0].relation.is_complete and (deep := self._prefetch(missing, tree)) is not None:
            self._take(deep)
            missing = self._unplanned(missing, tree)
        if missing:
            # Under two aliases a node has the same list twice.
            unique = list({requested.owner.sk: requested for requested in missing}.values())
            self._take(type(unique[0]).plan_reads(unique, tree))

    def _take(self, option: ReadOption) -> None:
        self._planned.add(option)
        self.max_nodes += option.nodes
        self.reads.update(dict.fromkeys(option.reads))

    def _unplanned(self, lists: Sequence[ListRequest], tree: TreeState) -> list[ListRequest]:
        return [requested for requested in lists if not self._planned or not requested.is_planned(tree)]

    def _prefetch(self, lists: Sequence[ListRequest], tree: TreeState) -> ReadOption | None:
        """The reads of those lists below which complete lists are selected, together with these; None if separate reads
        are better.
        """
        hierarchy, deep = self._hierarchy, list[ListRequest]()
        for requested in lists:
            on = requested.relation.selection.on
            if any(below.whole.is_complete for level in requested.levels for below in on(hierarchy.name, level)):
                deep.append(requested)
        if not deep or not is_gapless(sorted_owners(deep), tree):
            return None
        option, nodes = prefetch(deep, tree.version, hierarchy) or (None, 0)
        if nodes > self._budget.nodes_left:
            raise TooManyNodes("This list and the lists below it", nodes, self._budget.nodes_left)
        return option


def _breadth(group: Sequence[ListRequest]) -> tuple[object, ...]:
    """The sort key of groups: first those whose reads may contain other lists, as whole subtrees and long lists do."""
    first, limit = group[0], group[0].relation.arguments.limit
    return limit is not None, not first.is_whole_subtree, not first.relation.is_complete, -(limit or 0)
