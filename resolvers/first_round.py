"""First round: the lists of a node that is looked up by its path, read in parallel with the node.

| list | key condition | known from |
| --- | --- | --- |
| `children` | `parent = "location#US#NE#"` | the path |
| `descendants` | `pk = "location#US"`, `begins_with(sk, "#NE#")` | the path |
| `descendants(level: CITY)` | `tier = "location#US@CITY@2"`, the same | the path, and the last version of the tree |
| any list of a root, and the lists below it | as the planner decides | the counts in the last version of the tree |
| the same of another node | the same | the node as it was cached last |

The last version and the last node are *hints*: this process has read them, perhaps long ago. A hint only decides what
is read; the response is made from the data that was read, planned by the version that is read with the node. So a wrong
hint costs a round or an unnecessary read, but the response is correct. Without a hint one list is read, so that a path
without a node costs at most one request more. SQLite has no rounds, and restricted callers may not learn from time or
reads what is there.
"""

from collections.abc import Sequence

from resolvers.children import ChildrenRequest
from resolvers.descendants import DescendantsRequest
from resolvers.planner import Planner, list_request
from resolvers.planning.list_request import ListRequest
from resolvers.planning.relations import Relation, RelationKind, Selection
from resolvers.session.records_read import Read, RecordsRead
from resolvers.session.request import Request
from store.errors import CladeError
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, KeyRange, depth_of
from store.model.records import Record

_LISTS = (RelationKind.CHILDREN, RelationKind.DESCENDANTS)


def first_round(request: Request, key: Key, hierarchy: Hierarchy, selection: Selection) -> list[Read]:
    """The reads to make in parallel with that of the node at `key`, of which `selection` is selected."""
    state = request.state
    if state.store_version is not None or state.filter is not None:
        return []
    version, cached = state.pages.last_version(key.pk), state.pages.peek(key)
    owner: Record | None = None if cached is None else cached[0]
    if owner is None and version is not None and key.sk == "#":
        owner = _root(version)
    try:
        if owner is not None and version is not None:
            return _planned(request, owner, version, hierarchy, selection)
        read = _by_path(key, version, _lists(selection, hierarchy), request.budget.nodes_left)
    except CladeError:  # of arguments or budgets; the field itself meets it again
        return []
    return [] if read is None else [read]


def _planned(
    request: Request, owner: Record, version: TreeVersion, hierarchy: Hierarchy, selection: Selection
) -> list[Read]:
    """The reads that the planner decides on if the hints are true."""
    selected = [relation.whole for relation in selection.on(hierarchy.name, owner.level)]
    relations = [one for one in selected if _is_known(one, owner)]
    lists = [one for relation in relations if not _is_cached(request, one := list_request(owner, relation))]
    if not lists:
        return []
    nodes_left = request.budget.nodes_left
    if sum([one.min_size({owner.pk: version}) for one in lists]) > nodes_left:
        return []
    planner = Planner(RecordsRead(), {owner.pk: version}, hierarchy, nodes_left)
    planner.add(lists)
    for group in planner.groups:
        planner.plan(group)
    request.slot.expect(planner.max_nodes)
    return list(planner.reads)


def _is_cached(request: Request, requested: ListRequest) -> bool:
    """Whether the page of a list is cached, if nothing was written to its tree since."""
    entry = request.state.pages.peek(requested.cache_key)
    return entry is not None and request.state.pages.may_hold({requested.owner.pk: entry[1]})


def _is_known(relation: Relation, owner: Record) -> bool:
    """Whether a relation is a list whose range is known: cursors are bound to the id of the owner."""
    return relation.kind in _LISTS and (bool(owner.id) or not relation.window.is_paged)


def _by_path(key: Key, version: TreeVersion | None, relations: Sequence[Relation], nodes_left: int) -> Read | None:
    """The read of the longest of these lists whose range follows from the path."""
    owner = _unknown(key)
    for relation in sorted(relations, key=lambda one: (one.window.size is not None, -(one.window.size or 0))):
        requested, window = list_request(owner, relation), relation.window
        if not _is_known(relation, owner) or not relation.nodes or window.size == 0:
            continue
        if version is not None and window.size is None and _most(requested, version) > nodes_left:
            continue
        span = _range_of(requested, version)
        if span is not None:
            return Read(span, min(window.limit or nodes_left + 2, nodes_left + 2), window.descending)
    return None


def _range_of(requested: ListRequest, version: TreeVersion | None) -> KeyRange | None:
    """The one range that holds the list and nothing else; None if that is not known."""
    if len(levels := requested.window.level_or_all) > 1:
        return None
    if isinstance(requested, ChildrenRequest) or requested.is_whole_subtree:
        spans = requested.key_ranges
    elif version is not None and levels[0] is not None and isinstance(requested, DescendantsRequest):
        depths = [depth for depth in version.depths(levels[0]) if requested.owner.depth < depth <= requested.max_depth]
        spans = requested.level_ranges(levels[0], depths[0]) if len(depths) == 1 else []
    else:
        return None
    return spans[0] if len(spans) == 1 else None


def _most(requested: ListRequest, version: TreeVersion) -> int:
    """The maximum number of nodes in a list, by the counts of its tree."""
    top, deepest = requested.owner.depth, requested.max_depth
    return sum(version.shape[level_at_depth(*tier)] for tier in version.tiers() if top < tier[1] <= deepest)


def _lists(selection: Selection, hierarchy: Hierarchy) -> list[Relation]:
    """The lists that are selected for nodes of every level, and below which no complete lists are selected."""
    by_level = [[relation.whole for relation in selection.on(hierarchy.name, level)] for level in hierarchy.levels]
    first, *others = by_level
    return [
        relation
        for relation in first
        if all(any(relation.page_key == other.page_key for other in some) for some in others)
        and not _goes_deeper(relation, hierarchy)
    ]


def _goes_deeper(relation: Relation, hierarchy: Hierarchy) -> bool:
    """Whether the planner would read deeper levels in the same range, so that the list alone is no use."""
    selected = (relation.selection.on(hierarchy.name, level) for level in hierarchy.levels)
    return relation.is_complete and any(deeper.whole.is_complete for some in selected for deeper in some)


def _root(version: TreeVersion) -> Record | None:
    """A root with the counts that its tree's version has; None if the tree is empty."""
    tiers = version.tiers()
    level = next((level for level, depth in tiers if depth == 0), None)
    if level is None:
        return None
    kids = {name: version.shape[level_at_depth(name, 1)] for name, depth in tiers if depth == 1}
    return _unknown(Key(version.partition, "#"), level, kids, version.below_root)


def _unknown(
    key: Key, level: str = "", kids: dict[str, int] | None = None, below: dict[str, int] | None = None
) -> Record:
    """A node of which only these values are known."""
    return Record(
        pk=key.pk, sk=key.sk, rank="", id="", level=level, name="", above=[""] * depth_of(key.sk), kids=kids or {},
        below=below or {}, revision=0, updated_at="", attributes={},
    )  # fmt: skip
