"""Unique values of an import: which changes of a tree can be written, and in which order.

A value that nobody has can be taken. One that an update of the same tree gives up is taken after it, in a circle in the
same transaction. Where a removal or a node of another tree may give it up, or a new node is to have it, the change is
put off to another pass over the trees. Rows are rejected that wait when a pass changes nothing more.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from store.concurrency import in_chunks
from store.engine import ReadUsage, Store
from store.kinds.conditional import check_made
from store.kinds.marker import Marker, lacking
from store.kinds.recipe import Recipe
from store.kinds.registry import KINDS
from store.kinds.unique import Holder, UniqueKind, UniqueValue, unique_values
from store.metadata.history import current_key
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, id_key, parent_sort_key
from store.model.records import Item, Record
from store.reading import PAGE_ITEMS, read_marker, stored_items, tree_version
from store.transfer.batches import Batches, Creation
from store.transfer.diff import TreeDiff, Update
from store.transfer.rows import ImportPlan, Rejection
from store.transfer.staging import Tree, path_text


class Wanted(NamedTuple):
    """A value that a node needs, which may be new, and another one has, whose full id is the `holder`.

    `circle` is the number of updates of a circle that does not fit into a transaction.
    """

    sk: str
    key: Key
    value: UniqueValue
    holder: str
    is_new: bool
    circle: int = 0


Late = dict[str, Wanted]
"""What is put off, by sort keys: what the node itself needs, or a new one above it."""


async def check_plan(store: Store, plan: ImportPlan) -> None:
    """Raise NotIndexed where a plan has other unique values than are stored before all nodes have the items of theirs,
    of which nothing is read where it has none.
    """
    plans, name = [plan, *plan.versions.values()], plan.hierarchy.name
    if any(one.values for one in plans) and (await tree_version(store, name, ReadUsage())).number:
        marker = await read_marker(store, name)
        for tree in [tree for one in plans for tree in one.trees.values()]:
            await check_tree(store, plan.hierarchy, marker, tree)


async def check_tree(store: Store, hierarchy: Hierarchy, marker: Marker | None, tree: Tree) -> None:
    """Raise NotIndexed likewise for one tree."""
    if lacking(hierarchy, marker, KINDS[UniqueKind.name]):
        async for key, item in stored_items(store, [node.key for node in tree.nodes.values()], ReadUsage()):
            node = tree.nodes[key.sk]
            new = Record.new(hierarchy.name, node.path, node.level, "", "", "", node.values, above=[])
            check_made(hierarchy, marker, None if item is None else Record.of(item), new)
        tree.pack()


@dataclass
class UniqueValues:
    """The values of an import. `own` are items that belong to their nodes already.

    A dry run writes nothing, so it notes the values that its changes would give up, each of which one node of the file
    can want. It does not know what other writers do meanwhile.
    """

    store: Store
    is_dry: bool
    own: dict[Key, Item] = field(default_factory=dict)
    _given_up: set[Key] = field(default_factory=set)
    _reads: ReadUsage = field(default_factory=ReadUsage)

    async def settle(
        self, recipe: Recipe, diff: TreeDiff, creations: Sequence[Creation], batches: Batches
    ) -> tuple[list[Creation], Late]:
        """The creations that can be written now, and what is put off. The updates of the difference become those that
        can be written, in their order.
        """
        wanted, found, changed = list[Wanted](), list[Creation](), list[Creation | Update]([*creations, *diff.updated])
        async for page in in_chunks(changed, PAGE_ITEMS):
            needs = [need for one in page for need in _needs(recipe, one)]
            items = await self.store.get([one.key for one in needs], self._reads, strong=True)
            for one, item in zip(needs, items, strict=True):
                self.own.pop(one.key, None)
                if item is None or one.key in self._given_up:
                    continue
                if (holder := Holder.of(item).id) == one.holder:
                    self.own[one.key] = item
                else:
                    wanted.append(one._replace(holder=holder))
        late = _ordered(recipe, diff, wanted, batches) if wanted else {}
        for creation in creations:
            sk = creation.node.sk
            above = late.get(parent_sort_key(sk)) if sk != "#" else None
            if above and above.is_new:
                late.setdefault(sk, above)
            if sk not in late:
                found.append(creation)
        if self.is_dry:
            changes = [*diff.updated, *[(record, None) for record in diff.removed]]
            self._given_up.update([key for old, record in changes for key in _gained(recipe, record, old)])
        return found, late

    async def rejections(
        self, hierarchy: Hierarchy, tree: Tree, late: Late, *, are_versions: bool
    ) -> AsyncIterator[Rejection]:
        """The rejections of what cannot be put off any more."""
        keys = [id_key(one.holder) for one in late.values()]
        places = {key: current_key(item) async for key, item in stored_items(self.store, keys, self._reads)}
        for sk, why in [(sk, why) for sk, why in late.items() if sk in tree.nodes]:
            node, place, name = tree.nodes[sk], places[id_key(why.holder)], why.value.names[0]
            reason = f"{why.value.text} is that of {path_text(*place) if place else 'another node'}"
            if why.sk != sk:
                reason = f"The parent of {node} is missing, since row {tree.nodes[why.sk].number} was rejected."
            elif are_versions:
                reason = f"The version of {node} is not imported, since {reason}."
            elif why.circle:
                reason += (
                    f", and {why.circle:,} rows pass their values on in a circle, which is more than one transaction "
                    f"holds; import the file with an empty {name} in one of them first, then as it is."
                )
            else:
                reason += f", not of {node}; import a file first that gives that node another {name} or none."
                if why.is_new:
                    bare = why.holder.partition(":")[2]
                    # The class may no longer ask for what is still unique, and --by takes only what it asks for.
                    by = f"--by {name} changes it, and " if name in hierarchy.unique else ""
                    reason += f" If both are one, {by}--moves with its id {bare} moves it."
            yield Rejection(node.number, reason)


def _needs(recipe: Recipe, change: Creation | Update) -> list[Wanted]:
    """The values that a node needs for a change, of each of which it is the holder itself."""
    if isinstance(change, Creation):
        node, values = change.node, unique_values(recipe, change.node.level, change.node.values)
        return [Wanted(node.sk, key, value, change.id, True) for key, value in values.items()]
    old, new = change
    return [Wanted(new.sk, key, value, new.id, False) for key, value in _gained(recipe, old, new).items()]


def _gained(recipe: Recipe, old: Record | None, new: Record | None) -> dict[Key, UniqueValue]:
    """The values that a node has after a change and not before it."""
    before, after = [unique_values(recipe, one.level, one.attributes) if one else {} for one in (old, new)]
    return {key: value for key, value in after.items() if key not in before}


def _ordered(recipe: Recipe, diff: TreeDiff, wanted: Sequence[Wanted], batches: Batches) -> Late:
    """Have each update come after those that give up what it wants; returns what waits for others."""
    updates = {new.sk: (old, new) for old, new in diff.updated}
    givers = {(key, old.id): old.sk for old, new in diff.updated for key in _gained(recipe, new, old)}
    late, order, after = Late(), list[str](), dict[str, dict[str, Wanted]]()
    for one in wanted:
        giver = None if one.is_new else givers.get((one.key, one.holder))
        if giver is None:
            late.setdefault(one.sk, one)
        else:
            after.setdefault(one.sk, {})[giver] = one
    for group in components(after):
        waiting = {sk: next(iter(after[sk].values())) for sk in group if sk in after}
        if not late.keys().isdisjoint([*group, *[giver for sk in waiting for giver in after[sk]]]):
            late = waiting | late
        elif len(group) > 1 and not batches.fits([updates[sk] for sk in group]):
            late |= {sk: one._replace(circle=len(group)) for sk, one in waiting.items()}
        else:
            order += group
            diff.circles.update(group[:1] if len(group) > 1 else ())
    places = {sk: place for place, sk in enumerate(order)}
    diff.updated = sorted([updates[sk] for sk in updates if sk not in late], key=lambda one: places.get(one[1].sk, -1))
    return late


def components(after: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """The strongly connected components of a graph, each after all those that it comes after (Kosaraju's algorithm)."""
    before = dict[str, list[str]]()
    for node, others in after.items():
        for other in others:
            before.setdefault(other, []).append(node)
    seen, found = set[str](), set[str]()
    order = [node for start in {**before, **after} for node in _reached(before, start, seen)]
    for node in reversed(order):
        if group := _reached(after, node, found):
            yield group


def _reached(graph: Mapping[str, Iterable[str]], start: str, seen: set[str]) -> list[str]:
    """The nodes that are reached from one, without those that are `seen` already; each after those reached from it."""
    found, stack = list[str](), [(start, False)]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack += [(node, True), *[(other, False) for other in graph.get(node, ())]]
    return found
