"""Import of the nodes of a file: tree by tree, in transactions, so that it can be stopped anywhere and continued.

For each tree its version is read, then its records, then the differences are written in batches, each of which leaves
the tree consistent. Each requires the version that the one before left, so any other write to the tree makes it fail;
the tree is then read again. DynamoDB commits one batch after another. Into an SQLite file many are committed together,
also those of several trees, since ids and words are in no order: each page that some of them change is written once.
An import waits for background moves of a tree, since they hide parts of it. Nodes that are at another path than in the
file are moved before, or not at all (see `move_existing`)."""

import asyncio
import contextlib
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import cast
from uuid import uuid4

from msgspec.structs import replace

from store.concurrency import in_chunks
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadInput, Conflict
from store.kinds.kinds import Kinds
from store.kinds.node_kind import Located, NodeKinds
from store.metadata.change_log import Event, LogEntry, log_item, root_log_key
from store.metadata.history import current_key, tombstone
from store.metadata.tree_version import TreeVersion
from store.model.items import Change, Check, Delete, Item, Put, canonical_item, condition_holds
from store.model.keys import Key, ancestor_keys, id_key, parent_sort_key
from store.model.ranges import siblings, subtree
from store.model.ranks import is_manual, rank_after
from store.model.records import Record, derived_id
from store.reading.active_moves import tree_version, wait_for_moves
from store.reading.pages import PAGE_ITEMS, Pages
from store.retry import RetryPolicy
from store.transfer.batches import Batch, Creation, batches, new_record
from store.transfer.diff import TreeDiff, TreeMerge
from store.transfer.rows import ImportPlan, Node, Rejection, Tree, path_text

TREES_AT_ONCE = 8  # of a remote table, since the transactions of one tree follow one another
GROUP_BYTES = 48_000_000  # that are committed together, for up to a second in which other writers wait
KEPT_BYTES = 500  # of a node of the file, which is in memory until its tree is committed
RETRIES = RetryPolicy(0.02, 0.25, attempts=20)  # of writing one tree while others write to it, too
EXAMPLES = 5  # paths of each kind in the result


@dataclass
class LoadResult:
    """The result of an import or its dry run: nodes by level, some of their paths, and the rejected rows."""

    added: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)  # tops of subtrees, without what came along
    unchanged: int = 0
    commits: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    examples: dict[Event, list[str]] = field(default_factory=dict)

    @property
    def written(self) -> int:
        return self.added.total() + self.changed.total() + self.removed.total() + self.moved.total()

    def note(self, event: Event, level: str, *places: Key) -> None:
        """Count a node, and add its path to the examples; `places` is its key, of a moved node the old and the new."""
        self._counts(event)[level] += 1
        examples = self.examples.setdefault(event, [])
        if len(examples) < EXAMPLES:
            examples.append(" -> ".join([path_text(*key) for key in places]))

    def note_all(self, pk: str, entries: list[LogEntry]) -> None:
        """The same for the entries of a transaction on the tree at `pk`."""
        for (event, level), count in Counter([(entry.event, entry.level) for entry in entries]).items():
            self._counts(event)[level] += count
        for event in {entry.event for entry in entries}:
            examples = self.examples.setdefault(event, [])
            keys = (entry.sk for entry in entries if entry.event is event)
            examples += [path_text(pk, sk) for sk in islice(keys, EXAMPLES - len(examples))]

    def _counts(self, event: Event) -> Counter[str]:
        kinds = {Event.CREATED: self.added, Event.UPDATED: self.changed, Event.DELETED: self.removed}
        return kinds.get(event, self.moved)


async def load(
    store: Store,
    plan: ImportPlan,
    result: LoadResult,
    *,
    prune: bool = False,
    dry_run: bool = False,
    on_nodes: Callable[[int], None] = lambda nodes: None,
) -> None:
    """Make the table as the plan has it, and add to `result` what is done.

    With `prune`, nodes below those of the file that the file does not have are removed, unless there are rejected rows
    without a valid path. `on_nodes` is called with each number of nodes of the file that are done. The trees are taken
    out of the plan, for their memory. Raises Conflict where other writes to a tree do not stop.
    """
    result.rejections += plan.rejections
    running = _Import(store, plan, result, prune and not plan.pathless, dry_run, on_nodes)
    roots = iter(sorted(plan.trees, key=lambda root: -plan.trees[root].size))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(TREES_AT_ONCE if store.calls is not None else 1):
                group.create_task(running.trees(roots))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    result.rejections.sort()


@dataclass
class _Import:
    """The state of a running import that its trees share."""

    store: Store
    plan: ImportPlan
    result: LoadResult
    prune: bool
    dry_run: bool
    on_nodes: Callable[[int], None]
    reads: ReadUsage = field(default_factory=ReadUsage)
    roots: TreeVersion | None = None  # of the hierarchy, as last read or written
    roots_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _root_ranks: dict[str, str] | None = None  # of reordered roots, each with its tree's partition

    async def trees(self, roots: Iterator[str]) -> None:
        """Import one tree after another; where the store bounds no commit, many batches of them are one."""
        most = GROUP_BYTES if self.store.max_commit_changes is None else 0
        group, waiting = _Group(self.store, self.result, most), list[_TreeImport]()
        for root in roots:
            tree = self.plan.trees.pop(root)
            if tree.size or self.plan.rewrite:
                if waiting and waiting[0].is_complete:  # since a commit
                    waiting = [one for one in waiting if not one.is_complete]
                waiting.append(_TreeImport(self, tree))
                try:
                    version = await waiting[-1].wait_for_moves()
                except Conflict:
                    await self._commit(group, waiting[:-1])
                    raise
                with contextlib.suppress(Conflict):
                    await waiting[-1].attempt(group, version)
                    continue
                await self._retry(waiting)
                group, waiting = _Group(self.store, self.result, most), []
        await self._commit(group, waiting)

    async def _commit(self, group: "_Group", trees: Sequence["_TreeImport"]) -> None:
        with contextlib.suppress(Conflict):
            return await group.commit()
        await self._retry(trees)

    async def _retry(self, trees: Sequence["_TreeImport"]) -> None:
        """After a conflict, import each tree that is not complete by itself, batch by batch."""
        self.roots = None
        for tree in trees:
            if not tree.is_complete:
                await tree.retry()

    async def rank_root(self, node: Node) -> None:
        """Set the rank of a root to be created: the next free one where another root has it."""
        async with self.roots_lock:
            name = self.plan.hierarchy.name
            if self._root_ranks is None:
                roots = await self.store.range(siblings(name), self.reads)
                ranks = [(cast(str, root["rank"]), cast(str, root["pk"])) for root in roots]
                self._root_ranks = {rank: pk for rank, pk in ranks if is_manual(rank)}
            taken = [rank for rank, pk in self._root_ranks.items() if pk != node.pk]
            node.rank = rank_after(cast(str, node.rank), taken)
            if node.rank is not None:
                self._root_ranks[node.rank] = node.pk

    async def write(
        self, group: "_Group", changes: list[Change], batch: Batch, roots: list[LogEntry], on_commit: Callable[[], None]
    ) -> None:
        """Add a batch to a group; those with roots follow one another, with the version and log of the roots."""
        if not batch.roots:
            await group.add(changes, batch.size, on_commit)
        else:
            hierarchy = self.plan.hierarchy
            async with self.roots_lock:
                version = self.roots or await tree_version(self.store, hierarchy.name, self.reads)
                self.roots = None
                raised = version.incremented(batch.roots, now=batch.now)
                first = [] if version.number else [Put(marker) for marker in Kinds(hierarchy).nodes.markers()]
                log = log_item(version, roots, batch.at, batch.now)
                await group.add([*changes, raised, log, *first], batch.size, on_commit)
                self.roots = TreeVersion.of(version.partition, raised.item)
        await asyncio.sleep(0)  # SQLite never waits, so others and Ctrl-C are served here


class _Group:
    """Batches that are committed together once they have more than `most` bytes, or none has changes.

    What several of them change is written once, as the last one leaves it, on the condition of the first one.
    """

    def __init__(self, store: Store, result: LoadResult, most: int = 0) -> None:
        self._store = store
        self._result = result
        self._most = most
        self._clear()

    def _clear(self) -> None:
        self._changes: dict[Key, Change] = {}
        self._on_commit: list[Callable[[], None]] = []
        self._bytes = 0

    async def get(self, keys: Sequence[Key], reads: ReadUsage) -> list[Item | None]:
        """The items at these keys as the group leaves them."""
        items = await self._store.get(keys, reads, strong=True)
        return [self._left(key, item) for key, item in zip(keys, items, strict=True)]

    def _left(self, key: Key, item: Item | None) -> Item | None:
        match self._changes.get(key):
            case Put(left):
                return canonical_item(left)
            case Delete():
                return None
        return item

    async def add(self, changes: Sequence[Change], size: int, on_commit: Callable[[], None]) -> None:
        """Add a batch, and call `on_commit` when it is committed. After a Conflict the group must not be used."""
        for change in changes:
            key = change.key
            self._changes[key] = change if (before := self._changes.get(key)) is None else _both(before, change)
        self._bytes += size
        self._on_commit.append(on_commit)
        if self._bytes > self._most or not self._changes:
            await self.commit()

    async def commit(self) -> None:
        changes, on_commit = [*self._changes.values()], self._on_commit
        self._clear()  # for its memory
        if changes:
            await self._store.commit(changes)
            self._result.commits += 1
        for committed in on_commit:
            committed()


class _TreeImport:
    """The import of one tree."""

    def __init__(self, load: _Import, tree: Tree) -> None:
        self._import = load
        self._pk = tree.pk
        self._tree = tree
        self._written = 0  # nodes of the file, in all attempts
        self.is_complete = False

    async def retry(self) -> None:
        """Import the tree after a conflict, batch by batch."""
        for delay in RETRIES.delays():
            await asyncio.sleep(delay)
            version = await self.wait_for_moves()
            with contextlib.suppress(Conflict):
                return await self.attempt(_Group(self._import.store, self._import.result), version, look_for_ids=True)
        raise Conflict(
            f"Other writes to {path_text(self._pk, '#')} prevented the import; the same command continues it."
        )

    async def wait_for_moves(self) -> TreeVersion:
        """The version of the tree once no move runs in it; raises Conflict where one does not end."""
        return await wait_for_moves(self._import.store, self._pk, self._import.reads)

    async def attempt(self, group: _Group, version: TreeVersion, *, look_for_ids: bool = False) -> None:
        """Read and compare the tree as of a version, and write the differences.

        The ids in a new tree are seldom taken, so at first only the transactions require it, without a read.
        """
        look_for_ids = look_for_ids or bool(version.number) or self._import.dry_run
        diff = await self._diff()
        creations = await self._creations(group, diff, look_for_ids=look_for_ids)
        if (kinds := Kinds(self._import.plan.hierarchy).nodes).reads:
            creations = await self._accepted(group, kinds, diff, creations, reads=look_for_ids)
        unchanged = max(0, diff.unchanged - self._written)
        for batch in batches(self._import.plan.hierarchy, diff, creations, self._pk, self._import.store.max_changes):
            note = partial(self._note, batch.entries)
            if self._import.dry_run:
                note()
                continue
            raised = version.incremented(batch.shape, now=batch.now)
            log = log_item(version, batch.entries, batch.at, batch.now)
            roots = [one._replace(sk=root_log_key(self._pk)) for one in batch.entries if one.sk == "#"]
            await self._import.write(group, [*batch.changes, raised, log], batch, roots, note)
            version = TreeVersion.of(self._pk, raised.item)
        await group.add((), KEPT_BYTES * len(self._tree.nodes), partial(self._complete, unchanged, diff.rejections))

    def _complete(self, unchanged: int, rejections: Sequence[Rejection]) -> None:
        self.is_complete = True
        self._import.result.unchanged += unchanged
        self._import.result.rejections += rejections
        self._import.on_nodes(max(0, len(self._tree.nodes) - self._written))

    async def _diff(self) -> TreeDiff:
        """The differences of the tree; all its records are read, but only changes are kept in memory."""
        merge = TreeMerge(self._import.plan, self._tree, prune=self._import.prune)
        async for items in Pages(self._import.store, subtree(self._pk, "#"), self._import.reads):
            merge.add(items)
        return merge.finish()

    async def _creations(self, group: _Group, diff: TreeDiff, *, look_for_ids: bool) -> list[Creation]:
        """The nodes to be created, with their ids; those whose id belongs to another node are rejected.

        Unless it is to `look_for_ids` in the table, no node has these ids yet.
        """
        creations: list[Creation] = []
        rejected: dict[str, int] = {}  # the rows of rejected nodes by sort key
        async for page in in_chunks(diff.created, PAGE_ITEMS):
            ids = [self._id_of(node) for node in page]
            items: Sequence[Item | None] = [None] * len(ids)
            if look_for_ids:
                items = await group.get([id_key(one) for one in ids], self._import.reads)
            for node, node_id, item in zip(page, ids, items, strict=True):
                if node.sk == "#" and node.rank is not None:
                    await self._import.rank_root(node)
                if item is None and not rejected:
                    creations.append(Creation(node, node_id))
                    continue
                parent = parent_sort_key(node.sk) if len(node.sk) > 1 else ""
                if rejection := self._id_rejection(node, item):
                    diff.rejections.append(rejection)
                elif parent in rejected:
                    reason = f"The parent of {node} is missing, since row {rejected[parent]} was rejected."
                    diff.rejections.append(Rejection(node.number, reason))
                else:
                    creations.append(self._creation(diff, node, node_id, item))
                    continue
                rejected[node.sk] = node.number
        return creations

    def _id_of(self, node: Node) -> str:
        """The full id: the given one, or one made from the path, unless the file gives that to another node."""
        hierarchy = self._import.plan.hierarchy.name
        return f"{hierarchy}:{self._import.plan.id_of(node) or derived_id(hierarchy, node.path)}"

    def _id_rejection(self, node: Node, item: Item | None) -> Rejection | None:
        """The rejection of a node whose id belongs to another one, by the record of the id."""
        place = current_key(item)
        if place is None or node.id is None or place == node.key:
            return None
        reason = f"The id {node.id} belongs to {path_text(*place)}"
        if (unmoved := self._import.plan.unmoved.get(node.id)) is None:
            return Rejection(node.number, f"{reason}; use --moves to move it.", moved=True)
        return Rejection(node.number, f"{reason}, and cannot be moved here: {unmoved}", moved=True)

    def _creation(self, diff: TreeDiff, node: Node, node_id: str, item: Item | None) -> Creation:
        """A given id of a deleted node continues with its revisions; a default id that is or was another node's is
        replaced by a random one.
        """
        if item is None:
            return Creation(node, node_id)
        gone = tombstone(item) if node.id is not None else None
        if gone is None and current_key(item) != node.key:  # which is left by a deletion without Clade
            return Creation(node, f"{self._import.plan.hierarchy.name}:{uuid4().hex}")
        diff.found[id_key(node_id)] = item
        return Creation(node, node_id, 1 if gone is None else gone.revision + 1)

    async def _accepted(
        self, group: _Group, kinds: NodeKinds, diff: TreeDiff, creations: Sequence[Creation], *, reads: bool
    ) -> list[Creation]:
        """The nodes to be created without those of which something may not be stored; their rows are rejected, and so
        are those of such updates.

        Unless something `reads`, only the transactions require what the table has.
        """
        accepted: list[Creation] = []
        updated, diff.updated = diff.updated, []
        rejected: dict[str, int] = {}
        taken: ChainMap[Key, Item | None] = ChainMap({}, diff.found)  # by earlier nodes of the file, too
        nodes = dict(diff.above)
        for creation in creations:
            sk = creation.node.sk
            nodes[sk] = new_record(creation, nodes.get(parent_sort_key(sk)) if sk != "#" else None)

        def located(record: Record) -> Located:
            return Located.below([nodes[key.sk] for key in ancestor_keys(record.key)], record)

        steps: list[tuple[Creation | None, Located | None, Located | None]] = []
        steps += [(creation, None, located(nodes[creation.node.sk])) for creation in creations]
        steps += [(None, located(old), located(new)) for old, new in updated]
        steps += [(None, located(record), None) for record in diff.removed]
        async for page in in_chunks(steps, PAGE_ITEMS):
            keys = [key for _, before, after in page for key in kinds.keys_to_read(before, after)] if reads else []
            items = await group.get(keys, self._import.reads) if keys else []
            diff.found |= zip(keys, items, strict=True)
            for new, before, after in page:
                if after is None:
                    continue
                sk = after.record.sk
                parent = parent_sort_key(sk) if sk != "#" else ""
                number = new.node.number if new else self._tree.nodes[sk].number
                try:
                    if parent in rejected:
                        raise BadInput(
                            f"The parent of {path_text(self._pk, sk)} is missing, since row "
                            f"{rejected[parent]} was rejected."
                        )
                    changes = kinds.changes(before, after, taken)
                except BadInput as error:
                    rejected[sk] = number
                    diff.rejections.append(Rejection(number, str(error)))
                    continue
                taken.maps[0].update({one.key: one.item for one in changes if isinstance(one, Put)})
                if new is not None:
                    accepted.append(new)
                else:
                    diff.updated.append((cast(Located, before).record, after.record))
        return accepted

    def _note(self, entries: list[LogEntry]) -> None:
        self._import.result.note_all(self._pk, entries)
        written = sum(entry.event is not Event.DELETED for entry in entries)
        self._written += written
        self._import.on_nodes(written)


def _both(before: Change, change: Change) -> Change:
    """One change in the place of two at the same key that follow one another.

    Raises Conflict where the first leaves what the condition of the second does not allow.
    """
    left: Item | None = None
    if isinstance(before, Put):
        left = before.item
    elif isinstance(before, Check):
        left = {**change.when, **before.when}
    if not condition_holds(change.when, left):
        raise Conflict.over()
    if isinstance(before, Check):
        return replace(change, when=left)
    return before if isinstance(change, Check) else replace(change, when=before.when)
