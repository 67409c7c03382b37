"""Lookup: nodes by path, by id and by unique values; the lists of a node that is looked up by its path are read in the
same round.

| field | index | key condition | requests for 1 node | for N nodes |
| --- | --- | --- | --- | --- |
| `location(path: "US/NE")` | table | key `("location#US", "#NE#")` | 1 | 1 |
| `location(id: …)`, `node`, `nodes` | table | key `("id#<id>", "v0")`, then that of the node | 2 | 2 |
| `product(sku: …)` | table | key of the value's item, then that of the node as the item has it | 2 | 2 |
| by a former path | table | key of the redirect of exactly this path, then as by id | 3 more | 3 more |
| by a value, of a moved node | table | key of the value's item as of now, then as by id | 3 more | 3 more |

Each request is a BatchGetItem of up to 100 keys; the ancestors that are selected are read by the request of the nodes.
Redirects cost nothing in trees that never had one.
A node that moves between the read of its id record and its own read is followed, by two more reads.
The place in the item of a value is a hint: the node that is read there has to have the id and the value. Callers with
grants take the last way alone, since whether a hint is right would tell of hidden nodes.

| list in the first round | key condition | known from |
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

Batched by the dataloader `Loaders.node`, for a whole response level.
"""

import asyncio
from collections.abc import Awaitable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, cast

from resolvers.access.grants import may_read
from resolvers.ancestors import kinds_for_all_levels, selected_keys
from resolvers.children import ChildrenRequest
from resolvers.descendants import DescendantsRequest
from resolvers.holders import holder_keys, read_holders
from resolvers.lists.arguments import Page, Relation, RelationKind, Selection
from resolvers.lists.list_request import ListRequest
from resolvers.planner import Planner, list_request
from resolvers.session.budget import Budget, gather_outcomes, raise_first_error
from resolvers.session.reads import Nodes
from resolvers.session.records_read import Read, RecordsRead
from resolvers.session.request import Request
from resolvers.session.scheduler import outcome_of
from store.errors import CladeError
from store.kinds.unique import Holder, UniqueValue
from store.metadata.history import current_key, redirect_key, redirected_id
from store.metadata.tree_version import TreeVersion, level_at_depth
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, KeyRange, Path, depth_of, id_key, node_key
from store.model.records import Record

MAX_HINTED = 500  # lists that are planned by nodes which may have changed, so that some may be read in vain
HINTED_SHARE = 4  # so that of the requests that are left most are for lists that are needed
MAX_MOVES_FOLLOWED = 4  # of one node, while it is looked up by its id

_LISTS = (RelationKind.CHILDREN, RelationKind.DESCENDANTS)
_NO_ID = " "  # which no id begins with

NodeKey = Key | Exception | None  # of a node, None where no node has the id, or the error of a failed read


class ByPath(NamedTuple):
    """The lookup of a node by its path, or by a former one."""

    hierarchy: str
    path: Path

    def is_of(self, record: Record) -> bool:
        """Whether the node that was read at its key is the one to be found."""
        return True


class ById(NamedTuple):
    """The lookup of a node by its full id, such as "location:5074472"."""

    hierarchy: str
    id: str

    def is_of(self, record: Record) -> bool:
        """The same; another node may have taken the key of the one with the id."""
        return record.id == self.id


Lookup = ByPath | ById | UniqueValue
Found = Record | Exception | None  # the node of a lookup, None where there is none, or the error of a failed read


async def find_nodes(request: Request, lookups: Sequence[tuple[Lookup, Selection]]) -> list[Found]:
    """The nodes of these lookups, None where there is none; the ancestors that are selected for them are read as well.

    The error of a failed read is in place of each node that needs it.
    """
    request.budget.spend_nodes(len(lookups), "The nodes that are looked up")
    if len(lookups) != 1 or request.store.is_embedded:  # whose reads do not overlap
        return await find_spent(request, lookups)
    ((lookup, selection),) = lookups
    key = node_key(*lookup) if isinstance(lookup, ByPath) else None
    reads = [] if key is None else _first_round(request, key, request.hierarchies[lookup.hierarchy], selection)
    if key is None or not reads:
        return await find_spent(request, lookups)
    found = asyncio.ensure_future(find_spent(request, lookups))  # first, so that it reads the version of the tree
    lists = [request.state.range(read, beside=key.pk) for read in reads]
    outcomes = await gather_outcomes(cast(list[Awaitable[object]], [found, *lists]))
    raise_first_error(outcomes[:1])  # a list that fails is reported where it is used
    return found.result()


async def find_spent(request: Request, lookups: Sequence[tuple[Lookup, Selection]]) -> list[Found]:
    """The same of nodes that were taken from the budget already."""
    state = request.state
    cache_keys: list[Hashable] = [("node", *lookup) for lookup, _ in lookups]
    cached = await state.cached_nodes(cache_keys)
    if cached is not None:
        state.partitions_read.update([record.pk for record in cached])
        # A tuple is equal to a Key.
        state.records_read.nodes.update({(record.pk, record.sk): record for record in cached})
        return cached
    keys, holders = await _node_keys(request, [lookup for lookup, _ in lookups])
    nodes = [key for key in keys.values() if isinstance(key, Key)]
    ancestors = list[Key]()
    for lookup, selection in lookups:
        if isinstance(key := keys[lookup], Key):
            ancestors += selected_keys(key, kinds_for_all_levels(selection, request.hierarchies[lookup.hierarchy]))
    keys, read = await _follow_moves(request, keys, await state.current_nodes(nodes + ancestors))
    found = {one: _checked(one, read[key], holders) if isinstance(key, Key) else key for one, key in keys.items()}
    left: list[Lookup] = [one for one, node in found.items() if node is None and not isinstance(one, ById)]
    for _ in range(MAX_MOVES_FOLLOWED):
        if not left:
            break
        found |= await _redirected(request, left)
        # A value may have passed on to another node between the reads of its item and of its node.
        left = [one for one in left if isinstance(node := found[one], Record) and not one.is_of(node)]
    found |= dict.fromkeys(left)
    results = [found[lookup] for lookup, _ in lookups]
    for (lookup, _), cache_key, result in zip(lookups, cache_keys, results, strict=True):
        is_value = isinstance(lookup, UniqueValue)
        state.is_of_trees &= result is not None or not is_value  # no tree version shows that no node has a value
        # A path that redirects depends on the tree that the node has left and on that which it is in.
        if isinstance(result, Record) and (
            is_value or result.key == keys[lookup] or state.partitions_read == {result.pk}
        ):
            state.pages.put_lookup(result.pk, cache_key, result)
    return results


async def _redirected(request: Request, lookups: Sequence[Lookup]) -> dict[Lookup, Found]:
    """The nodes of paths and values for which there was none, wherever they are: by the ids that the redirects of the
    paths and the items of the values name; None where none leads to a node that the caller may see.

    What leads to a hidden node takes the reads of what leads to none, and fails where these fail.
    """
    state, grants = request.state, request.grants
    ids = await _redirected_ids(request, lookups)
    known = set[Key]()
    read: dict[
        Lookup, Key
    ] = {}  # for each of them the record of its id, or one of no node in place of a missing or repeated one
    for number, (former, former_id) in enumerate(ids.items()):
        own = id_key(former_id) if isinstance(former_id, str) else None
        if own is not None and own not in known:
            known.add(own)
            read[former] = own
        elif grants is not None:
            read[former] = id_key(f"{_NO_ID}{number}")
    state.read_again(read.values())
    items = await state.items(read.values(), current=True)
    named = {one: ById(one.hierarchy, node_id) for one, node_id in ids.items() if isinstance(node_id, str)}
    keys = dict[Lookup, NodeKey]()
    for by_id in named.values():
        key = outcome_of(items[id_key(by_id.id)], current_key)
        is_hidden = isinstance(key, Key) and not may_read(grants, key)
        keys[by_id] = None if is_hidden else key
    targets = [key for key in keys.values() if isinstance(key, Key)]
    state.is_of_trees &= len(targets) == len(keys)  # no tree version shows that an id has no node
    state.read_again(targets)
    keys, nodes = await _follow_moves(request, keys, await state.current_nodes(targets))
    found: dict[Lookup, Found] = {one: node_id for one, node_id in ids.items() if not isinstance(node_id, str)}
    for one, by_id in named.items():
        key = keys[by_id]
        found[one] = _checked(by_id, nodes[key]) if isinstance(key, Key) else key
    return found | {one: item for one, own in read.items() if isinstance(item := items[own], Exception)}


async def _redirected_ids(request: Request, lookups: Sequence[Lookup]) -> dict[Lookup, str | Exception | None]:
    """The ids of the nodes that were last at these paths, or that have these values: None without one, or the error of
    a failed read. Paths of trees that never had a redirect are left out.
    """
    state, redirects = request.state, dict[Lookup, Key]()
    values = [one for one in lookups if isinstance(one, UniqueValue)]
    for one in lookups:
        if isinstance(one, ByPath):
            key = node_key(*one)
            version = state.tree_versions.get(key.pk)
            # Of a tree that is not all seen it is read, or the reads would disclose whether there is such a tree, and
            # whether it has redirects.
            is_partly_hidden = not may_read(request.grants, Key(key.pk, "#"))
            if is_partly_hidden or (version is not None and version.has_redirects):
                redirects[one] = redirect_key(key)
    reads = [*redirects.values(), *holder_keys(values)]
    if not reads:
        return {}
    state.read_again(reads)
    items = await state.items(reads, current=True)
    found = {one: outcome_of(items[redirect], redirected_id) for one, redirect in redirects.items()}
    for one, holder in (await read_holders(request, values, current=True)).items():
        found[one] = holder.id if isinstance(holder, Holder) else holder
    return found


async def _node_keys(
    request: Request, lookups: Sequence[Lookup]
) -> tuple[dict[Lookup, NodeKey], dict[UniqueValue, Holder | Exception | None]]:
    """The keys of the nodes: of a path by computation, of an id by its record, of a value by its item, which says where
    its node was; and what the items of values say.

    Where an id leads to a hidden node, nothing more is read and nothing is cached, so that a hidden node costs the same
    reads and time as a missing one. So of values nothing is read here for callers with grants.
    """
    state, grants = request.state, request.grants
    ids = [id_key(one.id) for one in lookups if isinstance(one, ById)]
    values = [one for one in lookups if isinstance(one, UniqueValue) and grants is None]
    request.scheduler.expect(len(ids) + len(values))
    reads = [*ids, *holder_keys(values)]
    items = await state.items(reads, current=grants is not None) if reads else {}
    if state.validators.has_lag and grants is None:
        missing = [key for key in ids if outcome_of(items[key], current_key) is None]
        if missing:
            items |= await state.items(missing, current=True)  # a weak read may miss a node that was just created
    holders = await read_holders(request, values, current=False) if values else {}
    keys = dict[Lookup, NodeKey]()
    for one in lookups:
        if isinstance(one, ByPath):
            keys[one] = node_key(*one)
        elif isinstance(one, UniqueValue):
            holder = holders.get(one)
            keys[one] = holder.key(one.hierarchy) if isinstance(holder, Holder) else holder
        elif isinstance(key := outcome_of(items[id_key(one.id)], current_key), Exception):
            keys[one] = key
        else:
            # Checked for a missing node as well, since the check takes time.
            is_readable = may_read(grants, key or Key(f"{one.hierarchy}#{one.id}", "#"))
            keys[one] = key if is_readable else None
            state.is_of_trees &= keys[one] is not None
    return keys, holders


async def _follow_moves(
    request: Request, keys: dict[Lookup, NodeKey], found: Nodes
) -> tuple[dict[Lookup, NodeKey], Nodes]:
    """The same keys and nodes, with those that moved after the records of their ids were read."""
    state = request.state
    for _ in range(MAX_MOVES_FOLLOWED):
        moved = {  # the id records of readable nodes that are not where these records point to
            one: id_key(one.id)
            for one, key in keys.items()
            if isinstance(one, ById) and isinstance(key, Key)
            if _checked(one, found[key]) is None and (state.filter is None or state.filter.shows(key))
        }
        if not moved:
            break
        state.is_of_trees = False  # if there is no node, no tree version shows that there is none later
        items = await state.strong_items([*moved.values()])
        present: dict[Lookup, Key] = {
            one: key for one, record in moved.items() if (key := current_key(items[record])) is not None
        }
        await state.reread_nodes(present.values())
        found = found | await state.current_nodes(present.values())
        if all(keys[one] == key for one, key in present.items()):
            break  # there is no such node
        keys = {**keys, **present}
    return keys, found


def _checked(
    lookup: Lookup, record: Found, holders: Mapping[UniqueValue, Holder | Exception | None] = MappingProxyType({})
) -> Found:
    """The record; None where it is of another node than the lookup, or its item, leads to."""
    if not isinstance(record, Record):
        return record
    holder = holders.get(lookup) if isinstance(lookup, UniqueValue) else None
    is_holder = not isinstance(holder, Holder) or holder.id == record.id
    return record if is_holder and lookup.is_of(record) else None


# -- the first round ---------------------------------------------------------------------------------------------------


def _first_round(request: Request, key: Key, hierarchy: Hierarchy, selection: Selection) -> list[Read]:
    """The reads to make in parallel with that of the node at `key`, of which `selection` is selected."""
    state = request.state
    if state.filter is not None:
        return []
    version, cached = state.pages.versions.latest(key.pk), state.pages.cache.peek(key)
    owner: Record | None = None if cached is None else cached[0]
    if owner is None and version is not None and key.sk == "#":
        owner = _root(version)
    try:
        if owner is not None and version is not None:
            return _planned(request, owner, version, hierarchy, selection)
        read = _by_path(key, version, _lists(selection, hierarchy), request.budget)
    except CladeError:  # of arguments or budgets; the field itself meets it again
        return []
    return [] if read is None else [read]


def _planned(
    request: Request, owner: Record, version: TreeVersion, hierarchy: Hierarchy, selection: Selection
) -> list[Read]:
    """The reads that the planner decides on if the hints are true. Below a list that was read before, the nodes that it
    had then are the owners of further lists.
    """
    lists, pages, budget = list[ListRequest](), request.state.pages, request.budget
    most = min(MAX_HINTED, request.reads.requests_left / HINTED_SHARE)
    ahead = [(owner, relation) for relation in selection.on(hierarchy.name, owner.level)]
    for owner, relation in ahead:  # which grows
        if relation.kind not in _LISTS:
            continue
        requested, whole = list_request(owner, relation), list_request(owner, relation.whole)
        results = requested.result_keys if relation.takes_whole_list else []
        entries = [pages.cache.peek(key) for key in (whole.cache_key, *results)]
        are_cached = [entry and request.state.validators.is_latest(owner.pk, entry[1]) for entry in entries]
        if are_cached[0] or (results and all(are_cached[1:])):
            continue  # it is cached, if nothing was written
        if _is_known(relation, owner):
            lists.append(whole)
        page = entries[0][0] if entries[0] and not relation.takes_whole_list else None
        if isinstance(page, Page) and len(ahead) + len(page.records) <= most:
            on = relation.selection.on
            ahead += [(node, below) for node in page.records for below in on(hierarchy.name, node.level)]
    if not lists:
        return []
    for compared in (False, True):
        sizes = [one.min_size({owner.pk: version}) for one in lists if one.relation.arguments.compared is compared]
        if sum(sizes) > budget.left(compared=compared):
            return []
    planner = Planner(RecordsRead(), {owner.pk: version}, hierarchy, budget)
    planner.add(lists)
    for group in planner.groups:
        planner.plan(group)
    request.scheduler.expect(planner.max_nodes)
    return list(planner.reads)


def _is_known(relation: Relation, owner: Record) -> bool:
    """Whether a relation is a list whose range is known, and that is read by it: cursors are bound to the id of the
    owner.
    """
    is_listed = relation.kind in _LISTS and relation.is_cacheable
    return is_listed and (bool(owner.id) or not relation.whole.arguments.is_paged)


def _by_path(key: Key, version: TreeVersion | None, relations: Sequence[Relation], budget: Budget) -> Read | None:
    """The read of the longest of these lists whose range follows from the path."""
    owner = _unknown(key)
    for relation in sorted(relations, key=lambda one: (one.arguments.size is not None, -(one.arguments.size or 0))):
        requested, arguments = list_request(owner, relation), relation.arguments
        if not _is_known(relation, owner) or not relation.nodes or arguments.size == 0:
            continue
        left = budget.left(compared=arguments.compared)
        if version is not None and arguments.size is None and _most(requested, version) > left:
            continue
        span = _range_of(requested, version)
        if span is not None:
            return Read(span, min(arguments.limit or left + 2, left + 2), arguments.descending)
    return None


def _range_of(requested: ListRequest, version: TreeVersion | None) -> KeyRange | None:
    """The one range that holds the list and nothing else; None if that is not known."""
    levels = requested.relation.arguments.levels
    if len(levels) > 1:
        return None
    if isinstance(requested, ChildrenRequest) or requested.is_whole_subtree:
        spans = requested.key_ranges
    elif version is not None and levels and isinstance(requested, DescendantsRequest):
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
    by_level = [
        [relation.whole for relation in selection.on(hierarchy.name, level) if relation.is_cacheable]
        for level in hierarchy.levels
    ]
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
