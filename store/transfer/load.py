"""Import of a plan: tree by tree, in transactions, so that it can be stopped anywhere and continued.

For each tree its version is read, then its records, then the differences are written. Each transaction requires the
version that the one before left, so any other write to the tree makes it fail; the tree is then read again.
An import waits for running moves of a tree, since they hide parts of it. Nodes that are at another path than in the
file are moved before, or not at all (see `moves`).

Former versions of nodes are imported before, one after another. Each becomes a revision, so that they are the node's
history: revision n is the nth version that differs from the one before. They are imported only where the node has no
such revision yet; so the same import again adds none. Nodes whose items were deleted follow at the end.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast
from uuid import uuid4

from store.concurrency import RetryPolicy, in_chunks, task_group
from store.engine import ReadUsage, Store
from store.errors import Conflict, NotEmpty, NotFound
from store.kinds.conditional import conditional_changes
from store.kinds.marker import Marker
from store.kinds.registry import is_asked
from store.kinds.unique import UniqueKind
from store.metadata.history import Tombstone, current_key
from store.metadata.moves import new_move_id
from store.metadata.tree_version import Event, TreeVersion, log_item, root_log_key
from store.model.decoding import decoded
from store.model.keys import Key, ancestor_keys, depth_of, id_key, parent_sort_key, path_of, siblings, subtree
from store.model.ranks import is_manual, ordered_ranks, rank_after
from store.model.records import Change, Item, Record, derived_id
from store.reading import PAGE_ITEMS, Pages, read_marker, stored_items, tree_version, wait_for_moves
from store.transfer.batches import Batch, Batches, Creation, Pruned
from store.transfer.diff import TreeDiff, bare_id
from store.transfer.rows import ImportPlan, Rejection
from store.transfer.staging import Node, Tree, path_text
from store.transfer.unique import Late, UniqueValues, check_tree
from store.writing.derived import MAX_LOGGED_RANKS
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer

# Of a remote table, since the transactions of one tree follow one another; an embedded one never waits.
TREES_AT_ONCE = 8
RETRIES = RetryPolicy(0.02, 0.25, attempts=20)  # of writing one tree while others write to it, too
EXAMPLES = 5  # paths of each kind in the result
MOVE_ADVICE = "use --moves to move it."
OTHER_KEYS_ADVICE = (
    "the file has the ids of stored nodes under other keys, as a translation has. --names-only LANGUAGE, such as "
    "--names-only de, adds its names in that language."
)
KEY_READS = 4  # nodes that are read with their range for what one costs that is read by its key
MOST = 0.8  # of the ids of a file: a translation may leave some keys as they are


@dataclass
class LoadResult:
    """The result of an import or its dry run: nodes by level, some of their paths, and the rejected rows."""

    added: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)  # tops of subtrees, without what came along
    parents: Counter[str] = field(default_factory=Counter)  # of those added: the ones that the file only names in paths
    prunable: int = 0  # nodes that --prune may remove: those below nodes of the file that it understands
    unchanged: int = 0
    kept: int = 0  # nodes that were to be deleted, but have children
    commits: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    examples: dict[Event, list[str]] = field(default_factory=dict)

    @property
    def written(self) -> int:
        return self.added.total() + self.changed.total() + self.removed.total() + self.moved.total()

    def note(self, event: Event, level: str, *places: Key) -> None:
        """Count a node, and add its path to the examples; `places` is its key, of a moved node the old and the new."""
        self.counts(event)[level] += 1
        examples = self.examples.setdefault(event, [])
        if len(examples) < EXAMPLES:
            examples.append(" -> ".join([path_text(*key) for key in places]))

    def counts(self, event: Event) -> Counter[str]:
        """The numbers of nodes by level that an event happened to."""
        kinds = {Event.CREATED: self.added, Event.UPDATED: self.changed, Event.DELETED: self.removed}
        return kinds.get(event, self.moved)


async def load(
    store: Store, plan: ImportPlan, result: LoadResult, *, prune: bool = False, dry_run: bool = False,
    on_nodes: Callable[[int], None] = lambda nodes: None,
) -> None:  # fmt: skip
    """Make the table as the plan has it, and add to `result` what is done.

    With `prune`, nodes below those of the file that the file does not have are removed, unless there are rejected rows
    that do not say which nodes they describe. Nodes of `plan.deleted` are deleted in a dry run, too, which then has a
    copy of the table. `on_nodes` is called with each number of nodes of the file that are done.
    The trees are taken out of the plan, for their memory. Those with rows that are put off until others have given
    their unique values up are imported again, as long as that writes anything. Raises Conflict where other writes to a
    tree do not stop.
    """
    result.rejections += plan.rejections
    running = _Import(store, plan, result, prune and not plan.unclear, dry_run, on_nodes)
    if plan.order:
        await running.order_roots()
    order = sorted(plan.trees, key=lambda root: -plan.trees[root].size)
    while True:
        written, roots = result.written, iter(order)
        async with task_group() as group:
            for _ in range(TREES_AT_ONCE if store.calls is not None else 1):
                group.create_task(running.trees(roots))
        running.is_first, order = False, [*reversed(plan.trees)]
        await _delete_nodes(store, plan, result)
        if not order or result.written == written:
            break
    await running.reject_late()
    result.rejections[:] = dict.fromkeys(result.rejections)  # each pass finds them
    if sum(one.has_other_key for one in result.rejections) >= max(2, MOST * len(plan.ids)):
        found = [(one, one.reason.replace(MOVE_ADVICE, OTHER_KEYS_ADVICE)) for one in result.rejections]
        result.rejections = [one._replace(reason=reason) for one, reason in found]
    result.rejections.sort()


async def count_pruned(store: Store, plan: ImportPlan, result: LoadResult, on_nodes: Callable[[int], None]) -> None:
    """Count in `result` the nodes that pruning would remove (`removed`), and those that it may remove (`prunable`)."""
    running = _Import(store, plan, result, True, True, on_nodes)
    for tree in plan.trees.values():
        if plan.unclear or not tree.size:
            continue
        was_packed = bool(tree.packed)
        diff = await running.compared(tree, await wait_for_moves(store, tree.pk, running.reads))
        result.removed.update([record.level for record in diff.removed])
        result.prunable += diff.prunable
        on_nodes(tree.size)
        if was_packed:
            tree.pack()


def prepare(plan: ImportPlan, *, prune: bool) -> None:
    """Prepare a plan that has all its rows: check its ids, arrange its versions, and leave out what it has twice."""
    plan.check_ids()
    _arrange_versions(plan)
    _leave_wanted_out(plan, prune=prune)


def _arrange_versions(plan: ImportPlan) -> None:
    """Give the nodes of the former versions their revisions, and take into the plan what is rejected of them.

    The newest version of a node is its current one where the table has no current one. Attributes that a version lacks
    and another has are removed by it. Versions that equal the one before are left out.
    """
    versions = [version for _, version in sorted(plan.versions.items())]
    found: dict[Key, list[ImportPlan]] = {}
    for version in versions:
        _leave_rejected_out(plan, version)
    for version in versions:
        plan.rejections += version.rejections
        plan.rejected_ids = version.rejected_ids | plan.rejected_ids
        plan.unclear += version.unclear
        version.rejections = []
        for tree in version.trees.values():
            if tree.rejected:
                present = plan.trees.setdefault(tree.pk, Tree(tree.pk))
                present.rejected = tree.rejected | present.rejected
            for node in tree.nodes.values():
                found.setdefault(node.key, []).append(version)
    for version in versions:
        version.ids, version.rejected_ids = plan.ids, plan.rejected_ids
    for key, own in found.items():
        _arrange(plan, key, own)


def _leave_rejected_out(plan: ImportPlan, version: ImportPlan) -> None:
    """Reject the former versions of nodes whose present row is rejected: they would be present ones."""
    for tree in version.trees.values():
        present = plan.trees.get(tree.pk) or Tree(tree.pk)
        for node in list(tree.nodes.values()):
            row = present.rejected.get(node.sk)
            if row and node.sk not in present.nodes and (node.name is not None or node.values):
                del tree.nodes[node.sk]
                tree.rejected.setdefault(node.sk, node.number)
                reason = f"The version of {node} is not imported, since row {row}, its present one, was rejected."
                version.rejections.append(Rejection(node.number, reason))


def _arrange(plan: ImportPlan, key: Key, versions: list[ImportPlan]) -> None:
    """Arrange the versions of one node."""
    present = plan.trees.setdefault(key.pk, Tree(key.pk)).nodes
    if key.sk not in present:
        present[key.sk] = versions.pop().trees[key.pk].nodes.pop(key.sk)
        plan.nodes += 1
    current = present[key.sk]
    former = [version.trees[key.pk].nodes[key.sk] for version in versions]
    is_bare = all(node.name is None and not node.values for node in former)
    names = dict.fromkeys(name for node in (*former, current) for name in node.values)
    for node in (*former, current):
        node.values = {**dict.fromkeys(names), **node.values}
        node.id = node.id or current.id
    revision, earlier = 0, None
    for version, node in zip(versions, former, strict=True):
        content = (node.name, node.values)
        if content == earlier:
            _empty(version, key)
            continue
        if is_bare:  # only an ancestor of versions: with its present content it is created once
            version.trees[key.pk].nodes[key.sk] = current
        revision, earlier = revision + 1, content
        version.revisions[key] = revision


async def load_version(store: Store, version: ImportPlan, result: LoadResult) -> None:
    """Load former versions of nodes, without those whose revision, or a later one, is in the table."""
    async for key, item in stored_items(store, version.revisions, ReadUsage()):
        if item is not None and Record.of(item).revision >= version.revisions[key]:
            _empty(version, key)
    unchanged = result.unchanged
    await load(store, version, result)
    result.unchanged = unchanged  # counts present nodes


def _empty(version: ImportPlan, key: Key) -> None:
    """Leave nothing of a node but its level and id, since nothing is known below one that has others."""
    node = version.trees[key.pk].nodes[key.sk]
    version.trees[key.pk].nodes[key.sk] = Node(*key, node.level, None, node.id, node.number)


def _leave_wanted_out(plan: ImportPlan, *, prune: bool) -> None:
    """Take those deletions out of a plan whose node it has, too, such as the parent of a new one, or a rejected row.

    With `prune` also those in trees with other rows, which are pruned, and all where rejected rows keep nodes.
    """
    for key in list(plan.deleted):
        tree = plan.trees.get(key.pk) or Tree(key.pk)
        is_wanted = (prune and tree.size > 0) or key.sk in tree.nodes or key.sk in tree.rejected
        if is_wanted or (prune and plan.unclear):
            del plan.deleted[key]


async def _delete_nodes(store: Store, plan: ImportPlan, result: LoadResult) -> None:
    """Delete the nodes of `plan.deleted`, children first, and count them in `result`; absent ones are left out.

    They are those of an incremental export, or of items that are deleted but there. One whose id the file has elsewhere
    stays, and its row is rejected.
    """
    writer, reads = Writer(store), ReadUsage()
    for key in sorted(plan.deleted, reverse=True):
        number = plan.deleted.pop(key)
        (item,) = await store.get([key], reads, strong=True)
        if item is None:
            continue
        record = Record.of(item)
        if row := plan.ids.get(bare_id(record)) or plan.rejected_ids.get(bare_id(record)):
            reason = f"{path_text(*key)} is not removed, since row {row} has its id {bare_id(record)} at another path."
            result.rejections.append(Rejection(number, reason))
            continue
        await wait_for_moves(store, key.pk, reads)
        try:
            await writer.write(Delete(plan.hierarchy, record.path, Policy.REFUSE), reads)
            result.note(Event.DELETED, record.level, key)
        except NotEmpty:
            result.kept += 1
        except NotFound:
            continue


@dataclass
class _Import:
    """A running import; its trees share what they have read of the roots."""

    store: Store
    plan: ImportPlan
    result: LoadResult
    prune: bool
    dry_run: bool
    on_nodes: Callable[[int], None]
    reads: ReadUsage = field(default_factory=ReadUsage)
    roots: TreeVersion | None = None  # of the hierarchy, as last read or written
    roots_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    marker_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_first: bool = True  # pass over the trees
    _late: dict[str, Late] = field(default_factory=dict)  # what the pass before has put off, by partition
    _noted: set[tuple[str, str]] = field(default_factory=set)  # nodes of trees that a dry run passes over again
    _root_ranks: dict[str, str] | None = None  # of reordered roots, each with its tree's partition
    _written: Counter[str] = field(default_factory=Counter)  # nodes of the file by partition, in all attempts

    def __post_init__(self) -> None:
        self._values = UniqueValues(self.store, self.dry_run)

    async def trees(self, roots: Iterator[str]) -> None:
        """Import one tree after another."""
        for root in roots:
            tree = self.plan.trees.pop(root)
            if tree.size or (tree.rejected and self.plan.deleted):
                await self._import_tree(tree)
            if root in self._late:
                tree.pack()
                self.plan.trees[root] = tree
            else:
                self.on_nodes(max(0, tree.size - self._written[root]))

    async def reject_late(self) -> None:
        """Reject the rows that are still put off."""
        for root, late in self._late.items():
            tree, are_versions = self.plan.trees.pop(root), bool(self.plan.revisions)
            found = self._values.rejections(self.plan.hierarchy, tree, late, are_versions=are_versions)
            self.result.rejections += [one async for one in found]
            self.on_nodes(max(0, tree.size - self._written[root]))

    async def _import_tree(self, tree: Tree) -> None:
        pruned = Pruned(new_move_id(self.store.now()))
        for attempt, delay in enumerate(RETRIES.delays()):
            await asyncio.sleep(delay)
            version = await wait_for_moves(self.store, tree.pk, self.reads)
            # The ids in a new tree are seldom taken, so at first only the transactions require it, without a read.
            look_for_ids = version.number > 0 or self.dry_run or attempt > 0
            with contextlib.suppress(Conflict):
                return await self._attempt(tree, version, pruned, look_for_ids=look_for_ids)
        root = path_text(tree.pk, "#")
        raise Conflict(f"Other writes to {root} prevented the import; the same command continues it.")

    async def _attempt(self, tree: Tree, version: TreeVersion, pruned: Pruned, *, look_for_ids: bool) -> None:
        """Read and compare a tree, and write the differences; what is `pruned` grows with each commit."""
        diff = await self.compared(tree, version)
        creations = await self._creations(diff, look_for_ids=look_for_ids)
        unchanged = max(0, diff.unchanged - self._written[tree.pk])
        levels = {one.node.level for one in creations} | {new.level for _, new in diff.updated}
        marker = await self._marker(version, levels)
        await check_tree(self.store, self.plan.hierarchy, marker, tree)
        recipes = marker.recipes if marker else {}
        batches, late = Batches(recipes, diff, version, self.store, pruned), Late()
        if (recipe := recipes.get(UniqueKind.name)) and recipe.has_items:
            creations, late = await self._values.settle(recipe, diff, creations, batches)
        wanted: set[str] = set()  # parents with a child: the others have none, since its row was rejected or put off
        for creation in reversed(creations):
            if creation.node.sk not in diff.implied or creation.node.sk in wanted:
                wanted.add(parent_sort_key(creation.node.sk) if len(creation.node.sk) > 1 else "")
        creations = [one for one in creations if one.node.sk not in diff.implied or one.node.sk in wanted]
        for batch in batches.of(creations):
            if not self.dry_run:
                await self._read_for(batch)
                version = await self._commit(batch, version, marker)
            entries = [one for one in batch.entries if (tree.pk, one.sk) not in self._noted]
            self._noted.update([(tree.pk, one.sk) for one in entries if late and self.dry_run])
            for entry in entries:
                self.result.note(entry.event, entry.level, Key(tree.pk, entry.sk))
                if entry.event is Event.DELETED:
                    pruned.remove(entry.sk)
            implied = [one.level for one in entries if one.event is Event.CREATED and one.sk in diff.implied]
            self.result.parents.update(implied)
            written = sum(entry.event is not Event.DELETED for entry in entries)
            self._written[tree.pk] += written
            self.on_nodes(written)
        if self.is_first:
            self.result.unchanged += unchanged
            self.result.prunable += diff.prunable if self.prune else 0
        self.result.rejections += diff.rejections
        for key in diff.undeleted:
            self.plan.deleted.pop(key, None)
        self._late.pop(tree.pk, None)
        if late:
            self._late[tree.pk] = late

    async def compared(self, tree: Tree, version: TreeVersion) -> TreeDiff:
        """The differences of a tree, which is read."""
        diff = TreeDiff(self.plan, tree, self.prune and self.is_first)
        size = sum(version.shape.values())
        are_few = not self.plan.creates and KEY_READS * tree.size < size  # whose rows are for the stored nodes of ids
        nodes = [node.key for node in tree.nodes.values()] if are_few else []
        keys = sorted({key for node in nodes for key in (node, *ancestor_keys(node))})
        if keys and KEY_READS * len(keys) < size:
            diff.add([item async for _, item in stored_items(self.store, keys, self.reads) if item is not None])
        else:
            async for items in Pages(self.store, subtree(tree.pk, "#"), self.reads):
                diff.add(items)
        diff.finish()
        return diff

    async def _marker(self, version: TreeVersion, levels: set[str]) -> Marker | None:
        """The marker for writing search items of these levels to a tree whose version was read before, None where the
        hierarchy has none. It names them before there are such nodes; the first root of all is written with it.
        """
        hierarchy = self.plan.hierarchy
        async with self.marker_lock:
            marker = await read_marker(self.store, hierarchy.name)
            if marker is None and not version.number and is_asked(hierarchy):
                if not (await tree_version(self.store, hierarchy.name, self.reads)).number:
                    all_levels = sorted({*hierarchy.levels, *self.plan.undefined.levels})
                    return Marker.first(hierarchy).naming(hierarchy, all_levels)
                marker = await read_marker(self.store, hierarchy.name)  # of a root that was written meanwhile
            named = marker and marker.naming(hierarchy, levels)
            if named is not None and named is not marker and not self.dry_run:
                await self.store.commit([named.put()])
            return named

    async def _creations(self, diff: TreeDiff, *, look_for_ids: bool) -> list[Creation]:
        """The nodes to be created, with their ids; those whose id belongs to another node are rejected.

        Unless it is to `look_for_ids` in the table, no node has these ids yet.
        """
        plan = self.plan
        creations: list[Creation] = []
        rejected: dict[str, int] = {}  # the rows of rejected nodes by sort key
        async for page in in_chunks(diff.created, PAGE_ITEMS):
            bare_ids = (plan.id_of(node) or derived_id(plan.hierarchy.name, node.path) for node in page)
            ids = [f"{plan.hierarchy.name}:{bare_id}" for bare_id in bare_ids]
            items: Sequence[Item | None] = [None] * len(ids)
            if look_for_ids:
                items = await self.store.get([id_key(one) for one in ids], self.reads, strong=True)
            for node, node_id, item in zip(page, ids, items, strict=True):
                if node.sk == "#" and node.rank is not None and not plan.order:
                    await self._rank_root(node)
                found = Creation(node, node_id) if item is None else self._creation(node, node_id, item)
                parent = parent_sort_key(node.sk) if rejected and node.sk != "#" else ""
                if isinstance(found, Creation) and parent in rejected:
                    reason = f"The parent of {node} is missing, since row {rejected[parent]} was rejected."
                    found = Rejection(node.number, reason)
                if isinstance(found, Creation):
                    creations.append(found)
                else:
                    diff.rejections.append(found)
                    rejected[node.sk] = node.number
        return creations

    def _creation(self, node: Node, node_id: str, item: Item) -> Creation | Rejection:
        """The creation of a node by the record of its id, or its rejection where that is of another node.

        A given id of a deleted node continues with its revisions; a default id that is or was another node's is
        replaced by a random one.
        """
        place = current_key(item)
        if place == node.key:  # left by a deletion without Clade
            return Creation(node, node_id, when={"tree": node.pk, "key": node.sk})
        if node.id is None:
            return Creation(node, f"{self.plan.hierarchy.name}:{uuid4().hex}")
        if place is None:
            gone = decoded(item, Tombstone)
            return Creation(node, node_id, gone.revision + 1, {"deleted": gone.deleted, "parent": item.get("parent")})
        reason = f"The id {node.id} belongs to {path_text(*place)}"
        if (unmoved := self.plan.unmoved.get(node.id)) is None:
            has_other_key = depth_of(place.sk) == depth_of(node.sk) and path_of(*place)[-1] != node.path[-1]
            return Rejection(node.number, f"{reason}; {MOVE_ADVICE}", moved=True, has_other_key=has_other_key)
        return Rejection(node.number, f"{reason}, and cannot be moved here: {unmoved}", moved=True)

    async def order_roots(self) -> None:
        """Give the roots of the file ranks in their order."""
        roots = await self.store.nodes(siblings(self.plan.hierarchy.name), self.reads)
        stored = {(root.level, root.pk): root.rank for root in roots}
        nodes = sorted(self.plan.roots.values(), key=self.plan.place)
        for level in dict.fromkeys(node.level for node in nodes):
            own = [node for node in nodes if node.level == level]
            ranks = ordered_ranks(level, [stored.get((level, node.pk)) for node in own], stored.values())
            self.plan.root_ranks |= {node.pk: rank for node, rank in zip(own, ranks, strict=True)}

    async def _rank_root(self, node: Node) -> None:
        """Set the rank of a root to be created: the next free one where another root has it."""
        async with self.roots_lock:
            name = self.plan.hierarchy.name
            if self._root_ranks is None:
                roots = await self.store.nodes(siblings(name), self.reads)
                self._root_ranks = {root.rank: root.pk for root in roots if is_manual(root.rank)}
            taken = [rank for rank, pk in self._root_ranks.items() if pk != node.pk]
            node.rank = rank_after(cast(str, node.rank), taken)
            if node.rank is not None:
                self._root_ranks[node.rank] = node.pk

    async def _read_for(self, batch: Batch) -> None:
        """Add the changes of items of kinds with conditions. Raises Conflict where other nodes have come to have unique
        values, which were read before, and the fault of another kind.
        """
        if not batch.waiting:
            return
        keys = [key for one in batch.waiting for key in (one.before if one.kind.name == UniqueKind.name else one.keys)]
        found = {key: self._values.own.get(key) for key in batch.waiting_keys}
        found |= dict([one async for one in stored_items(self.store, keys, self.reads)])
        changes, taken = conditional_changes(batch.waiting, found)
        for one in taken:
            fault = one.waiting.kind.taken(self.plan.hierarchy, one.waiting.record, one.item, None)
            raise Conflict.over() if one.waiting.kind.name == UniqueKind.name else fault
        batch.changes += changes.values()

    async def _commit(self, batch: Batch, version: TreeVersion, marker: Marker | None) -> TreeVersion:
        """Commit a transaction; those with roots follow one another, with the version and log of the roots.

        Returns the version of the tree after it.
        """
        raised = version.incremented(batch.shape, now=batch.now)
        ranks = batch.ranks if len(batch.ranks) <= MAX_LOGGED_RANKS else {}
        changes = [*batch.changes, raised, log_item(version, batch.entries, batch.at, batch.now, ranks)]
        if not batch.roots and "#" not in batch.ranks:
            await self.store.commit(changes)
        else:
            key = root_log_key(version.partition)
            of_root = [one for one in batch.entries if one.sk == "#" and one.event is not Event.UPDATED]
            entries = [one._replace(sk=key) for one in of_root]
            own = {key: batch.ranks["#"]} if "#" in batch.ranks else {}
            async with self.roots_lock:
                roots = self.roots or await tree_version(self.store, self.plan.hierarchy.name, self.reads)
                self.roots = None
                above = roots.incremented(batch.roots, now=batch.now)
                first = [] if marker is None or marker.number else await self._first(roots, marker)
                await self.store.commit([*changes, above, log_item(roots, entries, batch.at, batch.now, own), *first])
                self.roots = TreeVersion.of(roots.partition, above.item)
        self.result.commits += 1
        await asyncio.sleep(0)  # SQLite never waits, so others and Ctrl-C are served here
        return TreeVersion.of(version.partition, raised.item)

    async def _first(self, roots: TreeVersion, marker: Marker) -> list[Change]:
        """The change that writes the first marker with the first root; raises Conflict where it is another one now."""
        if not roots.number:
            return [marker.put()]
        written = await read_marker(self.store, self.plan.hierarchy.name)
        if written is None or written.recipes != marker.recipes:
            raise Conflict.over()
        return []
