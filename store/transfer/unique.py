"""Unique values of an import: which changes of a tree can be written, and in which order.

A value that nobody has can be taken. One that an update of the same tree gives up is taken after it, in a circle in the
same transaction. Where a removal or a node of another tree may give it up, or a new node is to have it, the change is
put off to another pass over the trees, and after the last one its row is rejected.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from store.reading import PAGE_ITEMS, stored_items
from store.transfer.batches import Creation
from store.transfer.diff import TreeDiff, Update
from store.transfer.rows import Rejection
from store.transfer.staging import Tree, path_text


class Wanted(NamedTuple):
    """A value that the node with the sort key needs, and another one has, whose full id is the `holder`."""

    sk: str
    key: Key
    value: UniqueValue
    holder: str


Changed = Creation | tuple[Record, Record | None]  # the latter of a node that is removed
PutOff = dict[str, Wanted | int]
"""Why nodes have to wait, by sort key: what they need, or the row of one above them that waits."""


def check_values_made(hierarchy: Hierarchy, marker: Marker | None, diff: TreeDiff) -> None:
    """Raise NotIndexed where changes of a tree have values of an attribute of which not all nodes have their items."""
    if lacking(hierarchy, marker, KINDS[UniqueKind.name]):
        for node in diff.created:
            new = Record.new(hierarchy.name, node.path, node.level, "", "", "", node.values, above=[])
            check_made(hierarchy, marker, None, new)
        for old, record in diff.updated:
            check_made(hierarchy, marker, old, record)


@dataclass
class UniqueValues:
    """The values of an import. `own` are items that belong to their nodes already.

    A dry run writes nothing, so it notes what values its changes would give up, and who would take them. It does not
    know what other writers do meanwhile.
    """

    store: Store
    is_dry: bool
    own: dict[Key, Item] = field(default_factory=dict)
    _given_up: dict[Key, str | None] = field(default_factory=dict)  # with the ids of their next nodes
    _reads: ReadUsage = field(default_factory=ReadUsage)

    async def settle(
        self, recipe: Recipe, diff: TreeDiff, creations: Sequence[Creation], fits: Callable[[Sequence[Update]], bool]
    ) -> tuple[Sequence[Creation], PutOff]:
        """The creations that can be written now, and what is put off. The updates of the difference become those that
        can be written, in their order; those of circles that do not fit into a transaction are rejected.
        """
        wanted, late, changed = list[Wanted](), PutOff(), list[Changed]([*creations, *diff.updated])
        async for page in in_chunks(changed, PAGE_ITEMS):
            needs = [(sk, full_id, *one) for sk, full_id, _, more in _changes(recipe, page) for one in more.items()]
            items = await self.store.get([key for _, _, key, _ in needs], self._reads, strong=True)
            for (sk, full_id, key, value), item in zip(needs, items, strict=True):
                holder = self._given_up.get(key, None if item is None else Holder.of(item).id)
                self.own.pop(key, None)
                if item is not None and holder == full_id:
                    self.own[key] = item
                elif holder is not None:
                    wanted.append(Wanted(sk, key, value, holder))
        if wanted:
            late = _ordered(recipe, diff, wanted, fits)
            creations = _without_late(creations, late)
        if self.is_dry:
            changed = [*creations, *diff.updated, *[(record, None) for record in diff.removed]]
            self._given_up |= {key: None for _, _, less, _ in _changes(recipe, changed) for key in less}
            for _, full_id, _, more in _changes(recipe, changed):
                self._given_up |= {key: full_id for key in more if key in self._given_up}
        return creations, late

    async def rejections(
        self, tree: Tree, late: PutOff, creations: Sequence[Creation], *, are_versions: bool
    ) -> list[Rejection]:
        """The rejections of what cannot be put off any more, of which some are `creations`."""
        created = {one.node.sk for one in creations}
        keys = {one.holder: id_key(one.holder) for one in late.values() if isinstance(one, Wanted)}
        items = dict([one async for one in stored_items(self.store, [*keys.values()], self._reads)])
        found: list[Rejection] = []
        for sk, why in late.items():
            if (node := tree.nodes.get(sk)) is None:
                continue
            if isinstance(why, int):
                reason = f"The parent of {node} is missing, since row {why} was rejected."
            else:
                place, name = current_key(items[keys[why.holder]]), why.value.names[0]
                reason = f"{why.value.text} is that of {path_text(*place) if place else 'another node'}"
                if are_versions:
                    reason = f"The version of {node} is not imported, since {reason}."
                else:
                    reason += f", not of {node}; import a file first that gives that node another {name} or none."
                    if sk in created:
                        bare = why.holder.partition(":")[2]
                        reason += f" If both are one, --by {name} changes it, and --moves with its id {bare} moves it."
            found.append(Rejection(node.number, reason))
        return found


def _changes(
    recipe: Recipe, changed: Iterable[Changed]
) -> Iterator[tuple[str, str, dict[Key, UniqueValue], dict[Key, UniqueValue]]]:
    """The sort key and the full id of each changed node, the values that it gives up, and those that it gets."""
    for one in changed:
        if isinstance(one, Creation):
            yield one.node.sk, one.id, {}, unique_values(recipe, one.node.level, one.node.values)
            continue
        old, new = one
        before = unique_values(recipe, old.level, old.attributes)
        after = unique_values(recipe, new.level, new.attributes) if new else {}
        if before != after:
            less = {key: value for key, value in before.items() if key not in after}
            yield old.sk, old.id, less, {key: value for key, value in after.items() if key not in before}


def _ordered(
    recipe: Recipe, diff: TreeDiff, wanted: Sequence[Wanted], fits: Callable[[Sequence[Update]], bool]
) -> PutOff:
    """Have each update come after those that give up what it wants; returns what waits for others."""
    holders, updates = {one.holder for one in wanted}, {new.sk: (old, new) for old, new in diff.updated}
    giving = [one for one in diff.updated if one[1].id in holders]
    givers = {(key, full_id): sk for sk, full_id, less, _ in _changes(recipe, giving) for key in less}
    late, rejected, order = PutOff(), set[str](), list[str]()
    after: dict[str, dict[str, Wanted]] = {}
    for one in wanted:
        if one.sk in updates and (giver := givers.get((one.key, one.holder))) is not None:
            after.setdefault(one.sk, {})[giver] = one
        else:
            late.setdefault(one.sk, one)
    for group in components(after):
        circle = [updates[sk] for sk in group]
        if any(sk in late or not late.keys().isdisjoint(after.get(sk, ())) for sk in group):
            late |= {sk: next(iter(after[sk].values())) for sk in group if sk not in late}
        elif len(group) > 1 and not fits(circle):
            rejected.update(group)
            late |= dict.fromkeys(group, 0)
            diff.rejections += [_too_large(diff.tree, sk, after[sk], len(group)) for sk in group]
        else:
            order += group
            if len(group) > 1:
                diff.circles[group[0]] = circle
    moved = {*order, *late}
    diff.updated = [one for one in diff.updated if one[1].sk not in moved] + [updates[sk] for sk in order]
    return {sk: why for sk, why in late.items() if sk not in rejected}


def _too_large(tree: Tree, sk: str, wants: Mapping[str, Wanted], size: int) -> Rejection:
    giver, one = next(iter(wants.items()))
    place, name = path_text(tree.pk, giver), one.value.names[0]
    reason = (
        f"{one.value.text} is that of {place}, and {size:,} rows pass their values on in a circle, which is more than "
        f"one transaction holds; import the file with an empty {name} in one of them first, then as it is."
    )
    return Rejection(tree.nodes[sk].number, reason)


def _without_late(creations: Sequence[Creation], late: PutOff) -> list[Creation]:
    """The creations without those that are put off, which those below them become, too."""
    rows, found = dict[str, int](), list[Creation]()
    for one in creations:
        sk = one.node.sk
        row = one.node.number if sk in late else rows.get(parent_sort_key(sk)) if sk != "#" else None
        if row is None:
            found.append(one)
        else:
            rows[sk] = row
            late.setdefault(sk, row)
    return found


def components(after: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """The strongly connected components of a graph, each after all those that it comes after (Tarjan's algorithm)."""
    numbers, lowest, path = dict[str, int](), dict[str, int](), list[str]()
    for start in after:
        stack = [] if start in numbers else [(start, iter(after[start]))]
        while stack:
            node, others = stack[-1]
            if node not in numbers:
                numbers[node] = lowest[node] = len(path)
                path.append(node)
            other = next(others, None)
            if other is None:
                stack.pop()
                if (low := lowest[node]) == numbers[node]:
                    yield path[low:]
                    for one in path[low:]:
                        del lowest[one]
                    del path[low:]
                else:
                    lowest[stack[-1][0]] = min(low, lowest[stack[-1][0]])
            elif other not in numbers:
                stack.append((other, iter(after.get(other, ()))))
            elif other in lowest:
                lowest[node] = min(lowest[node], numbers[other])
